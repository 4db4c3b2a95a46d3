// How the kernel prints the values of a tracepoint: as names of numbers and flags, or as hexadecimal numbers. Pure, and
// safe on any text. Source: "print fmt" of Documentation/trace/events.rst, with __print_flags() and __print_symbolic().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flamewire::views {

struct ValueStyle {
    bool hexadecimal = false;
    bool flags = false;  // the names are those of bits, and a value may have several
    std::vector<std::pair<std::uint64_t, std::string>> names;
    std::string delimiter;  // between flags
    std::string zero;       // what stands for no flag; empty: "0"
};

// The styles of `fields`, in their order. A field that the format does not mention, or mentions in a form that is not
// understood, has an empty style.
std::vector<ValueStyle> value_styles(std::string_view print_format, const std::vector<std::string>& fields);

// `value` by the names of `style`. Bits without a name come last, in hexadecimal. Empty: no name matches.
std::string named_value(const ValueStyle& style, std::uint64_t value);

}  // namespace flamewire::views
