#include "agent/pipeline/folder.h"

#include <catch2/catch.hpp>
#include <linux/perf_event.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <random>
#include <set>

#include "../agent_process/fake_proc.h"

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

constexpr auto kernel_part = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
constexpr auto user_part = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr std::uint64_t second = 1'000'000'000;

// Reads batches as docs/wire.proto describes them: tables by id, checked as they grow.
struct Receiver {
    std::uint32_t epoch = 0;
    std::vector<std::string> strings;
    std::vector<wire::Module> modules;
    std::vector<wire::Location> locations;
    std::vector<wire::StackNode> stacks;
    std::vector<wire::Process> processes;
    std::vector<wire::Thread> threads;
    std::vector<wire::Event> events;
    std::map<std::string, std::uint64_t> counts;   // folded stack -> samples
    std::map<std::string, std::uint64_t> weights;  // "event" -> weight
    std::uint64_t samples = 0, seq = 0;
    std::map<wire::LossReason, std::uint64_t> losses;
    std::uint32_t recordings = 0;

    template <class T>
    static void grow(std::vector<T>& table, wire::Id base, const std::vector<T>& entries) {
        if (table.empty()) table.emplace_back();
        REQUIRE(base == table.size());
        table.insert(table.end(), entries.begin(), entries.end());
    }
    std::string frame(const wire::Location& location) const {
        if (location.name != 0) return strings.at(location.name);
        std::string text = location.module == 0 ? "" : strings.at(modules.at(location.module).path);
        text += "+" + std::to_string(location.address);
        if ((location.flags & wire::location_flag::return_address) != 0) text += "r";
        if ((location.flags & wire::location_flag::kernel_mode) != 0) text += "k";
        return text;
    }
    std::string stack(wire::Id id) const {
        std::string text;
        for (; id != 0; id = stacks.at(id).parent)
            text = frame(locations.at(stacks.at(id).location)) + (text.empty() ? "" : ";") + text;
        return text;
    }
    void take(const wire::Batch& batch) {
        REQUIRE(batch.seq == ++seq);
        if (batch.epoch != epoch) {
            const Receiver old = std::exchange(*this, {});
            counts = old.counts;
            weights = old.weights;
            samples = old.samples;
            seq = old.seq;
            losses = old.losses;
            recordings = old.recordings;
            REQUIRE(batch.epoch == old.epoch + 1);
            REQUIRE(batch.recording);
            REQUIRE(!batch.events.empty());
            epoch = batch.epoch;
        }
        if (batch.recording) ++recordings;
        grow(strings, batch.string_base, batch.strings);
        grow(modules, batch.module_base, batch.modules);
        grow(locations, batch.location_base, batch.locations);
        const std::size_t first_stack = std::max<std::size_t>(1, stacks.size());
        grow(stacks, batch.stack_base, batch.stacks);
        grow(processes, batch.process_base, batch.processes);
        grow(threads, batch.thread_base, batch.threads);
        grow(events, batch.event_base, batch.events);
        for (std::size_t id = first_stack; id < stacks.size(); ++id) REQUIRE(stacks[id].parent < id);
        REQUIRE(std::set<std::string>(strings.begin() + 1, strings.end()).size() == strings.size() - 1);
        for (const wire::Row& row : batch.rows) {
            REQUIRE(row.stack != 0);
            counts[stack(row.stack)] += row.count;
            samples += row.count;
            weights[strings.at(events.at(row.event).name)] += row.weight;
            REQUIRE(threads.at(row.thread).process != 0);
            (void)processes.at(threads.at(row.thread).process);
        }
        for (const wire::Loss& loss : batch.losses) losses[loss.reason] += loss.count;
    }
};

struct Setup {
    FakeProc proc;
    ProcessTable table;
    FolderOptions options;

    Setup() : table(table_options()) {
        proc.write("root/bin/tool", make_elf({{0, 0x400000, 0x9000}}, "tool-id"));
        proc.write("proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T work\nffffffff81000300 T next\n");
        live(42);
        table.attach(42);
        options.recording.target = "pid 42";
        options.recording_id[0] = 9;
        options.events = {{0, 0, 999, 0}, {0, 0, 0, 1000}};
        options.event_names = {"cycles", "faults"};
        options.event_units = {"cycles", "faults"};
        options.max_stack = 8;
    }
    ProcessTableOptions table_options() const {
        ProcessTableOptions options_;
        options_.proc_root = proc.root();
        options_.sys_root = proc.path("sys");
        return options_;
    }
    void live(std::uint32_t pid) {
        const std::string base = "proc/" + std::to_string(pid) + "/";
        proc.add_process(pid, "tool", 5000);
        proc.link(base + "root", proc.path("root"));
        proc.write_maps(pid, "10000-18000 r-xp 00000000 00:00 0 /bin/tool\n");
    }
    SampleRecord sample(const std::vector<std::uint64_t>& chain, std::uint64_t at = second,
                        std::uint32_t pid = 42) const {
        SampleRecord sample;
        sample.pid = sample.tid = pid;
        sample.time_ns = at;
        sample.cpu = 1;
        sample.period = 10;
        sample.cpu_mode = perf::CpuMode::user;
        sample.callchain = chain;
        return sample;
    }
};

}  // namespace

TEST_CASE("samples become rows of stacks") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    const std::vector<std::uint64_t> both = {kernel_part, 0xffffffff81000150, 0xffffffff81000210, user_part, 0x10010,
                                             0x10020};
    const std::vector<std::uint64_t> user = {user_part, 0x10030, 0x10020};
    folder.add_sample(setup.sample(both), 0);
    folder.add_sample(setup.sample(both), 0);
    folder.add_sample(setup.sample(user), 0);
    folder.add_sample(setup.sample(user), 1);
    folder.add_sample(setup.sample(user, second + 10'000'000), 0);
    wire::Batch batch = folder.close_batch();
    CHECK(batch.recording_id == setup.options.recording_id);
    CHECK(batch.epoch == 1);
    REQUIRE(batch.recording);
    CHECK(batch.recording->target == "pid 42");
    REQUIRE(batch.rows.size() == 4);
    CHECK(batch.rows[0].count == 2);
    CHECK(batch.rows[0].weight == 20);
    CHECK(batch.rows[0].bucket == 100);
    CHECK(batch.rows[0].cpu == 1);
    CHECK(batch.rows[3].bucket == 101);
    Receiver receiver;
    receiver.take(batch);
    CHECK(receiver.counts ==
          std::map<std::string, std::uint64_t>{{"/bin/tool+4194336r;/bin/tool+4194320;[kernel]+528rk;[kernel]+336k", 2},
                                               {"/bin/tool+4194336r;/bin/tool+4194352", 3}});
    CHECK(receiver.weights == std::map<std::string, std::uint64_t>{{"cycles", 40}, {"faults", 10}});
    CHECK(receiver.processes.at(1).pid == 42);
    CHECK(receiver.strings.at(receiver.processes.at(1).comm) == "tool");
    CHECK(receiver.losses.empty());
    // Periods: index 0 is unused, then those of the events.
    CHECK(folder.periods() == wire::EventPeriods{0, 0, 1000});

    // The next batch repeats no entry.
    folder.add_sample(setup.sample(user), 0);
    batch = folder.close_batch();
    CHECK(batch.strings.empty());
    CHECK(batch.stacks.empty());
    CHECK(batch.locations.empty());
    CHECK(batch.threads.empty());
    CHECK_FALSE(batch.recording);
    receiver.take(batch);
    CHECK(receiver.samples == 6);
    // Nothing happened: an empty batch with its pair of times.
    batch = folder.close_batch();
    receiver.take(batch);
    CHECK(batch.rows.empty());
    CHECK(batch.monotonic_ns != 0);
    CHECK(batch.seq == 3);

    std::vector<std::uint64_t> unnamed = folder.unnamed_kernel_addresses();
    std::sort(unnamed.begin(), unnamed.end());
    CHECK(unnamed == std::vector<std::uint64_t>{0x150, 0x210});
    const auto symbols = kernel_symbols(setup.table, unnamed);
    folder.add_symbols(symbols);
    CHECK(folder.unnamed_kernel_addresses().empty());
    batch = folder.close_batch();
    receiver.take(batch);
    REQUIRE(batch.symbols.size() == 1);
    CHECK(receiver.strings.at(batch.symbols[0].name) == "work");
    CHECK(batch.symbols[0].address == 0x100);
    CHECK(batch.symbols[0].size == 0x200);
}

TEST_CASE("a chain belongs to another BPF program after a new one was loaded at its address") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    Receiver receiver;
    const std::uint64_t place = 0xffffffffc0001000;
    const std::vector<std::uint64_t> inside = {kernel_part, place + 0x10, 0xffffffff81000150};
    // The last instruction of the program is a call, so the return address is after the program.
    const std::vector<std::uint64_t> above = {kernel_part, 0xffffffff81000150, place + 0x40};
    const std::string address = "[kernel]+" + std::to_string(place + 0x10 - 0xffffffff81000000) + "k";
    folder.add_sample(setup.sample(inside), 0);  // of a program loaded before the recording
    folder.follow_program({second, place, 0x40, true, "early"});
    wire::Batch batch = folder.close_batch();
    receiver.take(batch);
    REQUIRE(batch.symbols.size() == 1);
    CHECK(receiver.strings.at(batch.symbols[0].name) == "early [bpf]");
    CHECK((batch.symbols[0].address == place - 0xffffffff81000000 && batch.symbols[0].size == 0x40));
    for (const std::string name : {"first", "second"}) {
        folder.follow_program({second, place, 0x40, false, name});
        folder.add_sample(setup.sample(inside), 0);
        folder.add_sample(setup.sample(inside), 0);
        folder.add_sample(setup.sample(above), 0);
        folder.follow_program({second, place, 0x40, true, name});
    }
    folder.add_sample(setup.sample(inside), 0);
    batch = folder.close_batch();
    receiver.take(batch);
    CHECK(batch.symbols.empty());
    CHECK(receiver.counts == std::map<std::string, std::uint64_t>{{"[kernel]+336rk;" + address, 2},
                                                                  {"[kernel]+336rk;first [bpf]", 2},
                                                                  {"first [bpf];[kernel]+336k", 1},
                                                                  {"[kernel]+336rk;second [bpf]", 2},
                                                                  {"second [bpf];[kernel]+336k", 1}});
}

TEST_CASE("the functions of a vDSO are sent once per epoch, when a stack contains it") {
    const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
    if (base == 0) {
        WARN("NOT tested: this kernel maps no vDSO");
        return;
    }
    const auto pid = static_cast<std::uint32_t>(::getpid());
    ProcessTable table;
    table.attach(pid);
    const Setup setup;
    Folder folder(setup.options, table);
    const std::vector<std::uint64_t> elsewhere = {user_part, reinterpret_cast<std::uintptr_t>(&::getauxval)},
                                     inside = {user_part, base + 0x900};
    Receiver receiver;
    const auto sent = [&] {
        const wire::Batch batch = folder.close_batch();
        receiver.take(batch);
        std::set<std::string> names;
        for (const wire::Symbol& symbol : batch.symbols) {
            CHECK(receiver.strings.at(receiver.modules.at(symbol.module).path) == "[vdso]");
            CHECK(symbol.size > 0);
            names.insert(receiver.strings.at(symbol.name));
        }
        return names;
    };
    folder.add_sample(setup.sample(elsewhere, second, pid), 0);
    CHECK(sent().empty());
    folder.add_sample(setup.sample(inside, second, pid), 0);
    const std::set<std::string> names = sent();
    CHECK(std::ranges::any_of(names, [](const std::string& name) { return name.find("clock_gettime") != name.npos; }));
    folder.add_sample(setup.sample(inside, second, pid), 0);
    CHECK(sent().empty());
    folder.begin_epoch();
    (void)sent();
    folder.add_sample(setup.sample(inside, second, pid), 0);
    CHECK(sent() == names);
}

TEST_CASE("a sample without a stack is still a sample") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    SampleRecord sample = setup.sample({});
    folder.add_sample(sample, 0);
    sample.ip = 0x10040;
    folder.add_sample(sample, 0);
    sample.ip = 0xffffffff81000150;
    sample.cpu_mode = perf::CpuMode::kernel;
    folder.add_sample(sample, 0);
    const std::vector<std::uint64_t> markers = {kernel_part, user_part};
    sample.callchain = markers;
    folder.add_sample(sample, 0);
    Receiver receiver;
    receiver.take(folder.close_batch());
    CHECK(receiver.counts ==
          std::map<std::string, std::uint64_t>{{"[no stack]", 1}, {"/bin/tool+4194368", 1}, {"[kernel]+336k", 2}});
}

TEST_CASE("a chain that the kernel truncated is marked, cached or not") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    std::vector<std::uint64_t> chain = {user_part};
    for (std::uint64_t i = 0; i < 8; ++i) chain.push_back(0x10010 + i);
    folder.add_sample(setup.sample(chain), 0);
    folder.add_sample(setup.sample(chain, 3 * second), 0);
    chain.pop_back();
    folder.add_sample(setup.sample(chain), 0);
    const wire::Batch batch = folder.close_batch();
    Receiver receiver;
    receiver.take(batch);
    CHECK(receiver.samples == 3);
    CHECK(receiver.counts.size() == 2);
    CHECK(receiver.counts.begin()->first.starts_with("/bin/tool+4194326r;"));
    CHECK(receiver.counts.rbegin()->first.starts_with("[truncated];/bin/tool+4194327r;"));
    REQUIRE(batch.losses.size() == 1);
    CHECK(batch.losses[0].reason == wire::LossReason::stack_truncated);
    CHECK(batch.losses[0].count == 2);
    CHECK(batch.losses[0].first_ns == second);
    CHECK(batch.losses[0].last_ns == 3 * second);
    CHECK(batch.losses[0].event == 1);
}

TEST_CASE("samples of an exited process are shown and counted as an unknown process") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    const std::vector<std::uint64_t> chain = {kernel_part, 0xffffffff81000150, user_part, 0x5555, 0x6666};
    const std::vector<std::uint64_t> kernel_only = {kernel_part, 0xffffffff81000150};
    folder.add_sample(setup.sample(chain, second, 7777), 0);
    folder.add_sample(setup.sample(chain, second, 7777), 0);
    folder.add_sample(setup.sample(kernel_only, second, 7777), 0);
    const wire::Batch batch = folder.close_batch();
    Receiver receiver;
    receiver.take(batch);
    CHECK(receiver.counts ==
          std::map<std::string, std::uint64_t>{{"[unknown process];[kernel]+336k", 2}, {"[kernel]+336k", 1}});
    CHECK(receiver.losses == std::map<wire::LossReason, std::uint64_t>{{wire::LossReason::unknown_process, 2}});
}

TEST_CASE("a chain is resolved again when its address space changes") {
    Setup setup;
    setup.proc.write("root/lib/one.so", make_elf({{0, 0, 0x9000}}, "one"));
    Folder folder(setup.options, setup.table);
    const std::vector<std::uint64_t> chain = {user_part, 0x10010};
    folder.add_sample(setup.sample(chain), 0);
    MmapRecord mmap;
    mmap.pid = mmap.tid = 42;
    mmap.time_ns = ~std::uint64_t{0} >> 1;
    mmap.start = 0x10000;
    mmap.length = 0x1000;
    mmap.protection = PROT_EXEC;
    mmap.path = "/lib/one.so";
    setup.table.on_record(mmap);
    folder.add_sample(setup.sample(chain), 0);
    Receiver receiver;
    receiver.take(folder.close_batch());
    CHECK(receiver.counts == std::map<std::string, std::uint64_t>{{"/bin/tool+4194320", 1}, {"/lib/one.so+16", 1}});
}

TEST_CASE("maps read in the middle of a chain do not change its earlier addresses") {
    Setup setup;
    setup.proc.write("root/lib/one.so", make_elf({{0, 0, 0x9000}}, "one"));
    Folder folder(setup.options, setup.table);
    // The first address is known from the old maps. The second one triggers a read of /proc, where another file is at
    // the first.
    setup.proc.write_maps(
        42, "10000-18000 r-xp 00000000 00:00 0 /lib/two.so\n30000-38000 r-xp 00000000 00:00 0 /lib/one.so\n");
    const std::vector<std::uint64_t> chain = {user_part, 0x10010, 0x30010};
    // It takes sixteen unknown addresses, because a single one may be garbage.
    for (std::uint64_t i = 0; i < 15; ++i) folder.add_sample(setup.sample({user_part, 0x70000 + i}), 0);
    folder.add_sample(setup.sample(chain), 0);
    folder.add_sample(setup.sample(chain), 0);
    Receiver receiver;
    receiver.take(folder.close_batch());
    CHECK(receiver.counts.size() == 16);
    CHECK(receiver.counts.at("/lib/one.so+16r;/bin/tool+4194320") == 2);
}

TEST_CASE("processes and threads are sent with their state when the batch closes") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    const std::uint64_t later = ~std::uint64_t{0} >> 1;
    const auto forked = setup.table.on_record(TaskRecord{false, 77, 42, 77, 42, later});
    REQUIRE(forked);
    folder.add_lifecycle(*forked);
    const auto named = setup.table.on_record(CommRecord{77, 77, later + 1, false, "renamed"});
    REQUIRE(named);
    folder.add_lifecycle(*named);
    const auto exec = setup.table.on_record(CommRecord{77, 77, later + 2, true, "program"});
    folder.add_lifecycle(*exec);
    MmapRecord mmap;
    mmap.pid = mmap.tid = 77;
    mmap.time_ns = later + 3;
    mmap.start = 0x20000;
    mmap.length = 0x1000;
    mmap.protection = PROT_EXEC;
    mmap.path = "/bin/program";
    setup.table.on_record(mmap);
    const auto ended = setup.table.on_record(TaskRecord{true, 77, 42, 77, 42, later + 4});
    folder.add_lifecycle(*ended);
    const wire::Batch batch = folder.close_batch();
    Receiver receiver;
    receiver.take(batch);
    REQUIRE(batch.lifecycle.size() == 4);
    CHECK(batch.lifecycle[0].kind == wire::LifecycleKind::fork);
    CHECK(batch.lifecycle[1].kind == wire::LifecycleKind::comm);
    CHECK(receiver.strings.at(batch.lifecycle[1].comm) == "renamed");
    CHECK(batch.lifecycle[2].kind == wire::LifecycleKind::exec);
    CHECK(receiver.strings.at(batch.lifecycle[2].comm) == "program");
    CHECK(batch.lifecycle[3].kind == wire::LifecycleKind::exit);
    CHECK(batch.lifecycle[0].thread == batch.lifecycle[1].thread);
    CHECK(batch.lifecycle[2].thread == batch.lifecycle[3].thread);
    CHECK(batch.lifecycle[2].thread != batch.lifecycle[1].thread);
    const wire::Process& after = receiver.processes.at(receiver.threads.at(batch.lifecycle[2].thread).process);
    CHECK(after.exec_generation == 1);
    CHECK(receiver.strings.at(after.exe) == "/bin/program");
    CHECK(after.parent_pid == 42);
}

TEST_CASE("losses add up by reason, event and cpu") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    folder.add_loss({wire::LossReason::ring_full, 2, 10, 20, 1, 3});
    folder.add_loss({wire::LossReason::ring_full, 3, 5, 15, 1, 3});
    folder.add_loss({wire::LossReason::ring_full, 1, 5, 15, 2, 3});
    folder.add_notice({"code", "text", "remedy"});
    const wire::Batch batch = folder.close_batch();
    REQUIRE(batch.losses.size() == 2);
    CHECK(batch.losses[0] == wire::Loss{wire::LossReason::ring_full, 5, 5, 20, 1, 3});
    CHECK(batch.losses[1].event == 2);
    CHECK(batch.notices == std::vector<wire::Notice>{{"code", "text", "remedy"}});
    CHECK(folder.close_batch().losses.empty());
}

TEST_CASE("hits of traced events: from the trigger on, up to their number, and again after a change") {
    Setup setup;
    setup.options.hits = {.triggers = 2, .first = 2};
    Folder folder(setup.options, setup.table);
    const perf::ValueFields fields{{"ip", perf::ValueKind::address, perf::ValueField::Place::fixed, 0, 8},
                                   {"data", perf::ValueKind::address, perf::ValueField::Place::sample_address}};
    const std::vector<std::uint64_t> chain = {user_part, 0x10010};
    const auto add = [&](std::uint32_t event, std::uint64_t ip) {
        SampleRecord sample = setup.sample(chain);
        sample.values = &fields;
        sample.raw = std::as_bytes(std::span(&ip, 1));
        sample.address = 0x10020;
        folder.add_sample(sample, event);
    };
    add(0, 0x10010);             // before the trigger
    add(1, 0x10010);             // the trigger
    add(0, 0xffffffff81000110);  // code of the kernel
    add(0, 0x10010);             // one too many
    wire::Batch batch = folder.close_batch();
    Receiver receiver;
    receiver.take(batch);
    CHECK(receiver.samples == 4);
    REQUIRE(batch.hits.size() == 2);
    CHECK(batch.hits[0].values == std::vector<std::uint64_t>{0x10010, 0x10020});
    CHECK(batch.hits[0].hits[0].weight == 10);
    CHECK(receiver.stack(batch.hits[0].hits[0].stack) == "/bin/tool+4194320");
    // Code has places; the address that a sample is about is data.
    REQUIRE(batch.hits[0].addresses.size() == 1);
    CHECK(receiver.frame(receiver.locations.at(batch.hits[0].addresses[0].location)) == "/bin/tool+4194320");
    REQUIRE(batch.hits[1].addresses.size() == 1);
    CHECK(receiver.frame(receiver.locations.at(batch.hits[1].addresses[0].location)) == "[kernel]+272k");

    FolderOptions changed = setup.options;
    folder.change_events(setup.options.recording, changed);
    add(1, 0x10010);
    CHECK(folder.close_batch().hits.empty());  // nothing has changed
    changed.hits.first = 1;
    folder.change_events(setup.options.recording, changed);
    add(0, 0x10010);
    add(1, 0x10010);
    add(1, 0x10010);
    batch = folder.close_batch();
    REQUIRE(batch.hits.size() == 1);
    CHECK(batch.hits[0].hits.size() == 1);
}

TEST_CASE("other events in the same recording") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    const std::vector<std::uint64_t> chain = {user_part, 0x10010};
    folder.add_sample(setup.sample(chain), 1);
    wire::Recording recording = setup.options.recording;
    recording.frequency_hz = 99;
    FolderOptions changed;
    changed.events = {{0, 0, 0, 7}};
    changed.event_names = changed.event_units = {"instructions"};
    folder.change_events(recording, changed);
    folder.add_sample(setup.sample(chain), 0);
    const wire::Batch batch = folder.close_batch();
    Receiver receiver;
    receiver.take(batch);
    CHECK(receiver.weights == std::map<std::string, std::uint64_t>{{"faults", 10}, {"instructions", 10}});
    CHECK(batch.recording->frequency_hz == 99);
    CHECK(folder.periods() == wire::EventPeriods{0, 0, 1000, 7});
    folder.begin_epoch();
    receiver.take(folder.close_batch());
    receiver.take(folder.close_batch());
    CHECK(receiver.epoch == 2);
    CHECK(receiver.events.size() == 2);  // the reserved one and the new one
    CHECK(folder.periods() == wire::EventPeriods{0, 7});
}

TEST_CASE("a requested epoch begins with the next batch and repeats everything") {
    Setup setup;
    Folder folder(setup.options, setup.table);
    const std::vector<std::uint64_t> chain = {kernel_part, 0xffffffff81000150, user_part, 0x10010};
    Receiver receiver;
    folder.add_sample(setup.sample(chain), 0);
    folder.add_symbols(kernel_symbols(setup.table, {0x150}));
    folder.begin_epoch();
    folder.add_sample(setup.sample(chain), 0);
    receiver.take(folder.close_batch());
    CHECK(receiver.epoch == 1);
    CHECK(receiver.samples == 2);
    folder.add_sample(setup.sample(chain), 0);
    receiver.take(folder.close_batch());
    CHECK(receiver.epoch == 2);
    CHECK(receiver.samples == 3);
    CHECK(receiver.counts.size() == 1);
    CHECK(receiver.recordings == 2);
    // The server that requests it lacks the names, too.
    CHECK(folder.unnamed_kernel_addresses() == std::vector<std::uint64_t>{0x150});
}

TEST_CASE("many random stacks over many epochs: none lost, none twice, memory bounded") {
    Setup setup;
    setup.options.epoch_bytes = 64 << 10;
    setup.options.max_stack = 127;
    Folder folder(setup.options, setup.table);
    Receiver receiver;
    std::mt19937 random(3);
    std::map<std::string, std::uint64_t> expected;
    std::uint64_t added = 0;
    for (int batch = 0; batch < 60; ++batch) {
        for (int i = 0; i < 200; ++i) {
            std::vector<std::uint64_t> chain = {user_part};
            std::string text;
            const std::uint64_t depth = 1 + random() % 20;
            for (std::uint64_t level = 0; level < depth; ++level) {
                const std::uint64_t offset = random() % 64;
                chain.push_back(0x10000 + offset);
                text = "/bin/tool+" + std::to_string(0x400000 + offset) + (level == 0 ? "" : "r;") + text;
            }
            folder.add_sample(setup.sample(chain, second + static_cast<std::uint64_t>(batch)), 0);
            ++expected[text];
            ++added;
        }
        wire::Batch closed = folder.close_batch();
        const wire::EventPeriods periods = folder.periods();
        // The server's periods equal those of the link.
        wire::EventPeriods known;
        if (closed.event_base > 1 || closed.events.empty()) known = periods;
        const std::string bytes = wire::encode(closed, periods);
        const auto decoded = wire::decode(as_bytes_view(bytes), known);
        REQUIRE(decoded);
        receiver.take(*decoded);
    }
    CHECK(receiver.samples == added);
    CHECK(receiver.counts == expected);
    CHECK(receiver.epoch > 10);
    CHECK(receiver.recordings == receiver.epoch);
}

TEST_CASE("a single endless batch keeps its memory limit, too") {
    Setup setup;
    setup.options.epoch_bytes = 8 << 10;
    Folder folder(setup.options, setup.table);
    std::mt19937_64 random(3);
    for (int i = 0; i < 20'000; ++i) {
        const std::vector<std::uint64_t> chain = {user_part, 0x10000 + random() % 0x8000, random() % 0x8000 + 0x10000};
        folder.add_sample(setup.sample(chain), 0);
    }
    Receiver receiver;
    const wire::Batch batch = folder.close_batch();
    receiver.take(batch);
    CHECK(receiver.samples == 20'000);
    CHECK(receiver.losses.at(wire::LossReason::stack_truncated) == receiver.counts.at("[too many stacks]"));
    CHECK(batch.stacks.size() < 8000);
    receiver.take(folder.close_batch());
    CHECK(receiver.epoch == 2);
}

TEST_CASE("off-CPU time that outlasts an epoch keeps its stack") {
    Setup setup;
    setup.options.events.assign(3, {});
    setup.options.event_names = {"cycles", "off-cpu", "io-wait"};
    setup.options.event_units = {"cycles", "ns", "ns"};
    Folder folder(setup.options, setup.table);
    folder.start_off_cpu({1, 0b101}, {{0xffffffff81000100, 0x200, "work"}});
    const std::vector<std::uint64_t> plain{kernel_part, 0xffffffff81000310, user_part, 0x10010, 0x10020};
    const std::vector<std::uint64_t> device{kernel_part, 0xffffffff81000310, 0xffffffff81000110, user_part, 0x10010};
    Receiver receiver;
    const auto leaves = [&](const std::vector<std::uint64_t>& chain, std::uint64_t at) {
        folder.add_sample(setup.sample(chain, at), 1);
        folder.off_cpu().switched({42, at + 1, true, false});
    };
    const auto returns = [&](std::uint64_t at) {
        folder.off_cpu().switched({42, at, false, false});
        folder.emit_off_cpu();
        receiver.take(folder.close_batch());
    };
    leaves(plain, second);
    returns(second + 1'001);
    REQUIRE(receiver.counts.size() == 1);
    const std::string stack = receiver.counts.begin()->first;
    leaves(plain, 2 * second);
    for (int i = 0; i < 3; ++i) {
        folder.begin_epoch();
        receiver.take(folder.close_batch());
    }
    returns(2 * second + 501);
    CHECK(receiver.epoch == 4);
    CHECK(receiver.counts == std::map<std::string, std::uint64_t>{{stack, 2}});
    CHECK(receiver.weights == std::map<std::string, std::uint64_t>{{"off-cpu", 1'500}});
    leaves(device, 3 * second);
    returns(3 * second + 101);
    CHECK(receiver.weights == std::map<std::string, std::uint64_t>{{"off-cpu", 1'500}, {"io-wait", 100}});
    CHECK(folder.unemitted_switches() == 0);
    // Preempted: not one of the requested reasons.
    folder.add_sample(setup.sample(plain, 4 * second), 1);
    folder.off_cpu().switched({42, 4 * second + 1, true, true});
    returns(4 * second + 2);
    CHECK(receiver.samples == 3);
    CHECK(folder.unemitted_switches() == 1);
}

TEST_CASE("a thread that leaves its CPU for the last time, without a tid, has no off-CPU time") {
    Setup setup;
    setup.options.events.assign(1, {});
    setup.options.event_names = {"off-cpu"};
    setup.options.event_units = {"ns"};
    Folder folder(setup.options, setup.table);
    folder.start_off_cpu({0, 0b001}, {});
    SampleRecord last = setup.sample({kernel_part, 0xffffffff81000310}, second);
    last.tid = perf::exited_task;
    folder.add_sample(last, 0);
    folder.off_cpu().switched({perf::exited_task, second + 1, true, false});
    folder.off_cpu().cut(3 * second);
    folder.emit_off_cpu();
    folder.emit_thread_times(3 * second);
    const wire::Batch batch = folder.close_batch();
    CHECK(batch.rows.empty());
    CHECK(batch.thread_times.empty());
    CHECK(folder.unemitted_switches() == 1);
}

TEST_CASE("thread time in unknown states is a loss of the off-CPU event") {
    Setup setup;
    setup.options.events.assign(2, {});
    setup.options.event_names = {"cycles", "off-cpu"};
    setup.options.event_units = {"", "ns"};
    Folder folder(setup.options, setup.table);
    folder.start_off_cpu({1, 0b001}, {});
    folder.off_cpu().found(42, 1, OffCpuReason::off_cpu, second);
    folder.off_cpu().cut(2 * second);
    folder.off_cpu().on_lost_records();
    folder.off_cpu().found(42, 1, OffCpuReason::off_cpu, 2 * second + 300);
    folder.emit_thread_times(3 * second);
    const wire::Batch batch = folder.close_batch();
    REQUIRE(batch.losses.size() == 1);
    CHECK(batch.losses[0] == wire::Loss{wire::LossReason::thread_state_unknown, 300, 3 * second, 3 * second, 2, 0});
}

TEST_CASE("off-CPU state is dropped only when no reason is requested any longer") {
    Setup setup;
    setup.options.events.assign(2, {});
    setup.options.event_names = {"off-cpu", "io-wait"};
    setup.options.event_units = {"ns", "ns"};
    Folder folder(setup.options, setup.table);
    folder.start_off_cpu({0, 0b11}, {});
    folder.add_sample(setup.sample({kernel_part, 0xffffffff81000310}, second), 0);
    folder.off_cpu().switched({42, second + 1, true, false});
    REQUIRE(folder.off_cpu().asleep(42, 2 * second) != 0);
    folder.start_off_cpu({0, 0b01}, {});
    CHECK(folder.off_cpu().asleep(42, 2 * second) != 0);
    folder.start_off_cpu({0, 0}, {});
    CHECK(folder.off_cpu().asleep(42, 2 * second) == 0);
}

TEST_CASE("a waker's stack belongs to the sleeper's process and to the epoch of the wake-up") {
    Setup setup;
    setup.live(43);
    setup.table.attach(43);
    setup.options.events.assign(3, {});
    setup.options.event_names = {"off-cpu", "run-queue", "woken-by"};
    setup.options.event_units = {"ns", "ns", "ns"};
    Folder folder(setup.options, setup.table);
    folder.start_off_cpu({0, 0b1011}, {});
    const std::vector<std::uint64_t> asleep{kernel_part, 0xffffffff81000310, user_part, 0x10010};
    const std::vector<std::uint64_t> waking{kernel_part, 0xffffffff81000110, user_part, 0x10020};
    Receiver receiver;
    std::map<std::string, std::uint64_t> known;
    const auto new_waker_stacks = [&] {
        std::vector<std::string> stacks;
        for (const auto& [stack, count] : receiver.counts)
            if (stack.find("[woken by") != std::string::npos && count != known[stack]) stacks.push_back(stack);
        known = receiver.counts;
        return stacks;
    };
    const auto wake = [&](std::uint64_t at, const std::function<void(SampleRecord&)>& change) {
        folder.add_sample(setup.sample(asleep, at), 0);
        folder.off_cpu().switched({42, at + 1, true, false});
        SampleRecord sample = setup.sample(waking, at + 101, 43);
        sample.woken_tid = 42;
        change(sample);
        folder.add_waking(sample, true);
        // Before its switch in is recorded.
        folder.begin_epoch();
        receiver.take(folder.close_batch());
        folder.off_cpu().switched({42, at + 131, false, false});
        folder.emit_off_cpu();
        receiver.take(folder.close_batch());
        return new_waker_stacks();
    };
    const auto by_other = wake(second, [](SampleRecord&) {});
    REQUIRE(by_other.size() == 1);
    CHECK(by_other[0].ends_with(";[woken by tool]"));
    CHECK(by_other[0].find("/bin/tool") == std::string::npos);
    const auto by_own = wake(2 * second, [](SampleRecord& sample) { sample.pid = sample.tid = 42; });
    REQUIRE(by_own.size() == 1);
    CHECK(by_own[0].starts_with("/bin/tool+"));
    CHECK(by_own[0].ends_with(";[woken by tool]"));
    const auto by_interrupt = wake(3 * second, [](SampleRecord& sample) { sample.by_interrupt = true; });
    REQUIRE(by_interrupt.size() == 1);
    CHECK(by_interrupt[0].ends_with(";[woken by an interrupt]"));
    CHECK(by_interrupt[0].find("/bin/tool") == std::string::npos);
    CHECK(receiver.weights ==
          std::map<std::string, std::uint64_t>{{"off-cpu", 300}, {"run-queue", 90}, {"woken-by", 300}});
    // Three samples of switches and three of wake-ups became nine rows.
    CHECK(folder.unemitted_switches() == 6 - 9);
    // While paused, a sample is only counted.
    SampleRecord while_paused = setup.sample(waking, 4 * second, 43);
    while_paused.woken_tid = 42;
    folder.add_waking(while_paused, false);
    CHECK(folder.unemitted_switches() == 7 - 9);
}
