#include "views/print_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace flamewire::views {
namespace {

constexpr std::size_t max_names = 256;

std::string_view trim(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    return text;
}

// The end of the string literal that begins at `at`.
std::size_t literal_end(std::string_view text, std::size_t at) {
    for (std::size_t i = at + 1; i < text.size(); ++i) {
        if (text[i] == '\\')
            ++i;
        else if (text[i] == '"')
            return i + 1;
    }
    return text.size();
}

// Splits at commas that are outside of brackets and literals, up to an unmatched closing bracket.
std::vector<std::string_view> split_arguments(std::string_view text) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0, depth = 0, i = 0;
    while (i < text.size()) {
        const char c = text[i];
        if (c == '"') {
            i = literal_end(text, i);
            continue;
        }
        if (c == '(' || c == '{' || c == '[') ++depth;
        if (c == ')' || c == '}' || c == ']') {
            if (depth == 0) break;
            --depth;
        }
        if (c == ',' && depth == 0) {
            parts.push_back(trim(text.substr(begin, i - begin)));
            begin = i + 1;
        }
        ++i;
    }
    parts.push_back(trim(text.substr(begin, std::min(i, text.size()) - begin)));
    return parts;
}

std::string unquoted(std::string_view literal) {
    return literal.size() >= 2 && literal.front() == '"' ? std::string(literal.substr(1, literal.size() - 2))
                                                         : std::string();
}

// A constant expression of C: numbers, |, &, +, -, <<, >>, ~, brackets and casts. Nullopt: it is none.
class Constant {
public:
    static std::optional<std::uint64_t> of(std::string_view text) {
        Constant constant(text);
        while (constant.take()) {
        }
        return constant.result();
    }

private:
    explicit Constant(std::string_view text) : rest_(text) {}

    static int binding(char op) {
        switch (op) {
            case '~': return 5;
            case '+':
            case '-': return 4;
            case '<':
            case '>': return 3;
            case '&': return 2;
            case '|': return 1;
            default: return 0;
        }
    }

    bool take() {
        rest_ = trim(rest_);
        if (rest_.empty() || failed_) return false;
        const char c = rest_.front();
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) return take_number();
        if (c == '(') {
            // A cast is a bracket around a type.
            const std::size_t close = rest_.find_first_of("()", 1);
            const std::string_view inside = trim(rest_.substr(1, close - 1));
            const bool type = close != std::string_view::npos && rest_[close] == ')' && !inside.empty() &&
                              std::isdigit(static_cast<unsigned char>(inside.front())) == 0 &&
                              inside.find_first_of("|&~+-<>{\"") == std::string_view::npos;
            rest_.remove_prefix(type ? close + 1 : 1);
            if (!type) operators_.push_back('(');
            return true;
        }
        rest_.remove_prefix(1);
        if (c == ')') {
            while (!operators_.empty() && operators_.back() != '(') apply();
            if (operators_.empty()) return fail();
            operators_.pop_back();
            return true;
        }
        if (binding(c) == 0) return fail();
        if (c == '<' || c == '>') {
            if (rest_.empty() || rest_.front() != c) return fail();
            rest_.remove_prefix(1);
        }
        while (c != '~' && !operators_.empty() && binding(operators_.back()) >= binding(c)) apply();
        operators_.push_back(c);
        return true;
    }

    bool take_number() {
        const bool hex = rest_.starts_with("0x") || rest_.starts_with("0X");
        if (hex) rest_.remove_prefix(2);
        std::uint64_t number = 0;
        const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number, hex ? 16 : 10);
        if (parsed.ec != std::errc{}) return fail();
        rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
        while (!rest_.empty() && std::string_view("uUlL").find(rest_.front()) != std::string_view::npos)
            rest_.remove_prefix(1);
        numbers_.push_back(number);
        return true;
    }

    void apply() {
        const char op = operators_.back();
        operators_.pop_back();
        const std::size_t needed = op == '~' ? 1 : 2;
        if (numbers_.size() < needed) return (void)fail();
        const std::uint64_t right = numbers_.back();
        if (op == '~') {
            numbers_.back() = ~right;
            return;
        }
        numbers_.pop_back();
        std::uint64_t& left = numbers_.back();
        switch (op) {
            case '|': left |= right; break;
            case '&': left &= right; break;
            case '+': left += right; break;
            case '-': left -= right; break;
            case '<': left = right < 64 ? left << right : 0; break;
            case '>': left = right < 64 ? left >> right : 0; break;
            default: (void)fail();
        }
    }

    bool fail() {
        failed_ = true;
        return false;
    }

    std::optional<std::uint64_t> result() {
        while (!failed_ && !operators_.empty()) {
            if (operators_.back() == '(') return std::nullopt;
            apply();
        }
        if (failed_ || numbers_.size() != 1) return std::nullopt;
        return numbers_.front();
    }

    std::string_view rest_;
    std::vector<std::uint64_t> numbers_;
    std::vector<char> operators_;
    bool failed_ = false;
};

// `{ 0x1, "S" }, …`, of which entries that are not constant are left out.
void add_names(const std::vector<std::string_view>& entries, std::size_t first, ValueStyle& style) {
    for (std::size_t i = first; i < entries.size() && style.names.size() < max_names; ++i) {
        std::string_view entry = entries[i];
        if (!entry.starts_with('{') || !entry.ends_with('}')) continue;
        const std::vector<std::string_view> pair = split_arguments(entry.substr(1, entry.size() - 2));
        if (pair.size() != 2) continue;
        const auto value = Constant::of(pair[0]);
        std::string name = unquoted(pair[1]);
        if (value && !name.empty()) style.names.emplace_back(*value, std::move(name));
    }
}

// The names in one argument; false if it has none.
bool read_names(std::string_view argument, ValueStyle& style) {
    constexpr std::string_view flags = "__print_flags(", symbols = "__print_symbolic(";
    std::size_t at = argument.find(flags);
    style.flags = at != std::string_view::npos;
    if (!style.flags) at = argument.find(symbols);
    if (at == std::string_view::npos) return false;
    const std::string_view call = argument.substr(at + (style.flags ? flags : symbols).size());
    const std::vector<std::string_view> parts = split_arguments(call);
    // Names of a part of the value would be wrong for the value.
    if (parts.front().find(">>") != std::string_view::npos) return false;
    if (style.flags && parts.size() > 1) style.delimiter = unquoted(parts[1]);
    add_names(parts, style.flags ? 2 : 1, style);
    const std::size_t otherwise = argument.rfind(": \"");
    if (style.flags && argument.substr(0, at).find('?') != std::string_view::npos &&
        otherwise != std::string_view::npos && argument.ends_with('"'))
        style.zero = unquoted(argument.substr(otherwise + 2));
    return !style.names.empty();
}

// The only field of an argument; -1: none, or several.
std::ptrdiff_t field_of(std::string_view argument, const std::vector<std::string>& fields) {
    std::ptrdiff_t found = -1;
    for (std::size_t at = 0; (at = argument.find("REC->", at)) != std::string_view::npos;) {
        at += 5;
        std::size_t end = at;
        while (end < argument.size() &&
               (std::isalnum(static_cast<unsigned char>(argument[end])) != 0 || argument[end] == '_'))
            ++end;
        const auto field = std::ranges::find(fields, argument.substr(at, end - at));
        if (field == fields.end()) return -1;
        if (found >= 0 && found != field - fields.begin()) return -1;
        found = field - fields.begin();
    }
    return found;
}

// The characters that end the conversions of a printf format: "x" of "%#08lx".
std::string conversions_of(std::string_view format) {
    std::string conversions;
    for (std::size_t i = 0; i + 1 < format.size(); ++i) {
        if (format[i] != '%') continue;
        if (format[i + 1] == '%') {
            ++i;
            continue;
        }
        const std::size_t end = format.find_first_of("diouxXcspn", i + 1);
        if (end == std::string_view::npos) break;
        conversions += format[end];
        i = end;
    }
    return conversions;
}

}  // namespace

std::vector<ValueStyle> value_styles(std::string_view print_format, const std::vector<std::string>& fields) {
    std::vector<ValueStyle> styles(fields.size());
    const std::vector<std::string_view> arguments = split_arguments(print_format);
    const std::string conversions = conversions_of(arguments.front());
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::ptrdiff_t field = field_of(arguments[i], fields);
        if (field < 0) continue;
        ValueStyle& style = styles[static_cast<std::size_t>(field)];
        if (!style.names.empty()) continue;
        ValueStyle named;
        if (read_names(arguments[i], named)) style = std::move(named);
        const char conversion = i - 1 < conversions.size() ? conversions[i - 1] : ' ';
        if (conversion == 'x' || conversion == 'X' || conversion == 'p') style.hexadecimal = true;
    }
    return styles;
}

std::string named_value(const ValueStyle& style, std::uint64_t value) {
    if (!style.flags) {
        const auto found = std::ranges::find(style.names, value, &std::pair<std::uint64_t, std::string>::first);
        return found != style.names.end() ? found->second : std::string();
    }
    if (value == 0 && !style.zero.empty()) return style.zero;
    std::string text;
    for (const auto& [bits, name] : style.names) {
        if ((value & bits) != bits || bits == 0) continue;
        text += (text.empty() ? "" : style.delimiter) + name;
        value &= ~bits;
    }
    // The kernel masks the value: an unknown bit does not make it one of the flags.
    if (text.empty()) text = style.zero;
    if (value != 0 && !text.empty()) text += fmt::format("{}{:#x}", style.delimiter, value);
    return text;
}

}  // namespace flamewire::views
