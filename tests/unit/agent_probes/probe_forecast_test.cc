// The predicted slowdown. The expected figures are computed by hand from the definition in the header.
#include "agent/probes/probe_forecast.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr ProbeLimits limits{100, UINT64_MAX, 17};

ProbeLoad sampled(std::uint64_t hits_per_second, std::uint64_t hit_ns) {
    ProbeLoad load;
    load.hits_per_second = hits_per_second;
    load.hit_ns = hit_ns;
    load.may_thin = true;
    return load;
}

}  // namespace

TEST_CASE("slowdown of a program that uses one CPU") {
    // 1,000 hits of 600 ns + 2,000 ns are 2.6 ms per second. The program uses at most a CPU, so 2.6 permille.
    const ProbeForecast small = forecast({{sampled(1'000, 600)}, 2'000, second_ns}, limits);
    CHECK(small.slowdown_permille == 2);
    CHECK(small.thinning == 1);
    CHECK_FALSE(small.too_slow);
    // An idle program is compared with one CPU, too.
    CHECK(forecast({{sampled(1'000, 600)}, 2'000, 0}, limits).slowdown_permille == 2);
}

TEST_CASE("slowdown of a program that uses several CPUs") {
    // 4 CPUs, of which 10,000 hits of 10 us take 0.1 s: 100 ms of 3.9 s.
    ProbeLoad counted = sampled(10'000, 10'000);
    counted.samples = false;
    CHECK(forecast({{counted}, 2'000, 4 * second_ns}, limits).slowdown_permille == 25);
}

TEST_CASE("fewer samples if all of them would cost too much") {
    // All samples: 100,000 * 2,600 ns = 260 permille. One in 17: 60 + 11.7 permille.
    const ProbeForecast thinned = forecast({{sampled(100'000, 600)}, 2'000, second_ns}, limits);
    CHECK(thinned.thinning == 17);
    CHECK(thinned.slowdown_permille == 71);
    CHECK_FALSE(thinned.too_slow);
    // A probe with its own rate is not thinned.
    ProbeLoad fixed = sampled(100'000, 600);
    fixed.may_thin = false;
    CHECK(forecast({{fixed}, 2'000, second_ns}, limits).too_slow);
    fixed.period = 100;  // --count 100: 60 + 2 permille
    CHECK(forecast({{fixed}, 2'000, second_ns}, limits).slowdown_permille == 62);
    fixed.period = 1;
    fixed.highest_sample_rate = 1'000;  // @1000: 60 + 2 permille
    CHECK(forecast({{fixed}, 2'000, second_ns}, limits).slowdown_permille == 62);
}

TEST_CASE("fewer samples if there would be too many") {
    // 30,000 cheap hits per second.
    const ProbeForecast thinned =
        forecast({{sampled(20'000, 100), sampled(10'000, 100)}, 100, second_ns}, {100, 20'000, 17});
    CHECK(thinned.thinning == 17);
    CHECK(thinned.slowdown_permille == 3);
    CHECK_FALSE(thinned.too_slow);
    CHECK(forecast({{sampled(20'000, 100)}, 100, second_ns}, {100, 20'000, 17}).thinning == 1);
    ProbeLoad fixed = sampled(30'000, 100);
    fixed.may_thin = false;
    CHECK(forecast({{fixed}, 100, second_ns}, {100, 20'000, 17}).thinning == 1);
}

TEST_CASE("hits alone cost too much") {
    const ProbeForecast refused = forecast({{sampled(100'000, 9'600)}, 2'000, 2 * second_ns}, limits);
    CHECK(refused.too_slow);
    // 960 ms, relative to the 1.04 s that the program used itself: 923 permille and a few samples.
    CHECK(refused.slowdown_permille >= 923);
    CHECK(refused.slowdown_permille <= 925);
}
