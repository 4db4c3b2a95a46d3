// Perf maps: text lines with the names of addresses.
#include "symbol/files/perf_map.h"

#include <catch2/catch.hpp>

namespace flamewire::symbol {

TEST_CASE("perf maps: names of addresses; the last line for an address counts") {
    const PerfMap map(
        "1000 20 Interpreter\n"
        "0x7f0000001000 0x10 int com.example.Main.run(int, long)\r\n"
        "2000 100 old\n"
        "2010 10 new\n"
        "3000 10 at the end");
    CHECK(map.lines() == 5);
    CHECK(map.find(0xfff).empty());
    CHECK(map.find(0x1000) == "Interpreter");
    CHECK(map.find(0x101f) == "Interpreter");
    CHECK(map.find(0x1020).empty());
    CHECK(map.find(0x7f0000001008) == "int com.example.Main.run(int, long)");
    CHECK(map.find(0x200f) == "old");
    CHECK(map.find(0x2010) == "new");
    CHECK(map.find(0x2020) == "old");
    CHECK(map.find(0x300f) == "at the end");
    CHECK_FALSE(map.cut());
}

TEST_CASE("perf maps: invalid lines are skipped") {
    const PerfMap map(
        "\n \n1000\n1000 10\n1000 10 \nxyz 10 a\n1000 xyz a\n1000 0 nothing\nffffffffffffffff 2 around\n"
        "11112222333344445 1 long\n4000 8 good\n");
    CHECK(map.lines() == 1);
    CHECK(map.find(0x1000).empty());
    CHECK(map.find(0x4007) == "good");
    CHECK(PerfMap().find(0).empty());
    CHECK(PerfMap("").find(0).empty());
}

TEST_CASE("perf maps: too many lines are dropped, and cut() reports it") {
    std::string text;
    for (std::size_t i = 0; i <= PerfMap::max_lines; ++i) text += "1 1 a\n";
    const PerfMap map(std::move(text));
    CHECK(map.cut());
    CHECK(map.lines() == PerfMap::max_lines);
    CHECK(map.find(1) == "a");
}

}  // namespace flamewire::symbol
