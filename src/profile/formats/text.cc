#include "profile/formats/text.h"

#include "base/utf8.h"

namespace flamewire::profile {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

std::string_view xml_entity(std::string_view character) {
    switch (character[0]) {
        case '&': return "&amp;";
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '"': return "&quot;";
        case '\'': return "&#39;";
        case '\t':
        case '\n':
        case '\r': return " ";
        default: break;
    }
    const bool control = static_cast<unsigned char>(character[0]) < 0x20 || character == "\x7f";
    const bool no_character = character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
    return control || no_character ? replacement : character;
}

}  // namespace

std::string xml_text(std::string_view text) {
    const std::string valid = valid_utf8(text);
    std::string out;
    out.reserve(valid.size());
    for (std::string_view rest = valid; !rest.empty();) {
        const std::size_t length = utf8_length(rest);
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
