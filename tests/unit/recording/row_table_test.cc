#include "recording/row_table.h"

#include <catch2/catch.hpp>

namespace flamewire::recording {

TEST_CASE("rows of one key add up, in the order in which they came first") {
    RowTable table;
    const wire::Row first{.bucket = 1, .event = 2, .thread = 3, .cpu = 4, .stack = 5, .count = 1, .weight = 10};
    std::vector<wire::Row> expected{first};
    for (const auto member : {&wire::Row::event, &wire::Row::thread, &wire::Row::cpu, &wire::Row::stack})
        (expected.emplace_back(first).*member) += 1;
    expected.emplace_back(first).bucket += 1;
    for (int turn = 0; turn < 2; ++turn)
        for (const wire::Row& row : expected) table.add(row);
    for (wire::Row& row : expected) {
        row.count = 2;
        row.weight = 20;
    }
    CHECK(table.take() == expected);
    CHECK(table.take().empty());
    table.add(first);
    CHECK(table.take() == std::vector{first});
}

TEST_CASE("a row table holds any number of rows") {
    RowTable table;
    for (int turn = 0; turn < 2; ++turn)
        for (std::uint32_t stack = 0; stack < 10'000; ++stack)
            table.add(
                {.bucket = stack / 7, .event = 1, .thread = 1, .cpu = 0, .stack = stack, .count = 1, .weight = 3});
    const std::vector<wire::Row> rows = table.take();
    REQUIRE(rows.size() == 10'000);
    for (std::uint32_t stack = 0; stack < rows.size(); ++stack)
        REQUIRE((rows[stack].stack == stack && rows[stack].count == 2 && rows[stack].weight == 6));
}

}  // namespace flamewire::recording
