#include "agent/recording/names_rate_limit.h"

#include <catch2/catch.hpp>

using flamewire::agent::NamesRateLimit;

TEST_CASE("kernel names are looked for every ten seconds, and on slow CPUs a hundredth of the time") {
    constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms;
    NamesRateLimit pace;
    CHECK(pace.may_begin(0));  // the first pass waits for nothing
    pace.begin(5 * second);
    pace.spend(5 * second + 50 * ms, 50 * ms);
    CHECK_FALSE(pace.may_begin(15 * second - 1));
    CHECK(pace.may_begin(15 * second));

    // 90 pieces of 5 ms are 450 ms of CPU: 45 s after the last of them.
    pace.begin(100 * second);
    for (std::uint64_t piece = 1; piece <= 90; ++piece) pace.spend(100 * second + piece * 100 * ms, 5 * ms);
    CHECK_FALSE(pace.may_begin(154 * second - 1));
    CHECK(pace.may_begin(154 * second));
    // What one pass took is not the next one's.
    pace.begin(200 * second);
    pace.spend(201 * second, 5 * ms);
    CHECK(pace.may_begin(210 * second));
}
