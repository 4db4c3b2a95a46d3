// Weights by address and of inlined functions. Expected values are counted by hand.
#include "profile/query/code_heat.h"

#include <catch2/catch.hpp>

#include "../batch_maker.h"

namespace flamewire::profile {

using wire::location_flag::return_address;

// main calls itself once and then work, which has inner inlined. 3 samples at one address of work and 2 at another.
static Store recursive_work() {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id app = maker.module("/usr/bin/app", "id");
    const wire::Id library = maker.module("/usr/lib/lib.so", "id2");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const auto main_call = maker.location(app, 0x101, return_address);
    maker.row(1, event, thread, maker.stack({main_call, main_call, maker.location(app, 0x300)}), 3, 30);
    maker.row(1, event, thread, maker.stack({main_call, maker.location(app, 0x304)}), 2, 20);
    maker.row(1, event, thread, maker.stack({maker.location(library, 0x300)}), 1, 10);
    Store store;
    REQUIRE(store.apply(maker.take()));
    REQUIRE(symbolize(store, {{0x100, {{"main", "main.cc", 10, false}}},
                              {0x300, {{"inner", "work.h", 5, true}, {"work.isra.0", "work.cc", 20, false}}},
                              {0x304, {{"work.isra.0", "work.cc", 21, false}}}}) == 4);
    return store;
}

TEST_CASE("names of clones and parts have one base name") {
    CHECK(base_function("work") == "work");
    CHECK(base_function("work.isra.0") == "work");
    CHECK(base_function("work.constprop.0.cold") == "work");
    CHECK(base_function("work(int) [clone .part.0] [clone .cold]") == "work(int)");
    CHECK(base_function("main.main.func1") == "main.main.func1");  // Go
    CHECK(base_function("") == "");
}

TEST_CASE("an address has its own weight, and a total that counts each stack once") {
    const Store store = recursive_work();
    const auto rows = address_heat(store, {}, 1);
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].address == CodeAddress{0x101, true});
    CHECK(rows[0].self == Weight{});
    CHECK(rows[0].total == Weight{5, 50});  // not 8: the recursion counts once
    CHECK(rows[1].address == CodeAddress{0x300, false});
    CHECK(rows[1].self == Weight{3, 30});
    CHECK(rows[2].self == Weight{2, 20});
    // Code of the other module at the same address is separate.
    const auto other = address_heat(store, {}, 2);
    REQUIRE(other.size() == 1);
    CHECK(other[0].self == Weight{1, 10});
    Filter none;
    none.tids = {7};
    CHECK(address_heat(store, none, 1).empty());
}

TEST_CASE("the places of a function are all addresses where samples saw it, including inlined ones") {
    const Store store = recursive_work();
    const auto work = code_places(store, "work", "app");
    REQUIRE(work.size() == 2);
    CHECK(work[0].address == CodeAddress{0x300, false});
    CHECK_FALSE(work[0].inlined);
    CHECK(code_places(store, "work", "").size() == 3);
    CHECK(code_places(store, "work", "nothing").empty());
    const auto inner = code_places(store, "inner", "app");
    REQUIRE(inner.size() == 1);
    CHECK(inner[0].inlined);
    CHECK(code_places(store, "no_such", "").empty());
}

TEST_CASE("a line has the code of that line, else that of the nearest line with samples") {
    const Store store = recursive_work();
    const auto addresses = [&](std::uint32_t line) {
        std::vector<std::uint64_t> out;
        for (const CodePlace& place : line_places(store, "work.cc", line))
            if (place.module == 1) out.push_back(place.address.value);
        return out;
    };
    CHECK(addresses(20) == std::vector<std::uint64_t>{0x300});
    CHECK(addresses(500) == std::vector<std::uint64_t>{0x304});
    CHECK(addresses(1) == std::vector<std::uint64_t>{0x300});
    CHECK(line_places(store, "none.cc", 1).empty());
}

TEST_CASE("a line lists the functions that are inlined there") {
    const Store store = recursive_work();
    const auto rows = inlined_at(store, {}, "work.cc");
    REQUIRE(rows.size() == 2);  // of two modules
    CHECK(rows[0].line == 20);
    CHECK(store.string(rows[0].function.name) == "inner");
    CHECK(store.string(rows[0].file) == "work.h");
    CHECK(rows[0].function_line == 5);
    CHECK(rows[0].total == Weight{3, 30});
    CHECK(rows[1].total == Weight{1, 10});
    CHECK(inlined_at(store, {}, "main.cc").empty());
}

}  // namespace flamewire::profile
