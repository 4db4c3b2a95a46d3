#include "base/range_map.h"

#include <catch2/catch.hpp>

#include <array>
#include <random>

using flamewire::RangeMap;

TEST_CASE("a new range cuts, splits and replaces others") {
    RangeMap<int> map;
    map.lay(100, 200, 1);
    map.lay(150, 160, 2);  // splits
    map.lay(190, 250, 3);  // cuts
    map.lay(300, 300, 4);  // empty
    REQUIRE(map.size() == 4);
    CHECK(map.find(99) == nullptr);
    CHECK(map.find(149)->second.value == 1);
    CHECK(map.find(150)->second.value == 2);
    CHECK(map.find(160)->second.value == 1);
    CHECK(map.find(160)->first == 160);
    CHECK(map.find(190)->second.value == 3);
    CHECK(map.find(250) == nullptr);
    map.lay(0, 1000, 5);
    CHECK(map.size() == 1);
}

TEST_CASE("a range map gives the same answers as an array") {
    std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same each time
    const auto below = [&](std::uint64_t end) {
        return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
    };
    for (int round = 0; round < 200; ++round) {
        RangeMap<std::uint64_t> map;
        std::array<std::uint64_t, 64> painted{};
        for (std::uint64_t value = 1; value < 40; ++value) {
            const std::uint64_t start = below(64), end = start + below(64 - start + 1);
            const bool erases = below(5) == 0;
            if (erases)
                map.erase(start, end);
            else
                map.lay(start, end, value);
            for (std::uint64_t at = start; at < end; ++at) painted[at] = erases ? 0 : value;
            std::uint64_t covered = 0;
            map.for_each_in(0, 64, [&](const auto& range) { covered += range.second.end - range.first; });
            std::uint64_t expected = 0;
            for (std::uint64_t at = 0; at < 64; ++at) {
                const auto* range = map.find(at);
                REQUIRE((range == nullptr ? 0 : range->second.value) == painted[at]);
                if (painted[at] != 0) ++expected;
            }
            REQUIRE(covered == expected);
        }
    }
}
