// The names that lead to a function, from outside to inside: "ns", "Class", "method". Views into its symbol.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace flamewire::elf {

struct NamePath {
    std::array<std::string_view, 24> names;
    std::size_t size = 0;
    bool destructor = false;   // the last name has a `~`, which is not in it
    bool abbreviated = false;  // the second name is std::string or a stream: std::ostream is std::basic_ostream<char>

    bool add(std::string_view name) {
        if (size == names.size() || destructor) return false;
        names[size++] = name;
        return true;
    }
    // Whether demanglers print it so.
    [[nodiscard]] bool is(std::string_view request) const {
        for (std::size_t i = 0; i < size; ++i) {
            const bool last = i + 1 == size;
            const std::size_t end = last ? request.size() : request.find("::");
            if (end == std::string_view::npos) return false;
            std::string_view name = request.substr(0, end);
            if (!last) request.remove_prefix(end + 2);
            if (last && destructor) {
                if (!name.starts_with('~')) return false;
                name.remove_prefix(1);
            }
            name = name.substr(0, name.find("[abi:"));
            if (abbreviated && i > 0 && names[i] == names[1] && name.starts_with("basic_")) name.remove_prefix(6);
            if (name != names[i]) return false;
        }
        return size != 0;
    }
    // As demanglers print it, without arguments.
    [[nodiscard]] std::string text() const {
        std::string text;
        for (std::size_t i = 0; i < size; ++i) {
            if (i != 0) text += "::";
            if (destructor && i + 1 == size) text += '~';
            text += names[i];
        }
        return text;
    }
};

}  // namespace flamewire::elf
