// The page as one file: nothing in it can close an element early, and the answers are unchanged.
#include "profile/formats/html.h"

#include <catch2/catch.hpp>
#include <zlib.h>

#include <string>

namespace flamewire::profile {

namespace {

std::string element(const std::string& page, const std::string& open, const std::string& close) {
    const std::size_t from = page.find(open);
    REQUIRE(from != std::string::npos);
    const std::size_t begin = from + open.size();
    return page.substr(begin, page.find(close, begin) - begin);
}

std::string decoded(std::string_view base64) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : base64) {
        if (c == '=') break;
        const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        REQUIRE(digits.find(c) != std::string_view::npos);
        bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
        if ((count += 6) < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 255);
    }
    return bytes;
}

std::string answers_of(const std::string& page, std::size_t size) {
    const std::string packed = decoded(element(page, "id=\"flamewire-answers\">", "</script>"));
    std::string out(size + 1, '\0');
    uLongf length = out.size();
    REQUIRE(uncompress(reinterpret_cast<Bytef*>(out.data()), &length, reinterpret_cast<const Bytef*>(packed.data()),
                       packed.size()) == Z_OK);
    out.resize(length);
    return out;
}

std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
}

}  // namespace

TEST_CASE("a page in one file keeps its answers, whatever names they contain") {
    for (const std::string& answers :
         {std::string("{}"),
          std::string("{\"names\":[\"</script><script>alert(1)</script>\",\"<!-- \",\"\xE2\x80\xA8\"]}"),
          std::string(300'000, 'x'), std::string("1"), std::string("12"), std::string("123")}) {
        const std::string page = html({"demo", "", "", answers}).value();
        CHECK(answers_of(page, answers.size()) == answers);
        CHECK(count(page, "<script") == 2);
        CHECK(count(page, "</script>") == 2);
        CHECK(page.find("alert") == std::string::npos);
    }
}

TEST_CASE("title, style and script of a page stay inside of their elements") {
    const std::string page = html({"</title><script>alert(1)</script> & \"x\"", "a{content:'</style><b>'}",
                                   "const a = '</script>', b = `<!-- </SCRIPT`, c = /<script/;", "{}"})
                                 .value();
    CHECK(element(page, "<title>", "</title>") ==
          "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;x&quot;");
    CHECK(element(page, "<style>\n", "</style>") == "a{content:'<\\/style><b>'}");
    CHECK(element(page, "<script type=\"module\">\n", "</script>") ==
          "const a = '<\\/script>', b = `<\\!-- <\\/SCRIPT`, c = /<script/;");
    // It may not make network requests.
    CHECK(page.find("default-src 'none'") != std::string::npos);
    CHECK(count(page, "http") == 1);  // http-equiv
}

}  // namespace flamewire::profile
