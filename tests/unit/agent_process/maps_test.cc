#include "agent/process/maps.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

TEST_CASE("a line of maps") {
    const auto entry =
        parse_maps_line("7f3a10000000-7f3a10025000 r-xp 00028000 08:02 131090                     /usr/lib/libc.so.6");
    REQUIRE(entry);
    CHECK(entry->start == 0x7f3a10000000);
    CHECK(entry->end == 0x7f3a10025000);
    CHECK(entry->file_offset == 0x28000);
    CHECK(entry->executable);
    CHECK(entry->device_major == 8);
    CHECK(entry->device_minor == 2);
    CHECK(entry->inode == 131090);
    CHECK(entry->path == "/usr/lib/libc.so.6");
    CHECK_FALSE(entry->deleted);
}

TEST_CASE("addresses and inodes of 64 bits on any machine") {
    const auto entry =
        parse_maps_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 18446744073709551615 [vsyscall]");
    REQUIRE(entry);
    CHECK(entry->start == 0xffffffffff600000);
    CHECK(entry->inode == 18446744073709551615u);
    CHECK(entry->path == "[vsyscall]");
}

TEST_CASE("names that are hard to parse") {
    CHECK(parse_maps_line("1000-2000 r-xp 00000000 00:00 0 ")->path.empty());
    CHECK(parse_maps_line("1000-2000 rw-p 00000000 00:00 0")->path.empty());
    CHECK_FALSE(parse_maps_line("1000-2000 rw-p 00000000 00:00 0")->executable);
    CHECK(parse_maps_line("1000-2000 r-xp 00000000 08:01 7 /a dir/b  c")->path == "/a dir/b  c");
    // The kernel escapes only the newline, so a backslash is unchanged.
    CHECK(parse_maps_line("1000-2000 r-xp 00000000 08:01 7 /a\\012b\\134c\\")->path == "/a\nb\\134c\\");
    const auto gone = parse_maps_line("1000-2000 r-xp 00000000 08:01 7 /opt/app (deleted)");
    CHECK(gone->path == "/opt/app");
    CHECK(gone->deleted);
}

TEST_CASE("texts that are not a line of maps") {
    for (const char* line :
         {"", "-", "1000", "1000-", "1000-2000", "1000-2000 r-x", "2000-1000 r-xp 0 08:01 7 /a",
          "1000-1000 r-xp 0 08:01 7 /a", "1000-2000 r-xp 0 08-01 7 /a", "1000-2000 r-xp x 08:01 7 /a",
          "1000-2000 r-xp 0 08:01 x", "11111111111111111-2 r-xp 0 08:01 7 /a"})
        CHECK_FALSE(parse_maps_line(line));
}
