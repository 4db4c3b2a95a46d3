// What the words of a line of `perf script` say, for its parsers.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "profile/formats/line_words.h"
#include "profile/formats/perf_script_lines.h"

namespace flamewire::profile::perf_script_words {

inline bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

template <class Number>
bool number_of(std::string_view text, Number& into) {
    if (text.empty()) return false;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && stop == text.data() + text.size();
}

// "12" or "12/34": the thread alone, or process and thread.
bool ids_of(std::string_view word, PerfSampleLine& into);
// "[003]"
bool cpu_of(std::string_view word, std::uint32_t& cpu);
// "1234.567890:"
bool time_of(std::string_view word, std::uint64_t& ns);

}  // namespace flamewire::profile::perf_script_words
