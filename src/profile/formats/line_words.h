// Words of a line of text, for the parsers of text formats. A word ends at a space or tab.
#pragma once

#include <string_view>

namespace flamewire::profile {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_space(char c) { return c == ' ' || c == '\t'; }
inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

void trim_front(std::string_view& text);
// Also removes a carriage return.
void trim_back(std::string_view& text);
// Removes the first word and the spaces before it from `text`.
std::string_view take_word(std::string_view& text);

}  // namespace flamewire::profile
