#include "recording/row_table.h"

#include <catch2/catch.hpp>

namespace flamewire::recording {

// So many keys, and such numbers, that places in the table collide.
TEST_CASE("rows of one key add up, in the order in which the keys came first") {
    RowTable table;
    std::vector<wire::Row> expected;
    for (std::uint32_t key = 0; key < 7776; ++key)
        expected.push_back({.bucket = key % 6,
                            .event = key / 6 % 6,
                            .thread = key / 36 % 6,
                            .cpu = key / 216 % 6 << 16,
                            .stack = key / 1296,
                            .count = 1,
                            .weight = key});
    for (int turn = 0; turn < 2; ++turn)
        for (const wire::Row& row : expected) table.add(row);
    for (wire::Row& row : expected) {
        row.count *= 2;
        row.weight *= 2;
    }
    CHECK(table.take() == expected);
    CHECK(table.take().empty());
    table.add(expected[0]);
    CHECK(table.take() == std::vector{expected[0]});
}

}  // namespace flamewire::recording
