// Registers, stack bytes and stack modes of samples on the running kernel. A process writes known values to its own
// stack, and its samples must contain them.
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "agent/perf/merge.h"
#include "agent/perf/threads.h"
#include "base/clock.h"
#include "live_target.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// The position of a burning child's code and stack, in memory shared with the test.
struct Place {
    std::atomic<std::uint64_t> marker_address, return_address, stack_top;
    std::atomic<std::uint64_t> since_ns;  // monotonic clock, like the times of samples
    std::atomic<std::uint32_t> tid;       // of the burning thread
};
constexpr std::uint64_t marker = 0x5ca1'ab1e'0ddb'a11d;

__attribute__((noinline)) void burn_in_place(Place& place) {
    static std::array<char, 65'536> bytes;
    place.return_address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    place.tid = static_cast<std::uint32_t>(::gettid());
    place.since_ns = monotonic_ns();
    const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (;;) {
        for (int i = 0; i < 20'000; ++i) asm volatile("" : : : "memory");
        (void)!::read(zero, bytes.data(), bytes.size());  // so that some samples are of the kernel
    }
}

__attribute__((noinline)) void burn_with_marker(Place& place) {
    volatile std::uint64_t on_stack = marker;
    place.marker_address = reinterpret_cast<std::uintptr_t>(&on_stack);
    burn_in_place(place);
    on_stack = 0;  // prevents a tail call
}

// Burns on a stack with a known end and an unreadable page above it.
void burn_on_own_stack(Place& place) {
    constexpr std::size_t size = std::size_t{256} << 10, guard = std::size_t{64} << 10;
    void* memory = ::mmap(nullptr, size + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto top = reinterpret_cast<std::uintptr_t>(memory) + size;
    ::mprotect(reinterpret_cast<void*>(top), guard, PROT_NONE);
    place.stack_top = top;
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, memory, size);
    pthread_t thread{};
    ::pthread_create(
        &thread, &attributes,
        [](void* argument) -> void* {
            burn_with_marker(*static_cast<Place*>(argument));
            return nullptr;
        },
        &place);
    ::pthread_join(thread, nullptr);
}

#if defined(__aarch64__)
constexpr std::uint64_t stack_pointer_bit = std::uint64_t{1} << 31;  // PERF_REG_ARM64_SP
#else
constexpr std::uint64_t stack_pointer_bit = 1U << 7;  // PERF_REG_X86_SP
#endif

std::uint64_t word_at(Bytes bytes, std::uint64_t offset) {
    std::uint64_t word = 0;
    if (offset <= bytes.size() && bytes.size() - offset >= sizeof word)
        std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

// Sums over the samples of one process.
struct Stacks {
    std::uint64_t samples = 0, kernel = 0, kernel_chains = 0, user_chains = 0, without_registers = 0;
    std::uint64_t cut = 0, stack_bytes = 0, to_the_top = 0, markers = 0, returns = 0, sp_in_stack = 0;
    std::uint64_t in_place = 0;  // samples of the burning thread since it started burning
    std::set<wire::StackMode> modes;
    std::set<std::size_t> registers, branches;

    void add(const SampleRecord& sample, const Place& place) {
        ++samples;
        modes.insert(sample.mode);
        kernel += sample.user_mode() ? 0 : 1;
        const auto chain_has = [&](std::uint64_t context) {
            return std::find(sample.callchain.begin(), sample.callchain.end(), context) != sample.callchain.end();
        };
        kernel_chains += chain_has(static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL)) ? 1 : 0;
        user_chains += chain_has(static_cast<std::uint64_t>(PERF_CONTEXT_USER)) ? 1 : 0;
        branches.insert(sample.branches.size());
        cut += sample.stack_cut ? 1 : 0;
        stack_bytes += sample.stack.size();
        if (sample.register_abi == 0) {
            ++without_registers;
            return;
        }
        registers.insert(sample.registers.size());
        const auto before = static_cast<std::size_t>(std::popcount(sample.register_mask & (stack_pointer_bit - 1)));
        if (before >= sample.registers.size()) return;
        const std::uint64_t sp = sample.registers[before];
        sp_in_stack += sp < place.stack_top && place.stack_top - sp <= 16'384 ? 1 : 0;
        to_the_top += sp + sample.stack.size() == place.stack_top ? 1 : 0;
        if (sample.tid != place.tid || sample.time_ns < place.since_ns) return;
        ++in_place;
        markers += word_at(sample.stack, place.marker_address - sp) == marker ? 1 : 0;
        // A function that calls others has its return address in its frame.
        for (std::uint64_t at = 0; at < sample.stack.size(); at += 8)
            if (word_at(sample.stack, at) == place.return_address) {
                ++returns;
                break;
            }
    }
};

struct StacksByProcess final : RecordSink {
    explicit StacksByProcess(const Place& where) : place(where) {}
    const Place& place;
    std::map<std::uint32_t, Stacks> of;
    std::uint64_t lost = 0;
    void on_record(const Record& record, std::optional<std::uint32_t>) override {
        if (const auto* sample = std::get_if<SampleRecord>(&record)) of[sample->pid].add(*sample, place);
        if (const auto* gap = std::get_if<LostRecord>(&record); gap && !gap->sideband) lost += gap->count;
    }
};

bool stacks_work(const Capabilities& capabilities) {
    const bool works =
        capabilities.register_mask != 0 && capabilities.user_stacks && sizeof(void*) == 8 && perf_works();
    if (!works) WARN("NOT tested: no registers and stacks in samples here, or a 32-bit program");
    return works;
}

}  // namespace

TEST_CASE("dwarf mode: registers, the stack from sp on, and only the kernel's half of the chain") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    const SharedMemory<Place> place;
    Child child([&] { burn_on_own_stack(*place); });
    child.go();
    while (place->return_address == 0) ::usleep(1'000);
    for (const std::uint32_t stack_bytes : {16'384U, highest_stack_bytes, 512U}) {
        auto set = open_set({.targets = {{child.pid(), wire::StackMode::dwarf}}, .stack_bytes = stack_bytes});
        StacksByProcess all(*place);
        const Stacks& seen = all.of[child.pid()];
        // The share of a child's time in the kernel depends on the machine.
        do run_cpu(*set, all, child, 0.3);
        while (capabilities.kernel_samples && seen.kernel == 0);
        finish(*set, all);
        CAPTURE(stack_bytes, seen.samples, seen.kernel, seen.without_registers);
        REQUIRE(seen.samples > 100);
        CHECK(all.lost == 0);
        CHECK(seen.modes == std::set{wire::StackMode::dwarf});
        CHECK(seen.without_registers == 0);
        CHECK(seen.registers == std::set{static_cast<std::size_t>(std::popcount(capabilities.register_mask))});
        CHECK(seen.sp_in_stack == seen.samples);
        CHECK(seen.user_chains == 0);
        if (capabilities.kernel_samples) CHECK(seen.kernel < seen.samples);
        CHECK(seen.kernel_chains == seen.kernel);
        // The copy ends at the end of the stack, or because it is full.
        const bool full = stack_bytes == 512;
        CHECK(seen.cut == (full ? seen.samples : 0));
        CHECK(seen.to_the_top == (full ? 0 : seen.samples));
        if (full) {
            CHECK(seen.stack_bytes == seen.samples * 512);
        } else {
            CHECK(seen.markers == seen.samples);
            CHECK(seen.returns == seen.samples);
        }
    }
}

TEST_CASE("stacks can be copied with samples but not with switches") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    const bool at_switches = GENERATE(true, false);
    Child child([] {
        for (;;) {
            burn_thread_cpu(1'000'000);
            ::usleep(1'000);
        }
    });
    child.go();
    auto set = open_set(
        {.targets = {{child.pid(), wire::StackMode::dwarf}}, .copy_at_switches = at_switches, .automatic_modes = true},
        "cpu-clock,off-cpu");
    struct ByEvent final : RecordSink {
        std::map<std::uint32_t, Stacks> of;
        std::set<bool> left_out_of_first, left_out_of_switches;
        void on_record(const Record& record, std::optional<std::uint32_t> event) override {
            const auto* sample = std::get_if<SampleRecord>(&record);
            if (sample == nullptr) return;
            of[*event].add(*sample, Place{});
            (event == 0 ? left_out_of_first : left_out_of_switches).insert(sample->copy_omitted);
        }
    } seen;
    run_cpu(*set, seen, child, 0.2);
    finish(*set, seen);
    CAPTURE(at_switches);
    REQUIRE(seen.of.size() == 2);
    const Stacks& clock = seen.of.at(0);
    const Stacks& switches = seen.of.rbegin()->second;
    CHECK(clock.modes == std::set{wire::StackMode::dwarf});
    CHECK(clock.stack_bytes > 0);
    CHECK(clock.user_chains == clock.samples);
    CHECK(seen.left_out_of_first == std::set{false});
    REQUIRE(switches.samples > 50);
    CHECK(switches.modes == std::set{at_switches ? wire::StackMode::dwarf : wire::StackMode::fp});
    CHECK((switches.stack_bytes > 0) == at_switches);
    CHECK(switches.user_chains == switches.samples);
    CHECK(seen.left_out_of_switches == std::set{!at_switches});
}

TEST_CASE("samples of whole CPUs have a chain in addition to the copy") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    if (::geteuid() != 0) {
        WARN("NOT tested: events of whole CPUs require root here");
        return;
    }
    const SharedMemory<Place> place;
    Child child([] { burn_thread_cpu(60'000'000'000); });
    child.go();
    auto set = open_set({.scope = {.wide = true, .mode = wire::StackMode::dwarf}});
    StacksByProcess all(*place);
    run_cpu(*set, all, child, 0.2);
    finish(*set, all);
    const Stacks& seen = all.of[child.pid()];
    REQUIRE(seen.samples > 50);
    CHECK(seen.modes == std::set{wire::StackMode::dwarf});
    CHECK(seen.user_chains == seen.samples);
    CHECK(seen.stack_bytes > seen.samples);
}

TEST_CASE("targets of different modes share the rings; children have their parent's mode, and all have chains") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    const SharedMemory<Place> place;
    const auto burn = [&] { burn_on_own_stack(*place); };
    // The marker and the addresses are those of the last process that stored them. Only its samples are compared.
    Child by_pointer([] { burn_thread_cpu(60'000'000'000); });
    Child hybrid([] { burn_thread_cpu(60'000'000'000); });
    Child dwarf([&] {
        if (::fork() == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL), burn();
        burn_thread_cpu(60'000'000'000);
    });
    auto set = open_set({.targets = {{by_pointer.pid()},
                                     {hybrid.pid(), wire::StackMode::hybrid},
                                     {dwarf.pid(), wire::StackMode::dwarf}},
                         .automatic_modes = true});
    StacksByProcess all(*place);
    for (const Child* child : {&by_pointer, &hybrid, &dwarf}) child->go();
    for (const Child* child : {&by_pointer, &hybrid, &dwarf}) run_cpu(*set, all, *child, 0.15);
    finish(*set, all);
    REQUIRE(all.of.size() == 4);
    CHECK(all.lost == 0);
    const auto words = [](std::uint64_t mask) { return std::set{static_cast<std::size_t>(std::popcount(mask))}; };
    for (const auto& [pid, seen] : all.of) {
        CAPTURE(pid, seen.samples);
        CHECK(seen.samples > 30);
        CHECK(seen.without_registers == 0);
        if (pid == by_pointer.pid()) {
            CHECK(seen.modes == std::set{wire::StackMode::fp});
            CHECK(seen.registers == words(capabilities.stack_pointer_mask));
            CHECK(seen.user_chains == seen.samples);
            CHECK(seen.stack_bytes == 0);
        } else if (pid == hybrid.pid()) {
            CHECK(seen.modes == std::set{wire::StackMode::hybrid});
            CHECK(seen.registers == words(capabilities.register_mask));
            CHECK(seen.user_chains == seen.samples);
            CHECK(seen.stack_bytes <= seen.samples * 2'048);
            CHECK(seen.stack_bytes > 0);
        } else {
            CHECK(seen.modes == std::set{wire::StackMode::dwarf});
            CHECK(seen.registers == words(capabilities.register_mask));
            CHECK(seen.user_chains == seen.samples);
            CHECK(seen.stack_bytes > 0);
            if (pid != dwarf.pid()) {
                CHECK(seen.in_place > 30);
                CHECK(seen.markers == seen.in_place);
            }
        }
    }
}

TEST_CASE("threads and processes that start while the agent attaches are opened in their parent's mode") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    // Each creates its first child after it was opened. That clone() may have begun earlier, so the child is opened and
    // inherits, too.
    Child makes_thread([] {
        ::usleep(300'000);
        std::thread([] { burn_thread_cpu(60'000'000'000); }).join();
    });
    Child makes_process([] {
        ::usleep(300'000);
        if (::fork() == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        burn_thread_cpu(60'000'000'000);
    });
    Child other([] { burn_thread_cpu(60'000'000'000); });
    for (const Child* child : {&makes_thread, &makes_process, &other}) child->go();

    Kernel kernel = real_kernel();
    std::map<pid_t, std::set<std::uint64_t>> opened_types;  // sample_type of the sampling events of each thread
    kernel.open = [&](perf_event_attr& attr, pid_t tid, int cpu) {
        if (attr.config != PERF_COUNT_SW_DUMMY) opened_types[tid].insert(attr.sample_type);
        return real_kernel().open(attr, tid, cpu);
    };
    const auto choice = choose_events(*parse_events("cpu-clock", real_sysfs()), 999, 0, true, capabilities);
    REQUIRE(choice);
    auto set = EventSet::open({.choice = *choice,
                               .targets = {{other.pid()},
                                           {makes_thread.pid(), wire::StackMode::dwarf},
                                           {makes_process.pid(), wire::StackMode::dwarf}}},
                              capabilities, kernel);
    REQUIRE(set);
    CHECK(opened_types.size() == 3);
    const SharedMemory<Place> place;
    StacksByProcess all(*place);
    run_cpu(**set, all, makes_thread, 0.2);
    run_cpu(**set, all, makes_process, 0.2);
    finish(**set, all);
    REQUIRE(opened_types.size() == 5);  // the FORK records revealed them
    for (const auto& [tid, sample_types] : opened_types) {
        CAPTURE(tid);
        REQUIRE(sample_types.size() == 1);
        const bool with_stack = (*sample_types.begin() & PERF_SAMPLE_STACK_USER) != 0;
        CHECK(with_stack == (static_cast<std::uint32_t>(tid) != other.pid()));
    }
    CHECK(all.of.size() == 4);
    for (const auto& [pid, seen] : all.of) {
        CAPTURE(pid, seen.samples);
        CHECK(seen.modes == std::set{pid == other.pid() ? wire::StackMode::fp : wire::StackMode::dwarf});
        CHECK((seen.user_chains == 0) == (pid != other.pid()));
    }
}

TEST_CASE("lost samples with stacks are all counted") {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    if (!stacks_work(capabilities)) return;
    if (!capabilities.format_lost) {
        WARN("NOT tested: no PERF_FORMAT_LOST here");
        return;
    }
    const SharedMemory<Place> place;
    Child child([] { burn_thread_cpu(60'000'000'000); });
    child.go();
    const EventSetOptions options{.targets = {{child.pid(), wire::StackMode::dwarf}}, .start_disabled = true};
    EventSetOptions little = options;
    little.ring_pages = 16;
    auto small = open_set(little);
    auto large = open_set(options);
    StacksByProcess few(*place), all(*place);
    REQUIRE(large->enable());
    REQUIRE(small->enable());
    for (int round = 0; round < 3; ++round) {
        burn_until(child, 0.1);
        small->drain(few, release_everything);
        large->drain(all, release_everything);
    }
    REQUIRE(small->disable());
    REQUIRE(large->disable());
    small->drain_rest(few);
    large->drain_rest(all);
    const EventSetCounts counts = small->counts();
    CHECK(counts.samples_read == few.of[child.pid()].samples);
    CHECK(counts.samples_read > 3);
    CHECK(counts.samples_lost > 100);
    CHECK(few.lost == counts.samples_lost);
    // The second set has larger rings and counts the same. If little memory may be locked, it loses some samples, too.
    CHECK(static_cast<double>(counts.samples_read + counts.samples_lost) ==
          Approx(static_cast<double>(all.of[child.pid()].samples + all.lost)).epsilon(0.25));
}

TEST_CASE("limitations of the stack modes are reported once") {
    if (!perf_works()) return;
    Capabilities capabilities = read_capabilities(real_sysfs());
    const auto choice = choose_events(*parse_events("cpu-clock,task-clock", real_sysfs()), 99, 0, true, capabilities);
    REQUIRE(choice);
    const auto self = static_cast<std::uint32_t>(::getpid());
    const auto codes = [&](wire::StackMode mode, std::uint32_t max_depth) {
        auto set = EventSet::open({.choice = *choice, .targets = {{self, mode}}, .max_depth = max_depth}, capabilities);
        if (!set) return std::vector<std::string>{set.error().message};
        std::vector<std::string> found;
        for (const wire::Notice& notice : (*set)->take_notices())
            if (notice.code != "rings-halved") found.push_back(notice.code + ": " + notice.remedy);
        return found;
    };
    using Codes = std::vector<std::string>;
    capabilities.max_stack = 127;
    CHECK(codes(wire::StackMode::fp, 0).empty());
    CHECK(codes(wire::StackMode::fp, 127).empty());
    CHECK(codes(wire::StackMode::fp, 1'024) == Codes{"depth-limited: sysctl -w kernel.perf_event_max_stack=1024"});
    if (stacks_work(capabilities)) CHECK(codes(wire::StackMode::dwarf, 1'024).empty());
    // Both are software events and have no branch records, so they are sampled as in fp mode.
    capabilities.branch_stacks = true;
    CHECK(codes(wire::StackMode::lbr, 0) == Codes{"lbr-hardware-only: "});
    capabilities.branch_stacks = capabilities.user_stacks = false;
    capabilities.unwind_modes = {"auto", "fp"};
    CHECK(codes(wire::StackMode::lbr, 0).at(0).starts_with("lbr needs a CPU"));
    CHECK(codes(wire::StackMode::hybrid, 0) ==
          Codes{"hybrid needs a kernel that hands out user registers and stacks with samples; available: auto, fp"});
}

TEST_CASE("large sample rings shrink before the rings of process records do") {
    if (!perf_works()) return;
    const Capabilities capabilities = read_capabilities(real_sysfs());
    const auto choice = choose_events(*parse_events("cpu-clock", real_sysfs()), 999, 0, true, capabilities);
    REQUIRE(choice);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    constexpr std::size_t allowed = std::size_t{256} << 10, sideband = std::size_t{128} << 10;
    Kernel kernel = real_kernel();
    std::set<std::size_t> mapped;
    kernel.map = [&](int fd, std::size_t size, int& error) -> void* {
        if (size <= allowed + page) {
            mapped.insert(size);
            return real_kernel().map(fd, size, error);
        }
        error = -EPERM;
        return nullptr;
    };
    const auto self = static_cast<std::uint32_t>(::getpid());
    auto set = EventSet::open(
        {.choice = *choice, .targets = {{self}}, .ring_pages = static_cast<std::uint32_t>((16 * allowed) / page)},
        capabilities, kernel);
    REQUIRE(set);
    CHECK(mapped == std::set{allowed + page, sideband + page});
    CHECK((*set)->take_notices().at(0).code == "rings-halved");
}
