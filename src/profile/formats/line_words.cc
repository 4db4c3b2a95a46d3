#include "profile/formats/line_words.h"

#include <cstddef>

namespace flamewire::profile {

void trim_front(std::string_view& text) {
    std::size_t at = 0;
    while (at < text.size() && is_space(text[at])) ++at;
    text.remove_prefix(at);
}

void trim_back(std::string_view& text) {
    while (!text.empty() && (is_space(text.back()) || text.back() == '\r')) text.remove_suffix(1);
}

std::string_view take_word(std::string_view& text) {
    trim_front(text);
    std::size_t end = 0;
    while (end < text.size() && !is_space(text[end])) ++end;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    return word;
}

}  // namespace flamewire::profile
