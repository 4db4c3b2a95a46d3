#include "server/session/health_history.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "server/limits.h"

using namespace flamewire::server;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

std::string frame(std::string_view type, std::uint64_t mono_ns, std::string_view more = "") {
    return fmt::format(R"({{"type":"{}","mono_ns":{}{}}})", type, mono_ns, more);
}

}  // namespace

TEST_CASE("health: the newest of each type, and the newest round of processes") {
    HealthHistory health;
    CHECK(health.newest().empty());
    REQUIRE(health.add(frame("system", 2 * second)));
    REQUIRE(health.add(frame("process", 2 * second, R"(,"pid":1)")));
    REQUIRE(health.add(frame("system", 4 * second)));
    REQUIRE(health.add(frame("process", 4 * second, R"(,"pid":1)")));
    REQUIRE(health.add(frame("process", 4 * second + 1000, R"(,"pid":2)")));
    const auto newest = health.newest();
    REQUIRE(newest.size() == 2);
    CHECK(newest.at("system").back().mono_ns == 4 * second);
    REQUIRE(newest.at("process").size() == 2);
    CHECK(newest.at("process").front().json == frame("process", 4 * second, R"(,"pid":1)"));
}

TEST_CASE("health: a range of time, with an exclusive end") {
    HealthHistory health;
    for (std::uint64_t i = 1; i <= 10; ++i) REQUIRE(health.add(frame("network", i * second)));
    CHECK(health.between("network", 3 * second, 6 * second).size() == 3);
    CHECK(health.between("network", 0, UINT64_MAX).size() == 10);
    CHECK(health.between("disk", 0, UINT64_MAX).empty());
    CHECK(health.version() == 10);
}

TEST_CASE("health: of many rounds, a limited number is returned, evenly spaced and whole") {
    HealthHistory health;
    for (std::uint64_t i = 0; i < 100; ++i)
        for (int pid = 1; pid <= 2; ++pid)
            REQUIRE(health.add(
                frame("process", i * 2 * second + static_cast<std::uint64_t>(pid), fmt::format(R"(,"pid":{})", pid))));
    const auto some = health.between("process", 0, UINT64_MAX, 10);
    REQUIRE(some.size() == 20);
    for (std::size_t i = 0; i < some.size(); i += 2) {
        CHECK(some[i].mono_ns == i * 10 * second + 1);
        CHECK(some[i + 1].mono_ns == some[i].mono_ns + 1);
    }
}

TEST_CASE("health: invalid frames are not kept") {
    HealthHistory health;
    for (const char* bad :
         {"", "[]", "{", R"({"type":"system"})", R"({"type":"other","mono_ns":1})", R"({"type":"system","mono_ns":-1})",
          R"({"type":"system","mono_ns":1.5})", "{\"type\":\"system\",\"mono_ns\":1,\"x\":\"\xff\"}"})
        CHECK_FALSE(health.add(bad));
    const std::uint64_t before = times_reached(Limit::health_frame);
    CHECK_FALSE(health.add(frame("system", 1, fmt::format(R"(,"x":"{}")", std::string(300 << 10, 'x')))));
    CHECK(times_reached(Limit::health_frame) == before + 1);
    const std::string shell = frame("system", 1, R"(,"x":"")");
    CHECK(HealthHistory().add(
        frame("system", 1, fmt::format(R"(,"x":"{}")", std::string((256 << 10) - shell.size(), 'x')))));
    CHECK_FALSE(HealthHistory().add(
        frame("system", 1, fmt::format(R"(,"x":"{}")", std::string((256 << 10) - shell.size() + 1, 'x')))));
    CHECK(times_reached(Limit::health_frame) == before + 2);
    const auto nested = [](std::size_t levels) {
        return frame("system", 1, R"(,"x":)" + std::string(levels, '[') + std::string(levels, ']'));
    };
    CHECK(HealthHistory().add(nested(63)));
    for (const std::size_t levels : {64, 131'000}) CHECK_FALSE(HealthHistory().add(nested(levels)));
    CHECK_FALSE(health.add(std::string(200'000, '[')));
    REQUIRE(health.add(frame("system", 5)));
    CHECK_FALSE(health.add(frame("system", 4)));  // time must not decrease
    CHECK(health.newest().at("system").size() == 1);
}

TEST_CASE("health: a day stays within its bounds, with its newest part in full") {
    HealthHistory health(1000);
    const std::uint64_t rounds = 24 * 3600 / 2;
    for (std::uint64_t i = 0; i < rounds; ++i) REQUIRE(health.add(frame("system", i * 2 * second)));
    const auto all = health.between("system", 0, UINT64_MAX);
    CHECK(all.size() <= 1000);
    CHECK(all.size() > 500);
    CHECK(all.front().mono_ns == 0);
    CHECK(all.back().mono_ns == (rounds - 1) * 2 * second);
    for (std::size_t i = all.size() - 200; i < all.size(); ++i)
        REQUIRE(all[i].mono_ns - all[i - 1].mono_ns == 2 * second);
    // Older frames are evenly spaced: no gap exceeds four average ones of the older 500.
    for (std::size_t i = 1; i < all.size(); ++i)
        REQUIRE(all[i].mono_ns - all[i - 1].mono_ns <= 4 * 86'400 * second / 500);
    CHECK(health.memory_bytes() > all.size() * sizeof(HealthHistory::Frame));
    CHECK(health.memory_bytes() < 200'000);
}

TEST_CASE("health: rounds stay whole when a day of them is thinned") {
    HealthHistory health(1000);
    for (std::uint64_t i = 0; i < 10'000; ++i)
        for (std::uint64_t pid = 1; pid <= 3; ++pid)
            REQUIRE(health.add(frame("process", i * 2 * second + pid, fmt::format(R"(,"pid":{})", pid))));
    const auto all = health.between("process", 0, UINT64_MAX);
    CHECK(all.size() <= 1000);
    REQUIRE(all.size() % 3 == 0);
    for (std::size_t i = 0; i < all.size(); i += 3) REQUIRE(all[i + 2].mono_ns == all[i].mono_ns + 2);
}

TEST_CASE("health: large frames stay within the limit of bytes") {
    HealthHistory health(3600, 1 << 20);
    const std::uint64_t before = times_reached(Limit::health_bytes);
    const std::string large = fmt::format(R"(,"x":"{}")", std::string(50'000, 'x'));
    for (std::uint64_t i = 0; i < 400; ++i) {
        REQUIRE(health.add(frame("system", i * 2 * second, large)));
        REQUIRE(health.memory_bytes() < (1 << 20) + 100'000);
    }
    CHECK(health.newest().at("system").back().mono_ns == 399 * 2 * second);
    CHECK(health.between("system", 0, UINT64_MAX).size() >= 5);
    CHECK(times_reached(Limit::health_bytes) > before);
}
