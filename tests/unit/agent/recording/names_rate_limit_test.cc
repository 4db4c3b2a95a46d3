#include "agent/recording/names_rate_limit.h"

#include <catch2/catch.hpp>

using flamewire::agent::NamesRateLimit;

TEST_CASE("kernel names are resolved every ten seconds, and on slow CPUs in at most 1 % of the time") {
    constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms;
    NamesRateLimit limit;
    CHECK(limit.may_begin(0));  // the first pass starts at once
    limit.begin(5 * second);
    limit.spend(5 * second + 50 * ms, 50 * ms);
    CHECK_FALSE(limit.may_begin(15 * second - 1));
    CHECK(limit.may_begin(15 * second));

    // 90 pieces of 5 ms use 450 ms of CPU, so the next pass starts 45 s after the last of them.
    limit.begin(100 * second);
    for (std::uint64_t piece = 1; piece <= 90; ++piece) limit.spend(100 * second + piece * 100 * ms, 5 * ms);
    CHECK_FALSE(limit.may_begin(154 * second - 1));
    CHECK(limit.may_begin(154 * second));
    // The time of one pass does not count for the next one.
    limit.begin(200 * second);
    limit.spend(201 * second, 5 * ms);
    CHECK(limit.may_begin(210 * second));
}
