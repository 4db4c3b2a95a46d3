// Call chains from branch records, written by hand.
#include "unwind/walk/branch_stack.h"

#include <catch2/catch.hpp>

using namespace flamewire::unwind;
using Frames = std::vector<flamewire::CodeAddress>;

namespace {

// main calls a at 0x1010, a calls b at 0x2010, b calls c at 0x3010; c runs at 0x4005.
const std::vector<Branch> calls{{0x3010, 0x4000}, {0x2010, 0x3000}, {0x1010, 0x2000}};
const Frames known{{0x4005, false}, {0x3010, false}, {0x2010, false}, {0x1010, false}};

}  // namespace

TEST_CASE("Records are calls that have not returned") {
    bool cut = true;
    CHECK(frames_of_branches(0x4005, calls, {}, 32, cut) == known);
    CHECK_FALSE(cut);
    CHECK(frames_of_branches(0x4005, calls, {}, 3, cut) == known);
    CHECK(cut);
    CHECK(frames_of_branches(0x4005, calls, {}, 0, cut) == known);
    CHECK_FALSE(cut);
    CHECK(frames_of_branches(0x4005, {}, {}, 32, cut) == Frames{{0x4005, false}});
    CHECK_FALSE(cut);
}

TEST_CASE("The kernel's chain continues where the records end") {
    bool cut = false;
    Frames longer = known;
    longer.push_back({0x515, true});
    longer.push_back({0x616, true});
    SECTION("complete") {
        const std::vector<std::uint64_t> chain{0x4005, 0x3015, 0x2015, 0x1015, 0x515, 0x616};
        CHECK(frames_of_branches(0x4005, calls, chain, 3, cut) == longer);
        CHECK_FALSE(cut);
    }
    SECTION("without the frames that lack a frame pointer") {
        const std::vector<std::uint64_t> chain{0x4005, 0x2015, 0x1015, 0x515, 0x616};
        CHECK(frames_of_branches(0x4005, calls, chain, 3, cut) == longer);
    }
    SECTION("not if the chain lacks the last record's function") {
        const std::vector<std::uint64_t> chain{0x4005, 0x3015, 0x2015, 0x9915, 0x515, 0x616};
        CHECK(frames_of_branches(0x4005, calls, chain, 3, cut) == known);
        CHECK(cut);
        // After a call, but too far for one instruction; and before it.
        CHECK(frames_of_branches(0x4005, calls, std::vector<std::uint64_t>{0x4005, 0x1020, 0x515}, 3, cut) == known);
        CHECK(frames_of_branches(0x4005, calls, std::vector<std::uint64_t>{0x4005, 0x1010, 0x515}, 3, cut) == known);
    }
    SECTION("not if the chain ends there") {
        const std::vector<std::uint64_t> chain{0x4005, 0x3015, 0x2015, 0x1015};
        CHECK(frames_of_branches(0x4005, calls, chain, 3, cut) == known);
        CHECK(cut);
    }
}

TEST_CASE("Recursion: the chain continues after as many frames as there are records") {
    const std::vector<Branch> recursive(3, Branch{0x1010, 0x1000});
    const std::vector<std::uint64_t> chain{0x1005, 0x1015, 0x1015, 0x1015, 0x1015, 0x1015, 0x515};
    bool cut = false;
    const Frames expected{{0x1005, false}, {0x1010, false}, {0x1010, false}, {0x1010, false},
                          {0x1015, true},  {0x1015, true},  {0x515, true}};
    CHECK(frames_of_branches(0x1005, recursive, chain, 3, cut) == expected);
}
