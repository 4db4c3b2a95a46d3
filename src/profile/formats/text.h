// Names are bytes: mostly UTF-8, but a file name or a JIT may say anything. Exports must be valid text all the same.
#pragma once

#include <string>
#include <string_view>

namespace flamewire::profile {

// valid_utf8() with the characters of XML markup escaped and those that XML 1.0 has no place for replaced by U+FFFD.
std::string xml_text(std::string_view text);

// The first `count` characters (code points) of valid UTF-8.
std::string_view first_characters(std::string_view utf8, std::size_t count);

}  // namespace flamewire::profile
