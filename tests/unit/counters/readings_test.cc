// Readings that wait are merged, without changing their sums.
#include "counters/readings.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::counters;
using wire::CounterReading;
using wire::CounterStatus;
using wire::CounterValue;

namespace {

CounterValue value(wire::Id name, std::uint64_t count, wire::Id thread = 0, std::uint32_t cpu_plus_1 = 0) {
    CounterValue one;
    one.name = name;
    one.value = count;
    one.enabled_ns = 10 * count;
    one.running_ns = count;
    one.thread = thread;
    one.cpu_plus_1 = cpu_plus_1;
    return one;
}

}  // namespace

TEST_CASE("neighbors are merged, sums stay") {
    std::vector<CounterReading> readings;
    for (std::uint64_t i = 0; i < 9; ++i)
        readings.push_back({i * 100, (i + 1) * 100, false, {value(1, i), value(2, 1'000 + i)}});
    shorten(readings, 4, 1'000);
    REQUIRE(readings.size() == 3);  // 9 -> 5 -> 3
    CHECK((readings[0].start_ns == 0 && readings[0].end_ns == 400));
    CHECK((readings[1].start_ns == 400 && readings[1].end_ns == 800));
    CHECK((readings[2].start_ns == 800 && readings[2].end_ns == 900));
    CHECK(readings[0].values[0].value == 0 + 1 + 2 + 3);
    CHECK(readings[0].values[0].enabled_ns == 60);
    CHECK(readings[1].values[1].value == 4'000 + 4 + 5 + 6 + 7);
    CHECK(readings[2].values[0].value == 8);
}

TEST_CASE("short lists stay unchanged; too many values are merged like too many readings") {
    std::vector<CounterReading> readings{{0, 1, false, {value(1, 1)}}, {1, 2, false, {value(1, 2)}}};
    const auto before = readings;
    shorten(readings, 2, 2);
    CHECK(readings == before);
    shorten(readings, 2, 1);
    CHECK(readings.size() == 1);
    shorten(readings, 0, 0);  // nothing left to merge
    CHECK(readings.size() == 1);
    std::vector<CounterReading> none;
    shorten(none, 0, 0);
    CHECK(none.empty());
}

TEST_CASE("gaps and scopes stay separate") {
    std::vector<CounterReading> readings{
        {0, 10, false, {value(1, 1)}},        {0, 10, true, {value(1, 5, 7), value(1, 6, 8)}},
        {10, 20, false, {value(1, 2)}},       {10, 20, false, {value(1, 4, 9), value(1, 3, 7)}},
        {20, 30, true, {value(1, 100)}},      {20, 30, false, {value(1, 1, 0, 2)}},
        {31, 40, false, {value(1, 1, 0, 2)}},
    };
    shorten(readings, 1, 1'000);
    REQUIRE(readings.size() == 5);
    CHECK((readings[0].end_ns == 20 && readings[0].values[0].value == 3));
    CHECK((readings[1].after_gap && readings[1].end_ns == 20));
    REQUIRE(readings[1].values.size() == 3);
    CHECK((readings[1].values[0].thread == 7 && readings[1].values[0].value == 8));
    CHECK((readings[1].values[1].thread == 8 && readings[1].values[1].value == 6));
    CHECK((readings[1].values[2].thread == 9 && readings[1].values[2].value == 4));
    CHECK((readings[2].after_gap && readings[2].values[0].value == 100));
    CHECK((readings[3].end_ns == 30 && readings[4].start_ns == 31));  // the readings are not adjacent
}

TEST_CASE("a counted value in one of two makes the merged one counted") {
    std::vector<CounterReading> readings{{0, 10, false, {value(1, 0), value(2, 0)}},
                                         {10, 20, false, {value(1, 3), value(2, 0)}}};
    readings[0].values[0].status = readings[0].values[1].status = CounterStatus::not_counted;
    readings[1].values[1].status = CounterStatus::not_counted;
    shorten(readings, 1, 100);
    CHECK(readings[0].values[0].status == CounterStatus::counted);
    CHECK(readings[0].values[1].status == CounterStatus::not_counted);
}
