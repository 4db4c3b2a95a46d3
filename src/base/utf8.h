// UTF-8 in foreign data: names of functions, files, processes and hosts can be any bytes. Source: RFC 3629, section 4.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamewire {

// Length of the well-formed sequence at the start of `text`, which must not be empty. 0 if there is none.
std::size_t utf8_length(std::string_view text);

bool is_valid_utf8(std::string_view text);

// `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// valid_utf8() for a line of a terminal or a log. Replaces control characters (also C1: U+009B starts terminal
// commands), line separators and bidirectional formatting characters with a space.
std::string printable(std::string_view text);

}  // namespace flamewire
