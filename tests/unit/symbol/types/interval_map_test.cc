#include "symbol/types/interval_map.h"

#include <catch2/catch.hpp>

#include <random>

namespace flamewire::symbol {
namespace {

constexpr std::uint32_t none = IntervalMap::none;

TEST_CASE("nested intervals: the innermost owner wins, the outer resumes") {
    //  0:  10 ............................ 50
    //  1:       20 ........ 40
    //  2:             30 .. 40
    //  3:                               [50, 60) touches
    const IntervalMap map({{10, 50, 0}, {20, 40, 1}, {30, 40, 2}, {50, 60, 3}});
    CHECK(map.find(9) == none);
    CHECK(map.find(10) == 0);
    CHECK(map.find(19) == 0);
    CHECK(map.find(20) == 1);
    CHECK(map.find(30) == 2);
    CHECK(map.find(39) == 2);
    CHECK(map.find(40) == 0);
    CHECK(map.find(49) == 0);
    CHECK(map.find(50) == 3);
    CHECK(map.find(60) == none);
    CHECK(map.find(~std::uint64_t{0}) == none);
}

TEST_CASE("empty, reversed and extreme intervals") {
    CHECK(IntervalMap().find(0) == none);
    CHECK(IntervalMap({{5, 5, 1}, {9, 3, 2}}).empty());
    const std::uint64_t last = ~std::uint64_t{0};
    const IntervalMap map({{0, 1, 7}, {last - 1, last, 8}});
    CHECK(map.find(0) == 7);
    CHECK(map.find(1) == none);
    CHECK(map.find(last - 1) == 8);
    CHECK(map.find(last) == none);
}

TEST_CASE("any set of intervals gives the same answers as a search through all of them") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<Interval> intervals;
        for (std::uint32_t i = 0; i < 30; ++i) {
            const std::uint64_t start = random() % 100;
            intervals.push_back({start, start + random() % 20, static_cast<std::uint32_t>(random() % 40)});
        }
        const IntervalMap map(intervals);
        for (std::uint64_t address = 0; address < 130; ++address) {
            std::uint32_t expected = none;
            for (const Interval& i : intervals)
                if (address >= i.start && address < i.end && (expected == none || i.owner > expected))
                    expected = i.owner;
            REQUIRE(map.find(address) == expected);
        }
        for (const Interval& piece : map.covered(5)) {
            CHECK(piece.owner == 5);
            CHECK(map.find(piece.start) != none);
            CHECK(map.find(piece.end - 1) != none);
        }
    }
}

}  // namespace
}  // namespace flamewire::symbol
