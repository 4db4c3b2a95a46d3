#include "elf/function_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "elf/name_path.h"

namespace flamewire::elf {
namespace {

constexpr std::string_view digits = "0123456789";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

using Path = NamePath;

// A mangled name that is read from left to right.
class Mangled {
public:
    explicit Mangled(std::string_view text) : text_(text) {}

    [[nodiscard]] std::string_view rest() const { return text_; }
    [[nodiscard]] char peek() const { return text_.empty() ? '\0' : text_.front(); }
    bool take(std::string_view word) {
        if (!text_.starts_with(word)) return false;
        text_.remove_prefix(word.size());
        return true;
    }
    void skip(std::size_t size) { text_.remove_prefix(std::min(size, text_.size())); }
    void skip_all(std::string_view characters) { skip(text_.find_first_not_of(characters)); }
    // Up to and including the next `_`.
    bool skip_number() {
        const std::size_t end =
            text_.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        if (end == std::string_view::npos || text_[end] != '_') return false;
        skip(end + 1);
        return true;
    }
    // A decimal number. Large ones become one that exceeds any text.
    std::size_t number() {
        std::size_t value = 0;
        for (; is_digit(peek()); skip(1))
            value = std::min<std::size_t>(value * 10 + static_cast<std::size_t>(peek() - '0'), 1u << 20);
        return value;
    }
    // Empty if there is none. In v0 of Rust, a `_` separates a name from its length if necessary.
    std::string_view name(bool separated = false) {
        if (!is_digit(peek())) return {};
        const std::size_t size = number();
        if (separated) take("_");
        if (size > text_.size()) return {};
        const std::string_view name = text_.substr(0, size);
        skip(size);
        return name;
    }

private:
    std::string_view text_;
};

// Skips template arguments, from the `I` to its `E`, by counting what has an `E` at its end. That needs no stack of
// types, but fails for expressions of templates that are not instantiated; functions have none of these there.
class ArgumentSkipper {
public:
    explicit ArgumentSkipper(Mangled& in) : in_(in) {}

    bool skip() {
        do {
            if (!skip_one()) return false;
        } while (depth_ != 0);
        return true;
    }

private:
    bool open(char kind) {
        if (depth_ == open_.size()) return false;
        open_[depth_++] = kind;
        typed_ = false;
        return true;
    }
    [[nodiscard]] bool inside(char kind) const { return depth_ != 0 && open_[depth_ - 1] == kind; }
    bool close() {
        const bool lambda = inside('l');
        --depth_;
        typed_ = true;
        return !lambda || in_.skip_number();
    }
    bool skip_digits() {
        const bool is_value = inside('L') && typed_;
        if (is_value) in_.skip_all(digits);
        typed_ = true;
        return is_value || !in_.name().empty();
    }
    bool skip_discriminator() {
        in_.skip(1);
        if (in_.take("_")) return in_.skip_number();
        if (is_digit(in_.peek())) in_.skip(1);
        return true;
    }
    bool skip_one();

    Mangled& in_;
    std::array<char, 60> open_ = {};  // the letters that started what is open; `l`: a lambda
    std::size_t depth_ = 0;
    bool typed_ = false;  // the type of the innermost literal was read, so digits are its value
};

bool ArgumentSkipper::skip_one() {
    const char c = in_.peek();
    if (is_digit(c)) return skip_digits();
    if (c == '_') return skip_discriminator();
    in_.skip(1);
    const char next = in_.peek();
    switch (c) {
        case 'E': return close();
        case 'F':
        case 'I':
        case 'J':
        case 'N':
        case 'X':
        case 'Z': return open(c);
        case 'L':  // a literal, a symbol, or internal linkage of the name that follows
            if (in_.take("_Z")) return open('Z');
            return (is_digit(next) && (inside('N') || inside('Z'))) || open(c);
        case 'A': in_.skip_all(digits); return in_.take("_");
        case 'C':  // a constructor, or a complex number
            if (is_digit(next)) in_.skip(1);
            return true;
        case 'D':
            in_.skip(1);
            typed_ = true;
            return next != 'F' && next != 'v' ? true : in_.skip_number();
        case 'S':
            typed_ = true;
            if (next < 'a' || next > 'z') return in_.skip_number();
            in_.skip(1);
            return true;
        case 'T': typed_ = true; return in_.skip_number();
        case 't':  // an object as an argument: "tl", its type and members
            if ((inside('X') || inside('t')) && in_.take("l")) return open('t');
            break;
        case 'U':
            if (in_.take("l")) return open('l');
            return !in_.take("t") || in_.skip_number();
        default: break;
    }
    typed_ = typed_ || (c >= 'a' && c <= 'z');
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// ABI tags and template arguments, which may follow a name.
bool skip_after_name(Mangled& in) {
    while (in.take("B"))
        if (in.name().empty()) return false;
    return in.peek() != 'I' || ArgumentSkipper(in).skip();
}

bool add_name(Mangled& in, Path& path) {
    in.take("L");  // internal linkage
    std::string_view name = in.name();
    if (name.empty()) return false;
    if (name.starts_with("_GLOBAL__N")) name = "(anonymous namespace)";
    // Legacy names of Rust: "Vec$LT$T$GT$" is Vec<T>.
    if (const std::size_t arguments = name.find("$LT$"); arguments != 0) name = name.substr(0, arguments);
    return path.add(name) && skip_after_name(in);
}

// `std`, alone or with a class of its own.
bool add_std(Mangled& in, Path& path) {
    if (in.take("St")) return path.add("std");
    constexpr std::string_view letters = "absiod";
    constexpr std::array<std::string_view, 6> names = {"allocator", "basic_string", "string",
                                                       "istream",   "ostream",      "iostream"};
    if (!in.take("S")) return true;
    const std::size_t which = letters.find(in.peek());
    if (which == std::string_view::npos) return false;
    in.skip(1);
    path.abbreviated = which >= 2;
    return path.add("std") && path.add(names[which]) && skip_after_name(in);
}

bool is_rust_hash(std::string_view name) {
    return name.size() == 17 && name[0] == 'h' &&
           name.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

// `in` is after "_Z" and the path of names. Functions have parameters; only those of Rust have a hash instead.
bool ends_function(const Mangled& in, Path& path) {
    if (in.rest().empty() && path.size > 1) {
        --path.size;
        return is_rust_hash(path.names[path.size]);
    }
    return !in.rest().empty() && in.rest().find('.') == std::string_view::npos;
}

// `in` is after "_Z"; afterwards, it is after the path. False if that has something other than names.
bool read_itanium(Mangled& in, Path& path) {
    const bool nested = in.take("N");
    if (nested) in.skip_all("rVKROH");
    if (!add_std(in, path)) return false;
    if (!nested && !add_name(in, path)) return false;
    while (nested && !in.take("E")) {
        const bool constructor = in.take("C1") || in.take("C2");
        if (constructor || in.take("D1") || in.take("D2")) {
            if (path.size == 0 || !path.add(path.names[path.size - 1]) || !skip_after_name(in)) return false;
            path.destructor = !constructor;
        } else if (!add_name(in, path)) {
            return false;
        }
    }
    return true;
}

// Reads names of Rust's v0. All paths begin with the kinds of their names, from inside to outside.
class RustReader {
public:
    explicit RustReader(std::string_view text) : text_(text), in_(text) {}

    bool read(Path& path) {
        const bool instance = in_.take("I");  // its arguments follow the path
        if (in_.peek() != 'N' || !in_.rest().starts_with("Nv")) return false;
        const std::size_t names = skip_kinds();
        if (in_.take("M")) return add_method(names, instance, path);
        return add_root(path) && add_names(names, path) && (instance || at_end());
    }

private:
    std::size_t skip_kinds() {
        std::size_t names = 0;
        for (; in_.peek() == 'N'; ++names) in_.skip(2);
        return names;
    }
    bool skip_disambiguator() { return !in_.take("s") || in_.skip_number(); }
    bool add_names(std::size_t count, Path& path) {
        for (; count != 0; --count) {
            if (!skip_disambiguator()) return false;
            const std::string_view name = in_.name(true);
            if (name.empty() || !path.add(name)) return false;
        }
        return true;
    }
    bool add_crate(Path& path) { return in_.take("C") && add_names(1, path); }
    // A crate, or the position of a path that was already written out.
    bool add_root(Path& path) {
        if (!in_.take("B")) return add_crate(path);
        constexpr std::string_view base_62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        std::size_t position = 0;
        for (bool first = true; !in_.take("_"); first = false) {
            const std::size_t digit = base_62.find(in_.peek());
            if (digit == std::string_view::npos || position >= text_.size()) return false;
            position = (first ? 0 : (position - 1) * 62) + digit + 1;
            in_.skip(1);
        }
        if (position >= text_.size()) return false;
        const Mangled back = in_;
        in_ = Mangled(text_.substr(position));
        const std::size_t names = skip_kinds();
        const bool added = add_crate(path) && add_names(names, path);
        in_ = back;
        return added;
    }
    bool add_path(Path& path) {
        const std::size_t names = skip_kinds();
        return add_root(path) && add_names(names, path);
    }

    // Nothing or only the crate that made an instance follows.
    bool at_end() {
        Path crate;
        return in_.rest().empty() || (add_root(crate) && in_.rest().empty());
    }
    // The path of the impl block, then the type, then the method's name.
    bool add_method(std::size_t names, bool instance, Path& path) {
        Path block;
        if (!skip_disambiguator() || !add_path(block)) return false;
        if (!in_.take("I")) return add_path(path) && add_names(names, path) && (instance || at_end());
        // The type has arguments, which end where names follow that can be the last ones.
        if (!add_path(path)) return false;
        while (!in_.rest().empty()) {
            if (!in_.take("E")) {
                in_.skip(1);
                continue;
            }
            const Mangled after = in_;
            Path found = path;
            if (add_names(names, found) && (instance || at_end())) {
                path = found;
                return true;
            }
            in_ = after;
        }
        return false;
    }

    std::string_view text_;  // positions are relative to its begin
    Mangled in_;
};

bool matches_pattern(std::string_view pattern, std::string_view text) {
    // On a mismatch, the last `*` takes one more character.
    std::size_t at = 0, in = 0, star = std::string_view::npos, taken = 0;
    while (at < text.size()) {
        if (in < pattern.size() && pattern[in] == '*') {
            star = ++in;
            taken = at;
        } else if (in < pattern.size() && pattern[in] == text[at]) {
            ++in;
            ++at;
        } else if (star != std::string_view::npos) {
            in = star;
            at = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', in) == std::string_view::npos;
}

// Without suffixes that only make the name unique.
std::string_view without_unique_suffix(std::string_view symbol) {
    for (;;) {
        // A number may follow, with a dot.
        std::string_view stem = symbol;
        const std::size_t end = stem.find_last_not_of(digits);
        if (end != std::string_view::npos && stem[end] == '.') stem = stem.substr(0, end);
        const std::size_t dot = stem.rfind('.');
        if (dot == std::string_view::npos) return symbol;
        const std::string_view suffix = stem.substr(dot);
        if (suffix != ".lto_priv" && suffix != ".llvm" && suffix != ".localalias") return symbol;
        symbol = symbol.substr(0, dot);
    }
}

// False for names of C, and for those that have something other than names.
bool read_function(std::string_view symbol, Path& path) {
    if (symbol.starts_with("_R")) return RustReader(symbol.substr(2)).read(path);
    if (!symbol.starts_with("_Z")) return false;
    Mangled in(symbol.substr(2));
    return read_itanium(in, path) && ends_function(in, path);
}

}  // namespace

bool matches_function_name(std::string_view request, std::string_view symbol) {
    if (request.empty()) return false;
    if (request.find('*') != std::string_view::npos) return matches_pattern(request, symbol);
    const std::string_view stem = without_unique_suffix(symbol);
    if (request == symbol || request == stem) return true;
    Path path;
    return read_function(stem, path) && path.is(request);
}

std::string function_path(std::string_view symbol) {
    Path path;
    return read_function(without_unique_suffix(symbol), path) ? path.text() : std::string(symbol);
}

bool matches_variable_name(std::string_view request, std::string_view symbol) {
    if (request.empty()) return false;
    if (request.find('*') != std::string_view::npos) return matches_pattern(request, symbol);
    const std::string_view stem = without_unique_suffix(symbol);
    if (request == symbol || request == stem) return true;
    if (!stem.starts_with("_Z")) return matches_function_name(request, symbol);
    Path path;
    Mangled in(stem.substr(2));
    if (!read_itanium(in, path) || !in.rest().empty()) return false;
    if (path.size > 1 && is_rust_hash(path.names[path.size - 1])) --path.size;
    return path.is(request);
}

}  // namespace flamewire::elf
