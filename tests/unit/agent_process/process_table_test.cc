// Records compared with a fake /proc: every known race between the two.
#include "agent/process/process_table.h"

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_proc.h"

using namespace flamewire;
using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;
using flamewire::agent::test::make_elf;

namespace {

// The whole pass at once.
std::vector<TargetSymbol> kernel_symbols(ProcessTable& table, std::vector<std::uint64_t> addresses) {
    table.begin_kernel_symbols(std::move(addresses));
    return table.advance_kernel_symbols(UINT64_MAX);
}

constexpr std::uint64_t second = 1'000'000'000;
std::uint64_t fake_now = 0;
std::uint64_t fake_clock() { return fake_now; }

struct Target {
    FakeProc proc;
    ProcessTable table;

    Target() : table(options()) {
        fake_now = 100 * second;
        // The address 0x401000 is at file offset 0x1000.
        proc.write("root/bin/tool", make_elf({{0, 0x400000, 0x9000}}, "tool-id"));
        proc.write("root/lib/one.so", make_elf({{0, 0, 0x9000}}, "one-id"));
        proc.write("root/lib/two.so", make_elf({{0, 0, 0x9000}}, "two-id"));
    }
    ProcessTableOptions options() {
        ProcessTableOptions options;
        options.proc_root = proc.root();
        options.sys_root = proc.path("sys");
        options.monotonic_clock = fake_clock;
        options.boot_clock = fake_clock;
        return options;
    }
    // A process that started at 50 s and maps the tool at 0x10000.
    void live(std::uint32_t pid, std::string_view comm = "tool", std::uint64_t start_ticks = 5000) {
        proc.add_process(pid, comm, start_ticks);
        proc.link("proc/" + std::to_string(pid) + "/root", proc.path("root"));
        proc.write_maps(pid, "10000-18000 r-xp 00001000 00:00 0 /bin/tool\n");
    }
    void mmap(std::uint32_t pid, std::uint64_t start, std::string_view path, std::uint64_t at,
              std::uint64_t offset = 0) {
        MmapRecord record;
        record.pid = record.tid = pid;
        record.time_ns = at;
        record.start = start;
        record.length = 0x8000;
        record.page_offset = offset;
        record.protection = PROT_READ | PROT_EXEC;
        record.path = path;
        table.on_record(record);
    }
    std::optional<ProcessTable::LifecycleEvent> comm(std::uint32_t pid, std::uint32_t tid, std::string_view name,
                                                     std::uint64_t at, bool exec = false) {
        return table.on_record(CommRecord{pid, tid, at, exec, name});
    }
    std::optional<ProcessTable::LifecycleEvent> task(bool exit, std::uint32_t pid, std::uint32_t parent,
                                                     std::uint32_t tid, std::uint32_t parent_tid, std::uint64_t at) {
        return table.on_record(TaskRecord{exit, pid, parent, tid, parent_tid, at});
    }
    void lost(std::uint64_t at) {
        LostRecord record;
        record.count = 3;
        record.time_ns = at;
        record.cpu = 1;
        record.sideband = true;
        table.on_record(record);
    }
    ProcessHandle process_of(std::uint32_t pid, std::uint64_t at) {
        return table.thread(table.thread_of(pid, pid, at)).process;
    }
    // Repeats the lookup until the maps are read again.
    ResolvedAddress insist(ProcessHandle process, std::uint64_t address) {
        ResolvedAddress resolved = table.resolve(process, address);
        for (int again = 1; again < 16 && resolved.module == 0; ++again) resolved = table.resolve(process, address);
        return resolved;
    }
    // The resolved address as "path+address".
    std::string at(ProcessHandle process, std::uint64_t address) {
        const ResolvedAddress resolved = insist(process, address);
        return table.module(resolved.module).path + "+" + std::to_string(resolved.address);
    }
};

}  // namespace

TEST_CASE("attach: identity, threads, maps") {
    Target target;
    target.live(42);
    target.proc.write("proc/42/task/43/comm", "worker\n");
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    CHECK(target.table.process(process).comm == "tool");
    CHECK(target.table.process(process).start_time_ns == 50 * second);
    CHECK(target.table.thread(target.table.thread_of(42, 43, fake_now)).comm == "worker");
    CHECK(target.at(process, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    CHECK(target.table.module(target.table.resolve(process, 0x10010).module).build_id == "tool-id");
    target.table.attach(4242);  // no such process, so no entry
}

TEST_CASE("mappings older than the last read of /proc are already included in it") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    // Mapped, unmapped and replaced by the tool before the read: an old record must not restore it.
    target.mmap(42, 0x10000, "/lib/one.so", 99 * second);
    CHECK(target.at(process, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    target.mmap(42, 0x10000, "/lib/one.so", 101 * second);
    CHECK(target.at(process, 0x10010) == "/lib/one.so+" + std::to_string(0x10));
}

TEST_CASE("a mapping that the attach race missed is found in /proc, and a garbage address is looked up once") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    target.proc.write_maps(
        42, "10000-18000 r-xp 00001000 00:00 0 /bin/tool\n30000-38000 r-xp 00000000 00:00 0 /lib/one.so\n");
    // A single unknown address is garbage, because records report all mappings. Many of them justify reading /proc.
    CHECK(target.table.resolve(process, 0x30020).module == 0);
    CHECK(target.at(process, 0x30020) == "/lib/one.so+" + std::to_string(0x20));
    CHECK(target.at(process, 0x70000) == "+" + std::to_string(0x70000));

    // Unsuccessful: maps are not read again until something changes, whatever the number of lookups and the time.
    target.proc.write_maps(42, "70000-78000 r-xp 00000000 00:00 0 /lib/two.so\n");
    fake_now += 100 * second;
    CHECK(target.at(process, 0x70000) == "+" + std::to_string(0x70000));
    const std::uint64_t generation = target.table.generation(process);
    target.mmap(42, 0x90000, "/lib/one.so", fake_now);
    CHECK(target.table.generation(process) != generation);  // an address was unknown: it may be known now
    CHECK(target.at(process, 0x70000) == "/lib/two.so+0");
}

TEST_CASE("reads of /proc are limited, and unknown addresses are looked up again when the limit permits") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    std::string maps = "10000-18000 r-xp 00001000 00:00 0 /bin/tool\n";
    int found = 0;
    for (int i = 1; i <= 20; ++i) {
        const std::string start = std::to_string(i) + "00000";  // "100000" … "2000000", parsed as hex
        maps += start + "-" + std::to_string(i) + "01000 r-xp 00000000 00:00 0 /lib/one.so\n";
        target.proc.write_maps(42, maps);
        if (target.insist(process, std::stoull(start, nullptr, 16)).module != 0) ++found;
    }
    CHECK(found == 8);  // the burst
    const std::uint64_t generation = target.table.generation(process);
    CHECK(target.process_of(42, fake_now) == process);
    CHECK(target.table.generation(process) == generation);
    fake_now += second;
    CHECK(target.process_of(42, fake_now) == process);
    CHECK(target.table.generation(process) != generation);
    CHECK(target.table.resolve(process, 0x2000000).module != 0);
}

TEST_CASE("processes with the same maps share a generation until one of them changes") {
    Target target;
    for (const std::uint32_t pid : {42U, 43U, 44U}) {
        target.live(pid);
        target.table.attach(pid);
    }
    target.proc.write_maps(44, "20000-28000 r-xp 00001000 00:00 0 /bin/tool\n");
    target.live(45);
    target.proc.write_maps(45, "20000-28000 r-xp 00001000 00:00 0 /bin/tool\n");
    target.table.attach(45);
    const auto generation = [&](std::uint32_t pid) {
        return target.table.generation(target.process_of(pid, fake_now));
    };
    CHECK(generation(42) == generation(43));
    CHECK(generation(45) != generation(42));
    const std::uint64_t before = generation(42);
    target.mmap(43, 0x90000, "/lib/one.so", fake_now + 1);
    CHECK(generation(42) == before);
    CHECK(generation(43) != before);
    CHECK(target.at(target.process_of(43, fake_now), 0x90000) == "/lib/one.so+0");
    CHECK(target.table.resolve(target.process_of(42, fake_now), 0x90000).module == 0);
    // A process's own JIT code is separate, also if another process has such memory at the same address.
    for (const std::uint32_t pid : {46U, 47U, 48U}) {
        target.live(pid);
        target.proc.write_maps(pid, "50000-58000 rwxp 00000000 00:00 0 \n");
        target.table.attach(pid);
        if (pid == 46) CHECK(target.table.resolve(target.process_of(46, fake_now), 0x50010).jit);
    }
    CHECK(generation(47) != generation(46));
    CHECK(generation(48) == generation(47));
    const ModuleHandle first = target.table.resolve(target.process_of(47, fake_now), 0x50010).module;
    const ModuleHandle second_one = target.table.resolve(target.process_of(48, fake_now), 0x50010).module;
    CHECK(first != second_one);
    CHECK(generation(47) != generation(48));
}

TEST_CASE("of every process the name is recorded, and the rest is read when it is sampled") {
    Target target;
    for (const std::uint32_t pid : {42U, 43U, 44U}) target.live(pid, "tool" + std::to_string(pid));
    target.proc.write("proc/43/cmdline", std::string_view("tool\0--one\0", 11));
    target.table.note_living();
    fake_now += second;
    // It exits before its sample is handled.
    target.proc.remove("proc/42");
    CHECK(target.table.process(target.process_of(42, 100 * second + 1)).comm == "tool42");
    const ProcessHandle gone = target.process_of(42, 100 * second + 1);
    CHECK(target.table.resolve(gone, 0x10020).module == 0);
    CHECK(target.task(true, 42, 1, 42, 1, 100 * second + 2));
    // A living process gets all fields.
    const ProcessHandle alive = target.process_of(43, fake_now);
    CHECK(target.table.process(alive).command_line == "tool --one");
    CHECK(target.at(alive, 0x10020) == "/bin/tool+" + std::to_string(0x401020));
    // Never sampled: its exit is not reported, and the next owner of its pid is another process.
    CHECK_FALSE(target.task(true, 44, 1, 44, 1, fake_now));
    const auto forked = target.task(false, 44, 43, 44, 43, fake_now + 5);
    REQUIRE(forked);
    CHECK(target.table.process(target.process_of(44, fake_now + 6)).comm == "tool43");
}

TEST_CASE("short-lived threads get their names from records alone") {
    Target target;
    target.live(42);
    target.table.attach(42);
    target.comm(42, 42, "main", 101 * second);
    target.task(false, 42, 42, 43, 42, 102 * second);
    const auto named = target.comm(42, 43, "worker", 103 * second);
    REQUIRE(named);
    CHECK(named->kind == wire::LifecycleKind::comm);
    const auto forked = target.task(false, 42, 42, 44, 43, 104 * second);
    REQUIRE(forked);
    CHECK(forked->kind == wire::LifecycleKind::fork);
    const ThreadHandle thread = target.table.thread_of(42, 44, 105 * second);
    CHECK(thread == forked->thread);
    CHECK(target.table.thread(thread).comm == "worker");  // that of its creator
    CHECK(target.table.thread(thread).process == target.process_of(42, 105 * second));
    const auto ended = target.task(true, 42, 42, 44, 43, 106 * second);
    REQUIRE(ended);
    CHECK(ended->thread == thread);
    // A sample may come after the exit. A new thread with the same tid is another one.
    CHECK(target.table.thread_of(42, 44, 106 * second + 1) == thread);
    const auto again = target.task(false, 42, 42, 44, 42, 107 * second);
    CHECK(again->thread != thread);
    CHECK(target.table.thread(again->thread).comm == "main");
    CHECK_FALSE(target.comm(42, 43, "worker", 108 * second));  // nothing changed
}

TEST_CASE("threads that started and exited before their process was attached") {
    Target target;
    target.live(42);
    target.table.attach(42);  // at 100 s; records of earlier times arrive afterwards
    const auto forked = target.task(false, 42, 42, 43, 42, 97 * second);
    REQUIRE(forked);
    const auto named = target.comm(42, 43, "worker", 98 * second);
    REQUIRE(named);
    CHECK(named->thread == forked->thread);
    CHECK(target.table.thread(target.table.thread_of(42, 43, 98 * second)).comm == "worker");
    REQUIRE(target.task(true, 42, 42, 43, 42, 99 * second));
    // The tid is reused by a thread that /proc already lists.
    target.proc.write("proc/42/task/43/comm", "newer\n");
    target.table.attach(42);
    CHECK_FALSE(target.task(true, 42, 42, 44, 42, 99 * second));  // never seen
}

TEST_CASE("a forked process is correct without /proc") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle parent = target.process_of(42, fake_now);
    const auto forked = target.task(false, 77, 42, 77, 42, 102 * second);
    REQUIRE(forked);
    const ProcessHandle child = target.process_of(77, 103 * second);
    CHECK(target.table.thread(forked->thread).process == child);
    CHECK(target.table.process(child).parent_pid == 42);
    CHECK(target.table.process(child).start_time_ns == 102 * second);
    CHECK(target.table.process(child).exe == "/bin/tool");
    CHECK(target.table.process(child).comm == "tool");
    CHECK(target.table.maps_known(child));
    // The same addresses, so the same cache entries …
    CHECK(target.table.generation(child) == target.table.generation(parent));
    CHECK(target.at(child, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    // … until one of them changes.
    target.mmap(77, 0x50000, "/lib/one.so", 104 * second);
    CHECK(target.at(child, 0x50000) == "/lib/one.so+0");
    CHECK(target.at(parent, 0x50000) == "+" + std::to_string(0x50000));
    CHECK(target.table.generation(child) != target.table.generation(parent));
}

TEST_CASE("fork and exec: another process with another program, from records alone") {
    Target target;
    target.live(42);
    target.table.attach(42);
    target.task(false, 77, 42, 77, 42, 102 * second);
    const ProcessHandle before = target.process_of(77, 102 * second);
    const auto exec = target.comm(77, 77, "one", 103 * second, true);
    REQUIRE(exec);
    CHECK(exec->kind == wire::LifecycleKind::exec);
    const ProcessHandle after = target.process_of(77, 104 * second);
    CHECK(after != before);
    CHECK(target.table.process(after).exec_generation == 1);
    CHECK(target.table.process(after).comm == "one");
    CHECK(target.table.process(after).command_line == "one");
    CHECK(target.table.process(after).exe.empty());
    // While the kernel handles the exec, a sample shows where the old program called it. Afterwards, nothing of the old
    // program is left.
    (void)target.process_of(77, 103 * second + 1000);
    CHECK(target.at(after, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    (void)target.process_of(77, 104 * second);
    CHECK(target.at(after, 0x10010) == "+" + std::to_string(0x10010));
    target.proc.link("proc/42/root", target.proc.path("root"));  // the parent's root leads to the file
    target.mmap(77, 0x20000, "/lib/one.so", 104 * second);
    target.mmap(77, 0x60000, "/lib/two.so", 104 * second + 1);
    CHECK(target.table.process(after).exe == "/lib/one.so");  // the first image is the program
    CHECK(target.at(after, 0x20010) == "/lib/one.so+" + std::to_string(0x10));
    CHECK(target.at(before, 0x10010) == "/bin/tool+" + std::to_string(0x401010));  // late samples of the old process
}

TEST_CASE("an exec that /proc showed before its record arrived") {
    Target target;
    target.live(42);
    target.table.attach(42);  // at 100 s, after the exec at 99 s
    const ProcessHandle process = target.process_of(42, fake_now);
    target.comm(42, 42, "tool", 99 * second, true);
    CHECK(target.process_of(42, fake_now) == process);
    CHECK(target.table.process(process).exec_generation == 0);
    CHECK(target.at(process, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
}

TEST_CASE("a program that just started: its maps come from records, whatever /proc contains by the time they arrive") {
    Target target;
    target.live(42);
    target.proc.write_maps(42,
                           "10000-18000 r-xp 00001000 00:00 0 /bin/tool\n"
                           "50000-58000 r-xp 00000000 00:00 0 /lib/two.so\n");
    // Its first record arrives one second late.
    target.comm(42, 42, "tool", 99 * second, true);
    target.mmap(42, 0x10000, "/bin/tool", 99 * second + 1, 0x1000);
    target.mmap(42, 0x50000, "/lib/one.so", 99 * second + 2);
    const ProcessHandle process = target.process_of(42, 99 * second + 3);
    CHECK(target.table.process(process).exec_generation == 0);
    CHECK(target.insist(process, 0x90000).module == 0);
    CHECK(target.at(process, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    CHECK(target.at(process, 0x50010) == "/lib/one.so+" + std::to_string(0x10));
    target.mmap(42, 0x50000, "/lib/two.so", 99 * second + 4);
    CHECK(target.at(process, 0x50010) == "/lib/two.so+" + std::to_string(0x10));
}

TEST_CASE("maps that are read for an unknown address do not undo earlier records") {
    Target target;
    target.live(42);
    target.table.attach(42);
    // At 120 s, an unknown address triggers a read of /proc. The records of 110 and 115 s are still in the ring.
    target.mmap(42, 0x50000, "/lib/one.so", 105 * second);
    fake_now = 120 * second;
    target.proc.write_maps(42,
                           "30000-38000 r-xp 00000000 00:00 0 /lib/late.so\n"
                           "50000-51000 r-xp 00000000 00:00 0 /lib/three.so\n");
    const ProcessHandle process = target.process_of(42, 106 * second);
    CHECK(target.at(process, 0x30000) == "/lib/late.so+0");
    CHECK(target.at(process, 0x50000) == "/lib/one.so+0");
    target.mmap(42, 0x50000, "/lib/two.so", 110 * second);
    CHECK(target.at(process, 0x50000) == "/lib/two.so+0");
    target.mmap(42, 0x50000, "/lib/three.so", 115 * second);
    CHECK(target.at(process, 0x50000) == "/lib/three.so+0");
    CHECK(target.at(process, 0x30000) == "/lib/late.so+0");
}

TEST_CASE("an exec that /proc showed too early") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle old = target.process_of(42, fake_now);
    // The exec happens at 110 s. At 120 s, an unknown address triggers a read of /proc. Only then does the record
    // arrive.
    fake_now = 120 * second;
    target.proc.write_maps(42, "30000-38000 r-xp 00000000 00:00 0 /lib/one.so\n");
    CHECK(target.at(old, 0x30000) == "/lib/one.so+0");
    target.comm(42, 42, "new", 110 * second, true);
    const ProcessHandle process = target.process_of(42, 121 * second);
    CHECK(process != old);
    target.mmap(42, 0x30000, "/lib/one.so", 111 * second);
    CHECK(target.at(process, 0x30000) == "/lib/one.so+0");
}

TEST_CASE("a reused pid is another process") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle first = target.process_of(42, fake_now);
    SECTION("with its exit record") { target.task(true, 42, 1, 42, 1, 101 * second); }
    SECTION("with a lost exit record") {}
    target.task(false, 42, 7, 42, 7, 102 * second);
    const ProcessHandle second_one = target.process_of(42, 103 * second);
    CHECK(second_one != first);
    CHECK(target.table.process(second_one).start_time_ns == 102 * second);
    CHECK(target.table.process(second_one).parent_pid == 7);
}

TEST_CASE("records of a pid's former owner do not affect the new one") {
    Target target;
    target.live(42);
    target.table.attach(42);  // at 100 s
    const ProcessHandle process = target.process_of(42, fake_now);
    CHECK_FALSE(target.task(true, 42, 1, 42, 1, 99 * second));
    CHECK_FALSE(target.comm(42, 42, "old", 98 * second));
    CHECK(target.table.process(process).comm == "tool");
    // Its own start record, which arrives after the scan of /proc found it, changes nothing either.
    target.task(false, 42, 7, 42, 7, 97 * second);
    CHECK(target.process_of(42, 101 * second) == process);
}

TEST_CASE("lost records make every address space outdated") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    target.lost(101 * second);
    const auto losses = target.table.take_losses();
    REQUIRE(losses.size() == 1);
    CHECK(losses[0].reason == wire::LossReason::maps_lost);
    CHECK(losses[0].count == 3);
    CHECK(losses[0].cpu_plus_1 == 2);
    CHECK(target.table.take_losses().empty());
    fake_now = 102 * second;
    SECTION("same program, other maps") {
        target.proc.write_maps(42, "10000-18000 r-xp 00000000 00:00 0 /lib/one.so\n");
        CHECK(target.process_of(42, fake_now) == process);
        CHECK(target.at(process, 0x10010) == "/lib/one.so+" + std::to_string(0x10));
    }
    SECTION("an exec record was lost") {
        target.proc.add_process(42, "other", 5000, "/lib/two.so");
        target.proc.write_maps(42, "10000-18000 r-xp 00000000 00:00 0 /lib/two.so\n");
        const ProcessHandle next = target.process_of(42, fake_now);
        CHECK(next != process);
        CHECK(target.table.process(next).exec_generation == 1);
        CHECK(target.table.process(next).comm == "other");
        CHECK(target.table.process(next).exe == "/lib/two.so");
        CHECK(target.at(next, 0x10000) == "/lib/two.so+0");
    }
    SECTION("the exit and fork records were lost") {
        target.live(42, "new", 10150);
        const ProcessHandle next = target.process_of(42, fake_now);
        CHECK(next != process);
        CHECK(target.table.process(next).start_time_ns == 101'500'000'000);
        CHECK(target.table.process(next).exec_generation == 0);
    }
    SECTION("after its exit, the known facts remain") {
        target.proc.remove("proc/42");
        CHECK(target.process_of(42, fake_now) == process);
        CHECK(target.at(process, 0x10010) == "/bin/tool+" + std::to_string(0x401010));
    }
}

TEST_CASE("an exited process without any record") {
    Target target;
    const ProcessHandle process = target.process_of(4242, fake_now);
    CHECK(target.table.process(process).pid == 4242);
    CHECK(target.table.process(process).comm == "[unknown]");
    CHECK_FALSE(target.table.maps_known(process));
    CHECK(target.table.resolve(process, 0x1000).module == 0);
    CHECK(target.process_of(4242, fake_now) == process);
    CHECK(target.table.process(target.process_of(0, fake_now)).comm == "swapper");
    CHECK(target.table.process(target.process_of(0xffff'ffff, fake_now)).comm == "[exited]");
}

TEST_CASE("a process in namespaces, with a deleted binary") {
    Target target;
    const std::string id(64, 'e');
    target.live(42);
    target.proc.write("proc/42/status", "Uid:\t0\t0\t0\t0\nNStgid:\t42\t1\n");
    target.proc.write("proc/42/cgroup", "0::/system.slice/docker-" + id + ".scope\n");
    target.proc.write("gone", make_elf({{0, 0x700000, 0x9000}}, "gone-id"));
    target.proc.link("proc/42/map_files/10000-18000", target.proc.path("gone"));
    target.proc.write_maps(42, "10000-18000 r-xp 00001000 00:00 0 /app/server (deleted)\n");
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    CHECK(target.table.process(process).ns_pid == 1);
    CHECK(target.table.process(process).container_id == id);
    CHECK(target.at(process, 0x10010) == "/app/server+" + std::to_string(0x701010));
    // Its children also have a pid there.
    target.proc.write("proc/77/status", "NStgid:\t77\t9\n");
    target.task(false, 77, 42, 77, 42, 101 * second);
    CHECK(target.table.process(target.process_of(77, 101 * second)).ns_pid == 9);
    CHECK(target.table.process(target.process_of(77, 101 * second)).container_id == id);
}

TEST_CASE("anonymous code keeps its raw address, whatever its offset") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    target.mmap(42, 0x50000, "//anon", 101 * second, 0x50000);
    CHECK(target.table.resolve(process, 0x50123).jit);
    CHECK(target.table.module(target.table.resolve(process, 0x50123).module).kind == wire::ModuleKind::jit);
    CHECK(target.table.resolve(process, 0x50123).address == 0x50123);
}

TEST_CASE("unreadable maps of a process cause one notice") {
    Target target;
    target.live(42);
    ::chmod(target.proc.path("").c_str(), 0755);
    ::chmod(target.proc.path("proc/42/maps").c_str(), 0);
    // Root can read everything.
    const bool was_root = ::geteuid() == 0;
    if (was_root) REQUIRE(::seteuid(65534) == 0);
    target.table.attach(42);
    const ProcessHandle process = target.process_of(42, fake_now);
    (void)target.table.resolve(process, 0x10010);
    if (was_root) REQUIRE(::seteuid(0) == 0);
    CHECK_FALSE(target.table.maps_known(process));
    CHECK(target.table.process(process).comm == "tool");
    const auto notices = target.table.take_notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "maps-unreadable");
}

TEST_CASE("kernel addresses are relative to _text") {
    Target target;
    target.proc.write("proc/kallsyms",
                      "ffffffff81000000 T _text\nffffffff81000100 T do_work\nffffffff81000200 t next\nffffffffc0000000 "
                      "t entry\t[mod]\n");
    std::string note("\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0", 20);
    target.proc.write("sys/kernel/notes", note);
    const ResolvedAddress resolved = target.table.resolve_kernel(0xffffffff81000150);
    CHECK(resolved.address == 0x150);
    CHECK(target.table.module(resolved.module).kind == wire::ModuleKind::kernel);
    CHECK(target.table.module(resolved.module).path == "[kernel]");
    CHECK(target.table.module(resolved.module).build_id == "abc");
    const auto symbols = kernel_symbols(target.table, {0x150, target.table.resolve_kernel(0xffffffffc0000010).address});
    REQUIRE(symbols.size() == 2);
    CHECK(symbols[0].module == resolved.module);
    CHECK(symbols[0].address == 0x100);
    CHECK(symbols[0].size == 0x100);
    CHECK(symbols[0].name == "do_work");
    CHECK(symbols[1].name == "entry [mod]");
    CHECK(target.table.take_notices().empty());
}

TEST_CASE("hidden kernel names cause one notice") {
    Target target;
    target.proc.write("proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T do_work\n");
    target.proc.write("sys/kernel/notes", std::string("\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0abc\0", 20));
    const ResolvedAddress resolved = target.table.resolve_kernel(0xffffffff81000150);
    CHECK(resolved.address == 0xffffffff81000150);
    CHECK(target.table.module(resolved.module).build_id.empty());
    (void)target.table.resolve_kernel(0xffffffff81000250);
    const auto notices = target.table.take_notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "kernel-names-hidden");
    CHECK(notices[0].remedy.find("kptr_restrict") != std::string::npos);
    CHECK(kernel_symbols(target.table, {resolved.address}).empty());
}

TEST_CASE("a kernel without a symbol table, or with one that a sandbox empties, causes one notice") {
    Target target;
    const bool empty = GENERATE(false, true);
    if (empty) target.proc.write("proc/kallsyms", "");
    const ResolvedAddress resolved = target.table.resolve_kernel(0xffffffff81000150);
    CHECK(resolved.address == 0xffffffff81000150);
    (void)target.table.resolve_kernel(0xffffffff81000250);
    const auto notices = target.table.take_notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "kernel-names-missing");
    CHECK(notices[0].text.find("/proc/kallsyms is missing or empty") == 0);
}

TEST_CASE("threads that ended long ago are dropped, living ones are not") {
    Target target;
    target.live(42);
    target.table.attach(42);
    const ThreadHandle main_thread = target.table.thread_of(42, 42, fake_now);
    const auto first = target.task(false, 42, 42, 1000, 42, 101 * second);
    target.task(true, 42, 42, 1000, 42, 101 * second);
    for (std::uint32_t i = 1; i <= 20'000; ++i) {
        target.task(false, 42, 42, 1000 + i, 42, 102 * second + i);
        target.task(true, 42, 42, 1000 + i, 42, 102 * second + i);
    }
    CHECK(target.table.thread(first->thread).process == 0);
    CHECK(target.table.thread(main_thread).tid == 42);
    for (std::uint32_t i = 1; i <= 5000; ++i) {
        target.task(false, 50'000 + i, 42, 50'000 + i, 42, 103 * second + i);
        target.task(true, 50'000 + i, 42, 50'000 + i, 42, 103 * second + i);
    }
    CHECK(target.table.process(target.table.thread(main_thread).process).pid == 42);
    CHECK(target.process_of(42, 104 * second) == target.table.thread(main_thread).process);
}

TEST_CASE("nonsensical records do no harm") {
    Target target;
    target.mmap(42, ~std::uint64_t{0} - 0x100, "/x", fake_now);
    target.mmap(0xffff'ffff, 0x1000, "", fake_now);
    target.task(true, 1, 2, 3, 4, fake_now);
    target.task(false, 0xffff'ffff, 0xffff'ffff, 0xffff'ffff, 0xffff'ffff, fake_now);
    target.comm(5, 6, "", fake_now, true);
    CHECK(target.table.thread(12345).process == 0);
    CHECK(target.table.process(12345).pid == 0);
    CHECK(target.table.generation(12345) == 0);
    CHECK(target.table.resolve(12345, 7).address == 7);
}
