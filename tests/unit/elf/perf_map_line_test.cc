#include "elf/perf_map_line.h"

#include <catch2/catch.hpp>

using namespace flamewire::elf;

TEST_CASE("lines of a perf map") {
    const auto line = parse_perf_map_line("7f00 1a LazyCompile:*hot /a b/c.js:1:2");
    REQUIRE(line);
    CHECK(line->start == 0x7f00);
    CHECK(line->size == 0x1a);
    CHECK(line->name == "LazyCompile:*hot /a b/c.js:1:2");
    CHECK(parse_perf_map_line("0x7f00 0x1A f")->size == 0x1a);
    CHECK(parse_perf_map_line("7f00 1 f\r")->name == "f");
    for (const std::string_view bad : {"", " ", "7f00", "7f00 1", "7f00 1 ", "7f00 0 f", "zz 1 f", "7f00 zz f",
                                       "ffffffffffffffff 2 f", "12345678901234567 1 f", "7f00\t1\tf"})
        CHECK_FALSE(parse_perf_map_line(bad));
}
