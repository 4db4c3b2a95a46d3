#include "perf/round_order.h"

#include <catch2/catch.hpp>

using namespace flamewire::perf;

TEST_CASE("records are sorted by time, equal ones in their original order") {
    struct Item {
        std::uint64_t time_ns = 0;
        std::size_t number = 0;
        bool operator==(const Item&) const = default;
    };
    RoundOrder<Item> order;
    for (const std::uint64_t time : {5, 7, 9, 1, 7, 8, 2, 3}) order.put({time, order.size()});
    CHECK(order.ready_at_round() == 0);  // records of the next round may be as old as those of this one
    REQUIRE(order.ready_all() == 8);
    std::vector<Item> sorted;
    for (std::size_t i = 0; i < 8; ++i) sorted.push_back(order[i]);
    CHECK(sorted == std::vector<Item>{{1, 3}, {2, 6}, {3, 7}, {5, 0}, {7, 1}, {7, 4}, {8, 5}, {9, 2}});
    order.put({11, 8});
    CHECK(order.ready_at_round() == 8);  // up to the newest record of the first round
    CHECK(order.ready_half() == 5);
    order.drop(8);
    CHECK(order.size() == 1);
}
