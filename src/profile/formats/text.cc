#include "profile/formats/text.h"

namespace flamewire::profile {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

// Length of the well-formed sequence that `text` starts with, or 0 (RFC 3629, table of section 4).
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if (!is_continuation(text[i])) return 0;
    const unsigned second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool surrogate = first == 0xed && second >= 0xa0;
    const bool beyond = first == 0xf4 && second >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

std::string_view xml_entity(std::string_view character) {
    switch (character[0]) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        case '\t':
        case '\n':
        case '\r':
            return " ";
        default:
            break;
    }
    const bool control = static_cast<unsigned char>(character[0]) < 0x20 || character == "\x7f";
    const bool no_character = character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
    return control || no_character ? replacement : character;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        out += length == 0 ? replacement : text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string xml_text(std::string_view text) {
    const std::string valid = valid_utf8(text);
    std::string out;
    out.reserve(valid.size());
    for (std::string_view rest = valid; !rest.empty();) {
        const std::size_t length = sequence_length(rest);
        out += xml_entity(rest.substr(0, length));
        rest.remove_prefix(length);
    }
    return out;
}

std::string_view first_characters(std::string_view utf8, std::size_t count) {
    std::size_t end = 0;
    for (; end < utf8.size(); ++end) {
        if (is_continuation(utf8[end])) continue;
        if (count-- == 0) break;
    }
    return utf8.substr(0, end);
}

}  // namespace flamewire::profile
