// Parts without a whole file: names of events, blocks of records, address spaces.
#include <catch2/catch.hpp>

#include "file_maker.h"
#include "profile/formats/perf_data/blocks.h"
#include "profile/formats/perf_data/kernel_names.h"
#include "profile/formats/perf_data/processes.h"
#include "profile/formats/perf_data/recorded_event.h"

namespace flamewire::profile::perf_data {

TEST_CASE("names of events equal the agent's") {
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
    CHECK(named(0, 0x400000000) == "cycles in cycles");  // one PMU of a hybrid CPU
    CHECK(named(1, 0) == "cpu-clock in ns");
    CHECK(named(1, 2) == "page-faults in faults");
    CHECK(named(2, 314) == "tracepoint-314 in events");
    CHECK(named(3, 0x10002) == "LLC-load-misses in misses");
    CHECK(named(3, 0x200) == "L1-dcache-prefetches in references");
    CHECK(named(4, 0x1c0) == "r1c0 in events");
    CHECK(named(9, 0xf) == "event-9-f in events");
}

TEST_CASE("a block is used again when none of its records waits") {
    Blocks blocks;
    Block& block = *blocks.take(64);
    Blocks::hold(block);
    blocks.release(block);
    CHECK(blocks.held_bytes() == 64);
    CHECK(blocks.take(64) != &block);
    blocks.release(block);
    CHECK(blocks.held_bytes() == 64);
    CHECK(blocks.take(64) == &block);
}

TEST_CASE("functions of the kernel's image, without modules and without symbols after its code") {
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
    // Farther away than any function is long.
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

namespace {

perf::MmapRecord code_at(std::uint32_t pid, std::uint64_t start, std::uint64_t length, std::string_view path) {
    perf::MmapRecord map;
    map.pid = map.tid = pid;
    map.start = start;
    map.length = length;
    map.protection = 5;
    map.path = path;
    return map;
}

perf::TaskRecord fork_of(std::uint32_t parent, std::uint32_t pid) {
    perf::TaskRecord task;
    task.parent_pid = task.parent_tid = parent;
    task.pid = task.tid = pid;
    return task;
}

}  // namespace

TEST_CASE("modules: memory without a file is JIT code") {
    Imported job(std::string{});
    Machine machine;
    Modules modules(job, machine);
    const auto kind = [&](std::string_view path) { return modules.of_mapping(code_at(5, 0, 0, path)).kind; };
    CHECK(kind("/usr/bin/x") == wire::ModuleKind::file);
    CHECK(kind("[vdso]") == wire::ModuleKind::vdso);
    for (const char* path : {"", "//anon", "[heap]", "/SYSV00000000", "/dev/zero", "/memfd:doublemapper (deleted)",
                             "/dev/ashmem/dalvik-jit-code-cache"})
        CHECK(kind(path) == wire::ModuleKind::jit);
}

TEST_CASE("processes: a map replaces earlier ones, and nothing extends beyond the last address") {
    Imported job(std::string{});
    Machine machine;
    Modules modules(job, machine);
    Processes processes(modules);
    const auto path = [&](std::uint64_t address) {
        const process::Mapping* found = processes.process(5).find(address);
        return found == nullptr ? std::string("none") : modules.at(found->module).path;
    };
    processes.map(code_at(5, 0x1000, 0x4000, "/a"));
    processes.map(code_at(5, 0x1800, 0, "/none"));
    CHECK(processes.process(5).space.map().mappings().size() == 1);
    perf::MmapRecord data = code_at(5, 0x2000, 0x1000, "/b");
    data.protection = 3;
    processes.map(data);
    CHECK(path(0x1fff) == "/a");
    CHECK(path(0x2000) == "none");
    CHECK(path(0x3000) == "/a");
    processes.map(code_at(5, 0x4fff, ~std::uint64_t{0}, "/c"));
    CHECK(path(0x4ffe) == "/a");
    CHECK(path(0xffff'0000) == "/c");
}

TEST_CASE("processes: mapping an address that was looked up changes the generation, other mappings do not") {
    Imported job(std::string{});
    Machine machine;
    Modules modules(job, machine);
    Processes processes(modules);
    processes.map(code_at(5, 0x1000, 0x1000, "/a"));
    Process& process = processes.process(5);
    const std::uint64_t first = process.space.generation();
    processes.map(code_at(5, 0x3000, 0x1000, "/b"));
    CHECK(process.space.generation() == first);
    CHECK(process.find(0x5000) == nullptr);
    processes.map(code_at(5, 0x5000, 0x1000, "/c"));
    CHECK(process.space.generation() != first);
    const std::uint64_t second = process.space.generation();
    CHECK_FALSE(ProcessCode(process, modules).find(0x7000));
    processes.map(code_at(5, 0x7000, 0x1000, "/d"));
    CHECK(process.space.generation() != second);
    CHECK(ProcessCode(process, modules).find(0x7000)->end == 0x8000);
}

TEST_CASE("processes: mappings are limited, per process and in total for all changed copies") {
    Imported job(std::string{});
    Machine machine;
    Modules modules(job, machine);
    Processes processes(modules);
    constexpr std::uint32_t most_of_one = 131'072, most = std::uint32_t{1} << 22;
    const auto size_of = [&](std::uint32_t pid) { return processes.process(pid).space.map().mappings().size(); };
    for (std::uint64_t i = 1; i <= most_of_one + 1; ++i) processes.map(code_at(1, i * 0x3000, 0x2000, "/a"));
    CHECK(size_of(1) == most_of_one);
    // A mapping that would be split loses its upper part.
    perf::MmapRecord data = code_at(1, 0x3800, 0x800, "");
    data.protection = 3;
    processes.map(data);
    CHECK(size_of(1) == most_of_one);
    CHECK(processes.process(1).find(0x37ff) != nullptr);
    CHECK(processes.process(1).find(0x4800) == nullptr);

    std::uint32_t child = 2;
    const auto changed_child = [&] {
        processes.fork(fork_of(1, child));
        processes.map(code_at(child, 0x3000, 0x1000, "/b"));
        return size_of(child);
    };
    for (std::uint32_t copies = 2; copies <= most / most_of_one; ++copies, ++child)
        REQUIRE(changed_child() == most_of_one);
    CHECK(changed_child() == 0);
    // An exec makes room for another copy.
    perf::CommRecord exec;
    exec.pid = exec.tid = 2;
    exec.exec = true;
    processes.name(exec);
    ++child;
    CHECK(changed_child() == most_of_one);
}

}  // namespace flamewire::profile::perf_data
