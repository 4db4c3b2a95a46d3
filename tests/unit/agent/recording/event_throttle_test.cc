#include "agent/recording/event_throttle.h"

#include <catch2/catch.hpp>

using flamewire::agent::EventThrottle;

namespace {

constexpr std::uint64_t start_ns = 5'000'000'000, ms = 1'000'000;

void add_samples(EventThrottle& throttle, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) throttle.add_sample();
}

}  // namespace

TEST_CASE("faults are too frequent above 2,000 samples in 100 ms") {
    EventThrottle throttle;
    throttle.begin(start_ns);
    add_samples(throttle, EventThrottle::max_samples);
    CHECK(throttle.complete(start_ns + 1));
    CHECK(throttle.too_many(start_ns + EventThrottle::window_ns - 1));
    CHECK_FALSE(throttle.too_many(start_ns + EventThrottle::window_ns));
    throttle.add_sample();
    CHECK(throttle.too_many(start_ns + EventThrottle::window_ns));
}

TEST_CASE("a window with few faults is complete when its time is over") {
    EventThrottle throttle;
    throttle.begin(start_ns);
    add_samples(throttle, EventThrottle::max_samples - 1);
    CHECK_FALSE(throttle.complete(start_ns + EventThrottle::window_ns - 1));
    CHECK(throttle.complete(start_ns + EventThrottle::window_ns));
    CHECK_FALSE(throttle.too_many(start_ns + EventThrottle::window_ns));
    // The rate decides, so a late call does not make a difference.
    add_samples(throttle, 2 * EventThrottle::max_samples);
    CHECK(throttle.too_many(start_ns + 2 * EventThrottle::window_ns));
    CHECK_FALSE(throttle.too_many(start_ns + 3 * EventThrottle::window_ns));
}

TEST_CASE("a lost fault counts as sixteen samples, and a new window starts at zero") {
    EventThrottle throttle;
    throttle.begin(start_ns);
    throttle.add_lost(EventThrottle::max_samples / EventThrottle::lost_weight - 1);
    CHECK_FALSE(throttle.complete(start_ns + ms));
    throttle.add_lost(1);
    CHECK(throttle.complete(start_ns + ms));
    CHECK(throttle.too_many(start_ns + ms));
    throttle.begin(start_ns + ms);
    CHECK_FALSE(throttle.complete(start_ns + 2 * ms));
    CHECK_FALSE(throttle.too_many(start_ns + 2 * ms));
}
