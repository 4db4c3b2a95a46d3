#include "base/utf8.h"

#include <catch2/catch.hpp>

#include <string>

using namespace flamewire;

TEST_CASE("UTF-8 as RFC 3629 defines it") {
    for (const std::string good : {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                   "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        CAPTURE(good);
        CHECK(utf8_length(good) == good.size());
        CHECK(utf8_length(good + "z") == good.size());
        CHECK(is_valid_utf8(good));
        CHECK(valid_utf8(good) == good);
    }
    // Overlong forms, surrogates, code points above U+10FFFF, and truncated sequences.
    for (const std::string bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                  "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc2", "\xe2\x82", "\xf0\x9f\x98"}) {
        CAPTURE(bad);
        CHECK(utf8_length(bad) == 0);
        CHECK_FALSE(is_valid_utf8("a" + bad));
        CHECK(valid_utf8("a" + bad).starts_with("a\xef\xbf\xbd"));
    }
    CHECK(is_valid_utf8(""));
}

TEST_CASE("printable: no character can move the cursor, start a command or change the text direction") {
    CHECK(printable("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") == "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK(printable("a\x1b[31m\n\tb\r\x7f") == "a [31m  b  ");
    CHECK(printable("\xc2\x9b\x33\x31m\xc2\x80") == " 31m ");                    // U+009B
    CHECK(printable("\xe2\x80\xae\xe2\x81\xa6x\xd8\x9c") == "  x ");             // U+202E, U+2066, U+061C
    CHECK(printable("\xe2\x80\xa8\xe2\x80\x8f") == "  ");                        // U+2028, U+200F
    CHECK(printable("\xe2\x80\x8d\xe2\x80\xaf") == "\xe2\x80\x8d\xe2\x80\xaf");  // U+200D, U+202F
    CHECK(printable("\xff"
                    "a") ==
          "\xef\xbf\xbd"
          "a");
    CHECK(printable({"\0x", 2}) == " x");
}
