#include "agent/perf/probe_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace flamewire::agent {
namespace {

constexpr std::size_t max_arguments = 16, max_name_bytes = 32;
constexpr std::string_view uprobe_prefix = "uprobe:", usdt_prefix = "usdt:", kprobe_prefix = "kprobe:";
constexpr std::string_view uretprobe_prefix = "uretprobe:", kretprobe_prefix = "kretprobe:";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::unexpected<Error> bad(std::string_view item, std::string_view why) {
    return fail(ErrorCode::invalid, fmt::format("event '{}': {}", item, why));
}

// The kernel refuses other field names.
bool is_field_name(std::string_view text) {
    return !text.empty() && text.size() <= max_name_bytes && is_letter(text.front()) &&
           std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

// Spaces and line ends would begin another argument or another command of tracefs.
bool is_fetch(std::string_view text) {
    static constexpr std::string_view others = "$%+-():.\\[]";
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
    });
}

// Compilers add suffixes such as ".isra.0" to functions of the kernel. A colon follows the name of a module.
bool is_kernel_function(std::string_view text) {
    static constexpr std::string_view others = ".$:*";
    return !text.empty() && !is_digit(text.front()) && std::ranges::all_of(text, [](char c) {
        return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
    });
}

// Names of functions and files may have any characters but these.
bool is_plain(std::string_view text) {
    return !text.empty() && std::ranges::none_of(text, [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == 0x7f;
    });
}

std::optional<std::uint64_t> parse_offset(std::string_view digits) {
    int base = 10;
    if (digits.starts_with("0x")) {
        digits.remove_prefix(2);
        base = 16;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

// Splits "/FILTER/ATTRIBUTE/…/REST" at slashes outside quotes. The last element is what follows the last slash.
std::vector<std::string_view> split_attributes(std::string_view text) {
    std::vector<std::string_view> parts;
    bool quoted = false;
    std::size_t begin = 1;
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '"') quoted = !quoted;
        if (text[i] != '/' || quoted) continue;
        parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
    }
    parts.push_back(text.substr(std::min(begin, text.size())));
    return parts;
}

// "word=value", but not a comparison ("size==3").
bool is_attribute(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view word = text.substr(0, equals);
    return equals != std::string_view::npos && !text.substr(equals).starts_with("==") &&
           std::ranges::all_of(word, [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

Result<bool> add_attribute(ParsedProbe& parsed, std::string_view item, std::string_view text) {
    if (!is_attribute(text)) return bad(item, fmt::format("'{}' should look like NAME=VALUE", text));
    const std::size_t equals = text.find('=');
    std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
    if (name == "alias") {
        if (!is_plain(value)) return bad(item, "alias= needs a name without spaces and quotes");
        parsed.name = parsed.probe.alias = value;
        return true;
    }
    if (name == "arg") {
        const std::size_t colon = value.find(':');
        if (colon == std::string_view::npos) return bad(item, "arg= needs NAME:VALUE");
        name = value.substr(0, colon);
        value.remove_prefix(colon + 1);
    }
    if (!is_field_name(name))
        return bad(item, fmt::format("'{}' is neither an attribute (alias, arg) nor a field name", name));
    if (!is_fetch(value))
        return bad(item, fmt::format("'{}' is not a value such as $arg1, %di:u64 or +0(%di):string", value));
    ProbeSpec& probe = parsed.probe;
    if (std::ranges::any_of(probe.arguments, [&](const ProbeArgument& other) { return other.name == name; }))
        return bad(item, fmt::format("field '{}' is given twice", name));
    if (probe.arguments.size() == max_arguments) return bad(item, fmt::format("more than {} fields", max_arguments));
    probe.arguments.push_back({std::string(name), std::string(value)});
    return true;
}

// What follows the file: "[/FILTER/ATTRIBUTE/…/][@HZ]".
Result<bool> parse_tail(ParsedProbe& parsed, std::string_view item, std::string_view tail) {
    std::string_view rest = tail;
    std::string_view attributes;
    if (tail.starts_with('/')) {
        std::vector<std::string_view> parts = split_attributes(tail);
        if (parts.size() < 2) return bad(item, "the filter has no closing slash");
        rest = parts.back();
        parts.pop_back();
        attributes = tail.substr(0, tail.size() - rest.size());
        std::size_t first = 0;
        if (!is_attribute(parts.front())) {
            parsed.filter = parts.front();
            first = 1;
        }
        for (std::size_t i = first; i < parts.size(); ++i) (void)TRY(add_attribute(parsed, item, parts[i]));
    }
    parsed.probe.attributes = attributes;
    if (rest.starts_with('@'))
        parsed.rate = rest.substr(1);
    else if (!rest.empty())
        return bad(item, fmt::format("'{}' after the probe is not understood", rest));
    if (parsed.probe.alias.empty()) parsed.name = item.substr(0, item.size() - rest.size());
    return true;
}

// "WHAT@"FILE"TAIL" or "WHAT@FILE[/TAIL]". Returns WHAT.
Result<std::string_view> parse_at_file(ParsedProbe& parsed, std::string_view item, std::string_view body) {
    const std::size_t at = body.find('@');
    if (at == std::string_view::npos) return bad(item, "needs the file of the code: uprobe:FUNCTION@\"FILE\"");
    const std::string_view what = body.substr(0, at);
    std::string_view file = body.substr(at + 1);
    std::string_view tail;
    if (file.starts_with('"')) {
        file.remove_prefix(1);
        const std::size_t quote = file.find('"');
        if (quote == std::string_view::npos) return bad(item, "the file's closing quote is missing");
        tail = file.substr(quote + 1);
        file = file.substr(0, quote);
    } else {
        tail = file.substr(std::min(file.find_first_of("/@"), file.size()));
        file.remove_suffix(tail.size());
    }
    if (!is_plain(file) && file.find(' ') == std::string_view::npos) return bad(item, "the file's name is missing");
    parsed.probe.file = file;
    (void)TRY(parse_tail(parsed, item, tail));
    return what;
}

// "FILE:0xOFFSET[TAIL]"; false: the text has another form.
Result<bool> parse_offset_in_file(ParsedProbe& parsed, std::string_view item, std::string_view body) {
    const std::size_t colon = body.find(":0x");
    if (colon == std::string_view::npos || body.substr(0, colon).find('@') != std::string_view::npos) return false;
    std::string_view file = body.substr(0, colon);
    if (file.size() >= 2 && file.starts_with('"') && file.ends_with('"')) file = file.substr(1, file.size() - 2);
    if (!is_plain(file)) return bad(item, "the file's name is missing");
    const std::string_view digits = body.substr(colon + 1, body.find_first_of("/@", colon) - colon - 1);
    const auto offset = parse_offset(digits);
    if (!offset) return bad(item, fmt::format("'{}' is not an offset such as 0x1234", digits));
    parsed.probe.file = file;
    parsed.probe.offset = *offset;
    (void)TRY(parse_tail(parsed, item, body.substr(colon + 1 + digits.size())));
    return true;
}

// Takes "+OFFSET" from the end of `function`, but not the plus of `operator+`.
Result<bool> take_offset(ParsedProbe& parsed, std::string_view item, std::string_view& function) {
    const std::size_t plus = function.rfind('+');
    if (plus == std::string_view::npos || plus + 1 == function.size() || !is_digit(function[plus + 1])) return true;
    const auto offset = parse_offset(function.substr(plus + 1));
    if (!offset) return bad(item, fmt::format("'{}' is not an offset", function.substr(plus)));
    parsed.probe.offset = *offset;
    function = function.substr(0, plus);
    return true;
}

Result<bool> parse_uprobe(ParsedProbe& parsed, std::string_view item, std::string_view body) {
    if (TRY(parse_offset_in_file(parsed, item, body))) return true;
    std::string_view function = TRY(parse_at_file(parsed, item, body));
    (void)TRY(take_offset(parsed, item, function));
    if (function.starts_with("0x")) {
        const auto offset = parse_offset(function);
        if (!offset) return bad(item, fmt::format("'{}' is not an offset such as 0x1234", function));
        parsed.probe.offset = *offset;
        return true;
    }
    if (!is_plain(function)) return bad(item, "the function's name is missing");
    parsed.probe.function = function;
    return true;
}

Result<bool> parse_usdt(ParsedProbe& parsed, std::string_view item, std::string_view body) {
    parsed.probe.kind = ProbeSpec::Kind::usdt;
    const std::string_view what = TRY(parse_at_file(parsed, item, body));
    const std::size_t colon = what.find(':');
    const std::string_view provider = what.substr(0, colon);
    const std::string_view name = colon == std::string_view::npos ? std::string_view() : what.substr(colon + 1);
    if (!is_plain(provider) || !is_plain(name)) return bad(item, "should look like usdt:PROVIDER:NAME@\"FILE\"");
    parsed.probe.provider = provider;
    parsed.probe.name = name;
    return true;
}

// "FUNC[+OFFSET][TAIL]"
Result<bool> parse_kprobe(ParsedProbe& parsed, std::string_view item, std::string_view body) {
    parsed.probe.kind = ProbeSpec::Kind::kprobe;
    std::string_view function = body.substr(0, body.find_first_of("/@"));
    (void)TRY(parse_tail(parsed, item, body.substr(function.size())));
    (void)TRY(take_offset(parsed, item, function));
    if (!is_kernel_function(function)) return bad(item, fmt::format("'{}' is not a function of the kernel", function));
    parsed.probe.function = function;
    return true;
}

Result<bool> check_return(const ParsedProbe& parsed, std::string_view item) {
    if (!parsed.probe.function.empty() && parsed.probe.offset == 0) return true;
    return bad(item, "a probe on returns needs a function, without an offset");
}

}  // namespace

bool is_probe(std::string_view item) {
    return item.starts_with(uprobe_prefix) || item.starts_with(usdt_prefix) || item.starts_with(uretprobe_prefix) ||
           item.starts_with(kprobe_prefix) || item.starts_with(kretprobe_prefix);
}

Result<ParsedProbe> parse_probe(std::string_view item) {
    ParsedProbe parsed;
    parsed.probe.returns = item.starts_with(uretprobe_prefix) || item.starts_with(kretprobe_prefix);
    const std::string_view body = item.substr(item.find(':') + 1);
    if (item.starts_with(usdt_prefix))
        (void)TRY(parse_usdt(parsed, item, body));
    else if (item.starts_with('u'))
        (void)TRY(parse_uprobe(parsed, item, body));
    else
        (void)TRY(parse_kprobe(parsed, item, body));
    if (parsed.probe.returns) (void)TRY(check_return(parsed, item));
    return parsed;
}

std::size_t unquoted_path_end(std::string_view list) {
    if (!list.starts_with("uprobe:/")) return 0;
    const std::size_t colon = list.find(":0x");
    return colon == std::string_view::npos ? 0 : colon;
}

std::string name_of_match(const ProbeSpec& probe, std::string_view provider, std::string_view match) {
    if (!probe.alias.empty()) return fmt::format("{}:{}", probe.alias, match);
    const std::string_view point = probe.returns ? "retprobe" : "probe";
    if (probe.kind == ProbeSpec::Kind::kprobe) return fmt::format("k{}:{}{}", point, match, probe.attributes);
    const std::string what = probe.kind == ProbeSpec::Kind::usdt ? fmt::format("usdt:{}:{}", provider, match)
                                                                 : fmt::format("u{}:{}", point, match);
    return fmt::format("{}@\"{}\"{}", what, probe.file, probe.attributes);
}

}  // namespace flamewire::agent
