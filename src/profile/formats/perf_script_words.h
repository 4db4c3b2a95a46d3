// Splits a line of `perf script` into words, for its parsers.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "profile/formats/perf_script_lines.h"

namespace flamewire::profile::perf_script_words {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
inline bool is_space(char c) { return c == ' ' || c == '\t'; }
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

void trim_front(std::string_view& text);
void trim_back(std::string_view& text);
// Removes the first word and the spaces before it from `text`.
std::string_view take_word(std::string_view& text);

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
