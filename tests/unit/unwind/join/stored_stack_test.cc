#include "unwind/join/stored_stack.h"

#include <catch2/catch.hpp>

#include "unwind/join/caller_table.h"

using namespace flamewire::unwind;

namespace {

Frame frame(std::uint64_t sp, std::uint64_t pc) {
    Frame frame;
    frame.sp = sp;
    frame.pc = pc;
    frame.pc_at = sp - 8;
    frame.return_address = true;
    return frame;
}

// main (pc 1) calls 2, which calls 3.
const std::vector<Frame> three{frame(1000, 3), frame(2000, 2), frame(3000, 1)};

}  // namespace

TEST_CASE("a stored stack completes frames whose two outermost are stored") {
    StoredStack stack;
    CHECK(stack.assign(three) == 0u);
    std::vector<Frame> cut{frame(500, 4), frame(1000, 3), frame(2000, 2)};
    const auto outside = stack.outside_of(cut);
    REQUIRE(outside == 1u);
    stack.append_to(cut, *outside);
    REQUIRE(cut.size() == 4u);
    CHECK(cut.back().pc == 1u);
    CHECK(cut.back().found_by == FoundBy::joined);
    CHECK_FALSE(stack.outside_of({frame(1000, 9), frame(2000, 2)}));
    CHECK_FALSE(stack.outside_of({frame(1000, 3), frame(2000, 9)}));
}

TEST_CASE("a stored stack reports the first changed frame") {
    StoredStack stack;
    stack.assign(three);
    CHECK(stack.assign({frame(900, 5), frame(2000, 2), frame(3000, 1)}) == 2u);
    CHECK(stack.find(StoredFrame(frame(900, 5))) == 2u);
    CHECK(stack.find(StoredFrame(frame(1000, 3))) == stack.size());
    stack.drop_inside(2000);
    CHECK(stack.size() == 2u);
}

TEST_CASE("a stored stack compares only places that were read") {
    StoredStack stack;
    stack.assign(three);
    std::vector<std::pair<std::size_t, bool>> seen;
    stack.compare(3, {{2992, 1}, {992, 7}}, [&](std::size_t i, bool same) { seen.emplace_back(i, same); });
    CHECK(seen == (std::vector<std::pair<std::size_t, bool>>{{0, true}, {2, false}}));
}

TEST_CASE("a stored stack rejects stacks that switch between memory areas") {
    CHECK(StoredStack::can_store(three));
    CHECK(StoredStack::can_store({frame(1000, 3), frame(1000, 2)}));  // a leaf has its caller's stack pointer
    CHECK_FALSE(StoredStack::can_store({frame(1000, 3), frame(2000, 2), frame(500, 1)}));
    CHECK_FALSE(StoredStack::can_store({}));
}

TEST_CASE("a table of callers reports frames with another caller in the same thread") {
    CallerTable table;
    const StoredFrame called(frame(1000, 3)), one(frame(2000, 2)), other(frame(2000, 9));
    CHECK_FALSE(table.has_several(1, called));
    table.note(1, called, one);
    table.note(1, called, one);
    table.note(2, called, other);
    CHECK_FALSE(table.has_several(1, called));
    table.note(1, called, other);
    CHECK(table.has_several(1, called));
    CHECK_FALSE(table.has_several(2, called));
}
