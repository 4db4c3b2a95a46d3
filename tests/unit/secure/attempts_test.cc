#include "secure/attempts.h"

#include <catch2/catch.hpp>

using flamewire::secure::Attempts;

namespace {
constexpr std::uint64_t second = 1'000'000'000;
}

TEST_CASE("the third failure within a minute makes an address wait") {
    Attempts attempts;
    attempts.failed("192.0.2.1", 100 * second);
    attempts.failed("192.0.2.1", 110 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 110 * second) == 0);
    attempts.failed("192.0.2.1", 120 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 120 * second) == 30 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 149 * second) == 1 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 150 * second) == 0);
    CHECK(attempts.wait_left_ns("192.0.2.2", 120 * second) == 0);
    // Another failure at once makes it wait again; a minute after the first it begins anew.
    attempts.failed("192.0.2.1", 151 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 151 * second) == 30 * second);
    attempts.failed("192.0.2.1", 300 * second);
    CHECK(attempts.wait_left_ns("192.0.2.1", 300 * second) == 0);
}

TEST_CASE("a right key forgives") {
    Attempts attempts;
    for (std::uint64_t i = 0; i < 3; ++i) attempts.failed("a", i);
    attempts.succeeded("a");
    CHECK(attempts.wait_left_ns("a", 3) == 0);
}

TEST_CASE("what is remembered has a bound, and the oldest goes") {
    Attempts attempts;
    for (std::uint64_t round = 0; round < 3; ++round) attempts.failed("first", 1);
    for (std::size_t i = 0; i + 1 < Attempts::max_addresses; ++i) attempts.failed("address " + std::to_string(i), 10);
    CHECK(attempts.wait_left_ns("first", 20) > 0);
    attempts.failed("one more", 20);
    CHECK(attempts.wait_left_ns("first", 20) == 0);
}
