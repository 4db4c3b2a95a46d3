#include "process/address_space.h"

#include <catch2/catch.hpp>

#include <random>

#include "process/shared_space.h"

using namespace flamewire::process;
using Change = AddressSpace::Change;

TEST_CASE("a mapping over the middle of another splits it") {
    AddressSpace space;
    CHECK(space.insert({0x1000, 0x5000, 0x200, 1}) == Change::added);
    CHECK(space.insert({0x2000, 0x3000, 0, 2}) == Change::replaced);
    REQUIRE(space.mappings().size() == 3);
    CHECK(space.mappings()[0] == Mapping{0x1000, 0x2000, 0x200, 1});
    CHECK(space.mappings()[1] == Mapping{0x2000, 0x3000, 0, 2});
    // Its file offset moves with its start: 0x200 + (0x3000 - 0x1000).
    CHECK(space.mappings()[2] == Mapping{0x3000, 0x5000, 0x2200, 1});
    CHECK(space.find(0xfff) == nullptr);
    CHECK(space.find(0x4fff)->start == 0x3000);
    CHECK(space.find(0x5000) == nullptr);
}

TEST_CASE("a mapping across several cuts the outer ones and replaces the inner ones") {
    AddressSpace space;
    space.insert({0x1000, 0x2000, 0, 1});
    space.insert({0x2000, 0x3000, 0, 2});
    space.insert({0x4000, 0x6000, 0x100, 3});
    CHECK(space.insert({0x1800, 0x5000, 0, 4}) == Change::replaced);
    REQUIRE(space.mappings().size() == 3);
    CHECK(space.mappings()[0] == Mapping{0x1000, 0x1800, 0, 1});
    CHECK(space.mappings()[1] == Mapping{0x1800, 0x5000, 0, 4});
    CHECK(space.mappings()[2] == Mapping{0x5000, 0x6000, 0x1100, 3});
}

TEST_CASE("known mappings change nothing") {
    AddressSpace space;
    space.insert({0x1000, 0x5000, 0x1000, 1});
    // A part of it with the same file offset: mprotect splits mappings like this.
    CHECK(space.insert({0x2000, 0x3000, 0x2000, 1}) == Change::none);
    CHECK(space.mappings().size() == 1);
    CHECK(space.insert({0x2000, 0x3000, 0x7000, 1}) == Change::replaced);
    CHECK(space.insert({0x9000, 0x9000, 0, 1}) == Change::none);
    CHECK_FALSE(space.erase(0x6000, 0x7000));
    CHECK(space.erase(0, ~std::uint64_t{0}));
    CHECK(space.mappings().empty());
}

TEST_CASE("a full map accepts only mappings that replace others, and a split drops the upper part") {
    AddressSpace space(2);
    space.insert({0x1000, 0x5000, 0, 1});
    CHECK_FALSE(space.full());
    space.insert({0x7000, 0x9000, 0, 2});
    CHECK(space.full());
    CHECK(space.insert({0xa000, 0xb000, 0, 3}) == Change::none);
    CHECK(space.erase(0x2000, 0x3000));
    REQUIRE(space.mappings().size() == 2);
    CHECK(space.mappings()[0] == Mapping{0x1000, 0x2000, 0, 1});
    CHECK(space.find(0x3000) == nullptr);
    CHECK(space.insert({0x1000, 0x2000, 0, 4}) == Change::replaced);
    CHECK(space.find(0x1000)->module == 4);
    // Two mappings that lose their ends stay two.
    CHECK(space.erase(0x1800, 0x8000));
    REQUIRE(space.mappings().size() == 2);
    CHECK(space.mappings()[1] == Mapping{0x8000, 0x9000, 0x1000, 2});
}

TEST_CASE("an empty range removes nothing") {
    AddressSpace space;
    space.insert({0x1000, 0x5000, 0, 1});
    CHECK_FALSE(space.erase(0x2000, 0x2000));
    CHECK(space.mappings().size() == 1);
}

TEST_CASE("random mappings agree with a page table") {
    std::mt19937 random(7);
    AddressSpace space;
    std::vector<std::uint64_t> offset(64, 0);
    std::vector<std::uint32_t> module(64, 0);
    for (std::uint32_t round = 1; round < 3000; ++round) {
        const std::uint64_t begin = random() % 63;
        const std::uint64_t end = begin + 1 + random() % (64 - begin);
        if (random() % 4 == 1) {
            space.fill({begin << 12, end << 12, 0, round});
            for (std::uint64_t page = begin; page < end; ++page) {
                if (module[page] != 0) continue;
                module[page] = round;
                offset[page] = (page - begin) << 12;
            }
        } else if (random() % 4 == 0) {
            space.erase(begin << 12, end << 12);
            for (std::uint64_t page = begin; page < end; ++page) module[page] = 0;
        } else {
            space.insert({begin << 12, end << 12, 0, round});
            for (std::uint64_t page = begin; page < end; ++page) {
                module[page] = round;
                offset[page] = (page - begin) << 12;
            }
        }
        for (std::uint64_t page = 0; page < 64; ++page) {
            const Mapping* found = space.find((page << 12) + 5);
            REQUIRE((found != nullptr) == (module[page] != 0));
            if (found == nullptr) continue;
            REQUIRE(found->module == module[page]);
            REQUIRE(found->file_offset + ((page << 12) - found->start) == offset[page]);
        }
    }
}

TEST_CASE("a shared space is copied when one side changes") {
    std::uint64_t counter = 0;
    SharedSpace parent(counter);
    parent.insert({0x1000, 0x2000, 0, 1});
    SharedSpace child = parent;
    CHECK(child.generation() == parent.generation());
    child.insert({0x3000, 0x4000, 0, 2});
    CHECK(parent.find(0x3000) == nullptr);
    CHECK(child.find(0x3000) != nullptr);
    CHECK(child.generation() != parent.generation());
}

TEST_CASE("copies keep the limit") {
    std::uint64_t counter = 0;
    SharedSpace parent(counter, AddressSpace(2));
    parent.insert({0x1000, 0x2000, 0, 1});
    CHECK_FALSE(parent.shared());
    SharedSpace child = parent;
    CHECK((parent.shared() && child.shared()));
    CHECK(child.insert({0x3000, 0x4000, 0, 1}));
    CHECK_FALSE((parent.shared() || child.shared()));
    CHECK_FALSE(child.insert({0x5000, 0x6000, 0, 1}));
}

TEST_CASE("the generation changes exactly if an earlier answer may be different now") {
    std::uint64_t counter = 0;
    SharedSpace space(counter);
    space.insert({0x1000, 0x2000, 0, 1});
    const std::uint64_t first = space.generation();
    space.insert({0x3000, 0x4000, 0, 2});  // not looked up yet
    CHECK(space.generation() == first);
    space.note_unknown_answer();
    space.insert({0x5000, 0x6000, 0, 2});
    CHECK(space.generation() != first);
    const std::uint64_t second = space.generation();
    space.insert({0x5000, 0x5800, 0x900, 3});
    CHECK(space.generation() != second);
    const std::uint64_t third = space.generation();
    space.forget_answers();
    CHECK(space.generation() != third);
    const std::uint64_t fourth = space.generation();
    AddressSpace seen;
    seen.insert({0x1000, 0x2000, 0, 7});
    space.note_unknown_answer();
    CHECK_FALSE(space.fill(seen));
    CHECK(space.generation() == fourth);
    seen.insert({0x7000, 0x8000, 0, 7});
    CHECK(space.fill(seen));
    CHECK(space.generation() != fourth);
    CHECK(space.find(0x1000)->module == 1);
}
