// UTF-8 in what others wrote: names of functions, files, processes and hosts may be any bytes. Source: RFC 3629, section 4.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamewire {

// Length of the well-formed sequence that `text`, which is not empty, starts with; 0: there is none.
std::size_t utf8_length(std::string_view text);

bool is_valid_utf8(std::string_view text);

// `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// valid_utf8() for a line of a terminal or a log: a space instead of each control character, of C1 (U+009B begins a
// terminal's commands), line separator and control of the writing direction.
std::string printable(std::string_view text);

}  // namespace flamewire
