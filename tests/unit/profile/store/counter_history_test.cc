#include "profile/store/counter_history.h"

#include <catch2/catch.hpp>

#include <numeric>

using namespace flamewire;
using namespace flamewire::profile;

namespace {

constexpr std::uint64_t half_s = 500'000'000;

CounterPoint point(std::uint64_t index, std::uint64_t value) {
    return {index * half_s, (index + 1) * half_s, value, half_s, half_s / 2, wire::CounterStatus::counted, index == 0};
}

std::uint64_t sum(std::span<const CounterPoint> points) {
    return std::accumulate(points.begin(), points.end(), std::uint64_t{0},
                           [](std::uint64_t all, const CounterPoint& one) { return all + one.value; });
}

}  // namespace

TEST_CASE("each counter, thread and CPU has its own series") {
    CounterHistory history;
    history.add({.name = 1}, point(0, 5));
    history.add({.name = 1, .thread = 7}, point(0, 2));
    history.add({.name = 1, .cpu_plus_1 = 1}, point(0, 3));
    history.add({.name = 2}, point(0, 9));
    history.add({.name = 1}, point(1, 6));
    REQUIRE(history.series().size() == 4);
    CHECK(history.series()[0].points.size() == 2);
    CHECK(sum(history.series()[0].points) == 11);
    CHECK(history.coarse_until_ns() == 0);
}

TEST_CASE("an interval is in the window that contains its middle") {
    CounterHistory history;
    for (std::uint64_t i = 0; i < 10; ++i) history.add({.name = 1}, point(i, 1U << i));
    const CounterSeries& series = history.series()[0];
    CHECK(sum(points_between(series, 0, UINT64_MAX)) == 1023);
    CHECK(sum(points_between(series, 2 * half_s, 4 * half_s)) == (4 | 8));
    // The middles are at 0.25 s, 0.75 s, and so on.
    CHECK(sum(points_between(series, half_s / 2, half_s / 2 + 1)) == 1);
    CHECK(sum(points_between(series, half_s / 2 + 1, half_s)) == 0);
    CHECK(points_between(series, 100 * half_s, 200 * half_s).empty());
}

TEST_CASE("late intervals and those that end before they begin are left out; a hole is a gap") {
    CounterHistory history;
    history.add({.name = 1}, point(3, 1));
    history.add({.name = 1}, point(2, 1));
    history.add({.name = 1}, {9, 8, 1, 1, 1, wire::CounterStatus::counted, false});
    history.add({.name = 1}, point(6, 1));
    const auto& points = history.series()[0].points;
    REQUIRE(points.size() == 2);
    CHECK(points[1].after_gap);
}

TEST_CASE("a day of readings stays within its bounds, and the sums are exact") {
    constexpr std::size_t max_points = 20'000;
    constexpr std::uint64_t readings = 24 * 3600 * 2, counters = 12;
    CounterHistory history(max_points);
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < readings; ++i)
        for (StringId name = 1; name <= counters; ++name) {
            history.add({.name = name}, point(i, i + name));
            if (name == 5) expected += i + name;
        }
    // 48 bytes per point, a fifth of unused capacity, and little else.
    CHECK(history.memory_bytes() < max_points * sizeof(CounterPoint) * 5 / 4 + 100'000);
    const CounterSeries& series = history.series()[4];
    CHECK(sum(series.points) == expected);
    CHECK(series.points.front().start_ns == 0);
    CHECK(series.points.back().end_ns == readings * half_s);
    for (std::size_t i = 1; i < series.points.size(); ++i)
        REQUIRE(series.points[i].start_ns == series.points[i - 1].end_ns);
    // The newest points are unchanged. The oldest have larger steps, and coarse_until_ns() reports them.
    CHECK(series.points.back().end_ns - series.points.back().start_ns == half_s);
    CHECK(series.points.front().end_ns - series.points.front().start_ns > 8 * half_s);
    CHECK(history.coarse_until_ns() > 0);
    CHECK(history.coarse_until_ns() < readings * half_s - 60 * half_s);
    // Steps are even: the older half, 833 points of 20,000 / 12 / 2, spans a day. None exceeds four average steps.
    for (const CounterPoint& one : series.points) REQUIRE(one.end_ns - one.start_ns <= 4 * 86'400'000'000'000 / 600);
    // Times add up as values do.
    CHECK(series.points.front().enabled_ns == series.points.front().end_ns);
    CHECK(series.points.front().running_ns == series.points.front().end_ns / 2);
}

TEST_CASE("intervals are not merged across a gap, and the status counted is kept") {
    CounterHistory history(4);
    history.add({.name = 1}, point(0, 1));
    history.add({.name = 1}, point(5, 2));  // after a gap
    CounterPoint none = point(6, 0);
    none.status = wire::CounterStatus::not_counted;
    none.running_ns = 0;
    history.add({.name = 1}, none);
    history.add({.name = 1}, point(7, 8));
    history.add({.name = 1}, point(8, 16));  // the fifth: the older half becomes coarser
    const auto& points = history.series()[0].points;
    REQUIRE(points.size() == 4);
    CHECK(points[0].value == 1);
    CHECK(points[1].value == 2);
    CHECK(points[1].after_gap);
    CHECK(points[1].status == wire::CounterStatus::counted);
    CHECK(points[1].end_ns == 7 * half_s);
    CHECK(sum(points) == 27);
}

TEST_CASE("a counter with gaps everywhere stays within its bounds, too, and its sum is exact") {
    CounterHistory history(100);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        CounterPoint one = point(2 * i, 1);
        one.after_gap = true;
        history.add({.name = 1}, one);
        history.add({.name = 2}, one);
        REQUIRE(history.series()[0].points.size() <= 100);
    }
    CHECK(sum(history.series()[0].points) == 10'000);
    CHECK(sum(history.series()[1].points) == 10'000);
    CHECK(history.series()[0].points.back().end_ns - history.series()[0].points.back().start_ns == half_s);
}
