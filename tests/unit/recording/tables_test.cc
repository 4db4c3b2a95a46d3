#include <catch2/catch.hpp>

#include "recording/interned_tables.h"

namespace flamewire::recording {

TEST_CASE("each entry is in one batch, and ids continue across batches") {
    EpochTables tables;
    CHECK(tables.strings.add("a") == 1);
    CHECK(tables.strings.add("b") == 2);
    CHECK(tables.processes.add({}) == 1);
    tables.processes.unsent()[0].pid = 7;
    wire::Batch first;
    tables.flush(first);
    CHECK(first.string_base == 1);
    CHECK(first.strings == std::vector<std::string>{"a", "b"});
    REQUIRE(first.processes.size() == 1);
    CHECK(first.processes[0].pid == 7);
    CHECK(tables.strings.unsent_count() == 0);

    CHECK(tables.strings.next() == 3);
    CHECK(tables.strings.add("c") == 3);
    CHECK(tables.events.add({}) == 1);
    wire::Batch second;
    tables.flush(second);
    CHECK(second.string_base == 3);
    CHECK(second.strings == std::vector<std::string>{"c"});
    CHECK(second.events.size() == 1);
    CHECK(second.process_base == 2);
    CHECK(second.processes.empty());
}

// Without new locations too: the ids of stacks are sent relative to the next location.
TEST_CASE("a batch states where each table continues") {
    InternedTables tables;
    const wire::Id location = tables.location({.module = 1, .address = 5});
    wire::Batch batch;
    tables.flush(batch);
    tables.stack(0, location);
    wire::Batch next;
    tables.flush(next);
    CHECK(next.location_base == 2);
    CHECK(next.stacks == std::vector<wire::StackNode>{{0, location}});
}

TEST_CASE("equal locations and stacks have one id") {
    InternedTables tables;
    const wire::Location start{.module = 1, .address = 5};
    std::vector<wire::Location> locations{{}, start};
    for (const auto member : {&wire::Location::module, &wire::Location::flags, &wire::Location::name,
                              &wire::Location::file, &wire::Location::line}) {
        wire::Location& other = locations.emplace_back(start);
        if (member != &wire::Location::module && member != &wire::Location::flags) other.address = 0;
        other.*member += 1;
    }
    locations.push_back({.module = 1, .address = 6});
    std::vector<wire::StackNode> stacks{{}, {0, 1}, {0, 2}, {1, 2}, {1, 1}};
    for (int turn = 0; turn < 2; ++turn) {
        for (wire::Id id = 1; id < locations.size(); ++id) REQUIRE(tables.location(locations[id]) == id);
        for (wire::Id id = 1; id < stacks.size(); ++id)
            REQUIRE(tables.stack(stacks[id].parent, stacks[id].location) == id);
        wire::Batch batch;
        tables.flush(batch);
        CHECK(batch.locations.size() == (turn == 0 ? locations.size() - 1 : 0));
        CHECK(batch.stacks.size() == (turn == 0 ? stacks.size() - 1 : 0));
    }
    CHECK(tables.all_locations() == locations);
    CHECK(tables.all_stacks() == stacks);
    tables = InternedTables();
    CHECK(tables.location(locations.back()) == 1);
}

}  // namespace flamewire::recording
