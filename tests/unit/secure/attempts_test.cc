#include "secure/attempts.h"

#include <catch2/catch.hpp>

using flamewire::secure::Attempts;

namespace {
constexpr std::uint64_t second = 1'000'000'000;
}

TEST_CASE("an address may fail twenty times at once, and then twice per second") {
    Attempts attempts;
    for (int i = 0; i < 19; ++i) attempts.failed("192.0.2.1", 100 * second);
    CHECK_FALSE(attempts.exceeded("192.0.2.1", 100 * second));
    attempts.failed("192.0.2.1", 100 * second);
    CHECK(attempts.exceeded("192.0.2.1", 100 * second));
    CHECK_FALSE(attempts.exceeded("192.0.2.2", 100 * second));
    CHECK_FALSE(attempts.exceeded("192.0.2.1", 100 * second + second / 2));
    attempts.failed("192.0.2.1", 100 * second + second / 2);
    CHECK(attempts.exceeded("192.0.2.1", 100 * second + second / 2));
    for (int i = 0; i < 100; ++i) attempts.failed("192.0.2.1", 101 * second);
    CHECK(attempts.exceeded("192.0.2.1", 101 * second));
    // After ten seconds, all of them are dropped.
    for (int i = 0; i < 19; ++i) attempts.failed("192.0.2.1", 111 * second);
    CHECK_FALSE(attempts.exceeded("192.0.2.1", 111 * second));
}

TEST_CASE("the number of addresses is limited, and the oldest is dropped") {
    Attempts attempts;
    for (int i = 0; i < 20; ++i) attempts.failed("first", 1);
    for (std::size_t i = 0; i + 1 < Attempts::max_addresses; ++i)
        attempts.failed("address " + std::to_string(i), 100 * second);
    CHECK(attempts.exceeded("first", 2));
    attempts.failed("one more", 100 * second);
    CHECK_FALSE(attempts.exceeded("first", 2));
}
