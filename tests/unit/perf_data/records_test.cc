// The parts that stand alone: names of events, the order of records, address spaces.
#include <catch2/catch.hpp>

#include "file_maker.h"
#include "profile/formats/perf_data/kernel_names.h"
#include "profile/formats/perf_data/processes.h"
#include "profile/formats/perf_data/record_order.h"
#include "profile/formats/perf_data/recorded_event.h"

namespace flamewire::profile::perf_data {

TEST_CASE("names of events are the agent's") {
    CHECK(plain_event_name("cycles:ppp") == "cycles");
    CHECK(plain_event_name("cycles:P") == "cycles");
    CHECK(plain_event_name("cpu_core/cycles/u") == "cycles");
    CHECK(plain_event_name("cpu/mem-loads,ldlat=30/P") == "cpu/mem-loads,ldlat=30/P");
    CHECK(plain_event_name("sched:sched_switch") == "sched:sched_switch");
    CHECK(plain_event_name("") == "");
    CHECK(plain_event_name(":") == ":");
    CHECK(plain_event_name("/") == "/");
    const auto named = [](std::uint32_t type, std::uint64_t config) {
        RecordedEvent event;
        event.type = type;
        event.config = config;
        name_event(event);
        return event.name + " in " + event.unit;
    };
    CHECK(named(0, 0) == "cycles in cycles");
    CHECK(named(0, 0x400000000) == "cycles in cycles");  // of one PMU of a hybrid CPU
    CHECK(named(1, 0) == "cpu-clock in ns");
    CHECK(named(1, 2) == "page-faults in faults");
    CHECK(named(2, 314) == "tracepoint-314 in events");
    CHECK(named(3, 0x10002) == "LLC-load-misses in misses");
    CHECK(named(3, 0x200) == "L1-dcache-prefetches in references");
    CHECK(named(4, 0x1c0) == "r1c0 in events");
    CHECK(named(9, 0xf) == "event-9-f in events");
}

TEST_CASE("records come in the order of their times, equal ones as they stood") {
    Blocks blocks;
    Block& block = *blocks.take(64);
    RecordOrder order;
    for (const std::uint64_t time : {5, 7, 9, 1, 7, 8, 2, 3}) {
        Record record;
        record.time_ns = time;
        record.type = static_cast<std::uint32_t>(order.size());
        order.put(record, block);
    }
    CHECK(order.ready_at_round() == 0);  // what comes in the next round may be as old as what came in this one
    REQUIRE(order.ready_all() == 8);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> times;
    for (std::size_t i = 0; i < 8; ++i) times.emplace_back(order.entry(i).record.time_ns, order.entry(i).record.type);
    CHECK(times == std::vector<std::pair<std::uint64_t, std::uint32_t>>{
                       {1, 3}, {2, 6}, {3, 7}, {5, 0}, {7, 1}, {7, 4}, {8, 5}, {9, 2}});
    Record late;
    late.time_ns = 11;
    order.put(late, block);
    CHECK(order.ready_at_round() == 8);  // up to the newest of the first round
    order.drop(8);
    CHECK(order.size() == 1);
    for (int i = 0; i < 10; ++i) blocks.release(block);
    CHECK(blocks.held_bytes() == 0);
    CHECK(blocks.take(64) == &block);
}

TEST_CASE("functions of the kernel's image, without modules and what is behind its code") {
    const auto functions = image_functions(
        "0000000000000000 A fixed_percpu_data\n"
        "ffffffff9a000000 T _text\n"
        "ffffffff9a000000 T _stext\n"
        "ffffffff9a000100 t first\n"
        "ffffffff9a000200 T second\n"
        "ffffffff9a000300 T _etext\n"
        "ffffffff9b000000 T init_code\n"
        "ffffffffc0000000 t loaded\t[ext4]\n"
        "ffffffff9a000180 t odd\t[odd]\n");
    REQUIRE(functions);
    const auto at = [&](std::uint64_t address) {
        const std::uint32_t found = functions->find(address);
        return found == symbol::SymbolTable::none ? std::string("none") : std::string(functions->name(found));
    };
    CHECK(at(0x1ff) == "first");
    CHECK(at(0x200) == "second");
    CHECK(at(0x1000) == "_etext");
    // Farther behind than any function is long.
    CHECK(at(0x1000000) == "none");
    const std::string_view text =
        "0000000000000000 A __per_cpu_start\nffffffff9a000000 T _stext\nffffffff9a000000 T _text\n"
        "ffffffff9a000040 t one\nffffffff9a000040 T alias\nffffffff9a000080 T two\nffffffff9a0000c0 d data\n"
        "ffffffff9a000100 T three\nffffffff9a000140 T four\nffffffff9a000180 T _etext\nffffffff9a000200 T init\n";
    const auto all = image_functions(text);
    REQUIRE(all);
    for (const std::uint64_t address : {0U, 0x3fU, 0x40U, 0x7fU, 0x80U, 0xc1U, 0x100U, 0x13fU, 0x17fU}) {
        const auto few = image_functions(lines_around(text, {address}));
        REQUIRE(few);
        CHECK(few->name(few->find(address)) == all->name(all->find(address)));
        CHECK(few->range(few->find(address)).end == all->range(all->find(address)).end);
    }
    CHECK(lines_around(text, {0x81}).find("four") == std::string::npos);
    CHECK(lines_around("ffffffff9a000080 T two\nffffffff9a000040 T one\nffffffff9a000180 T _etext\n", {0x41}).empty());
    CHECK_FALSE(image_functions("ffffffff9a000000 T _text\n"));
    CHECK_FALSE(image_functions("0000000000000000 T _text\n0000000000000000 T _etext\n"));
}

TEST_CASE("address spaces: a map takes the place of what was there") {
    Imported job(std::string{});
    Machine machine;
    Modules modules(job, machine);
    std::size_t alive = 0;
    {
        AddressSpace space(modules, alive, 1);
        space.map(0x1000, 0x4000, 0, 1, 2);
        space.map(0x2000, 0x1000, 0x500, 2, 3);  // in the middle of the first
        const auto place = [&](std::uint64_t address) {
            const auto found = space.place_of(address);
            return found ? std::pair{found->area.module, address - found->start + found->area.offset}
                         : std::pair<unwind::ModuleId, std::uint64_t>{0, 0};
        };
        using Place = std::pair<unwind::ModuleId, std::uint64_t>;
        CHECK(place(0xfff) == Place{0, 0});
        CHECK(place(0x1fff) == Place{1, 0xfff});
        CHECK(place(0x2001) == Place{2, 0x501});
        CHECK(place(0x3000) == Place{1, 0x2000});
        CHECK(place(0x4fff) == Place{1, 0x3fff});
        CHECK(place(0x5000) == Place{0, 0});
        const auto copy = space.copy(9);
        CHECK(alive == 6);
        copy->map(0, ~std::uint64_t{0}, 0, 0, 10);  // nothing executable anywhere
        CHECK(copy->empty());
        CHECK(alive == 3);
        space.map(0x4fff, ~std::uint64_t{0}, 0, 3, 4);  // to the end of all addresses
        CHECK(place(0x4ffe) == Place{1, 0x3ffe});
        CHECK(place(0xffff0000) == Place{3, 0xffff0000 - 0x4fff});
        CHECK(space.generation() == 4);
    }
    CHECK(alive == 0);
}

}  // namespace flamewire::profile::perf_data
