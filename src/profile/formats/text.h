// Names are bytes: mostly UTF-8, but file names and JITs can contain anything. Exports must still be valid text.
#pragma once

#include <string>
#include <string_view>

namespace flamewire::profile {

// valid_utf8() with XML markup escaped. Characters that XML 1.0 does not allow become U+FFFD.
std::string xml_text(std::string_view text);

// The first `count` characters (code points) of valid UTF-8.
std::string_view first_characters(std::string_view utf8, std::size_t count);

}  // namespace flamewire::profile
