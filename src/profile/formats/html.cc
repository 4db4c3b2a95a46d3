#include "profile/formats/html.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>

#include "profile/formats/text.h"

namespace flamewire::profile {

namespace {

Result<std::string> compressed(std::string_view text) {
    uLongf size = compressBound(static_cast<uLong>(text.size()));
    std::string out(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                  static_cast<uLong>(text.size()), 6) != Z_OK)
        return fail(ErrorCode::io, "there is no memory to compress the answers of the page");
    out.resize(size);
    return out;
}

std::string base64(std::string_view bytes) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto byte = [&](std::size_t at) {
            return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : std::uint32_t{0};
        };
        const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
        out += digits[group >> 18];
        out += digits[group >> 12 & 63];
        out += i + 1 < bytes.size() ? digits[group >> 6 & 63] : '=';
        out += i + 2 < bytes.size() ? digits[group & 63] : '=';
    }
    return out;
}

bool begins_ignoring_case(std::string_view text, std::string_view word) {
    return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
               return a == std::tolower(static_cast<unsigned char>(b));
           });
}

// Adds a backslash where the text would close or change its element. The backslash has no effect in strings, templates
// and regular expressions of scripts, or in strings of styles. Our own files have such text nowhere else.
std::string inert(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        out += text[i];
        const std::string_view rest = text.substr(i);
        if (begins_ignoring_case(rest, "</script") || begins_ignoring_case(rest, "</style") || rest.starts_with("<!--"))
            out += '\\';
    }
    return out;
}

}  // namespace

Result<std::string> html(const HtmlPage& page) {
    const std::string answers = base64(TRY(compressed(page.answers)));
    std::string out =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"dark light\">\n<title>";
    out += xml_text(page.title);
    out += "</title>\n<style>\n";
    out += inert(page.style);
    out +=
        "</style>\n</head>\n<body>\n<div id=\"app\"></div>\n"
        "<noscript>This file needs JavaScript, which is disabled in this browser.</noscript>\n"
        "<script type=\"text/plain\" id=\"flamewire-answers\">";
    out += answers;
    out += "</script>\n<script type=\"module\">\n";
    out += inert(page.script);
    out += "</script>\n</body>\n</html>\n";
    return out;
}

}  // namespace flamewire::profile
