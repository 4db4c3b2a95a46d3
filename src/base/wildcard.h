// Patterns with `*` and `?`. Not fnmatch, which adds 40 KB of wide-character code to a static program.
#pragma once

#include <string_view>

namespace flamewire {

// Whether `*`, for any text, and `?`, for any character, can make `pattern` equal to `text`.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace flamewire
