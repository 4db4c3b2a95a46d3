#include "base/wildcard.h"

#include <cstddef>

namespace flamewire {

bool matches_wildcards(std::string_view pattern, std::string_view text) {
    std::size_t star = std::string_view::npos, tried = 0, at = 0, from = 0;
    while (at < text.size()) {
        if (from < pattern.size() && pattern[from] == '*') {
            star = from++;
            tried = at;
        } else if (from < pattern.size() && (pattern[from] == '?' || pattern[from] == text[at])) {
            ++from;
            ++at;
        } else if (star != std::string_view::npos) {
            from = star + 1;  // the last star matches one more character
            at = ++tried;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', from) == std::string_view::npos;
}

}  // namespace flamewire
