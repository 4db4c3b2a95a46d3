// Requests to the kernel and what the agent concludes from the replies, on fake kernels that reply as 4.9, 5.4 and 6.x
// do.
#include "agent/perf/capabilities.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>

#include "agent/perf/event_probe.h"
#include "agent/perf/open_error.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

struct FakeKernel {
    int version = 600;        // 409, 504, 600
    bool pmu = true;          // has hardware counters …
    bool counts = true;       // … which count
    bool scheduled = true;    // … and get scheduled
    bool kernel_mode = true;  // kernel mode may be sampled
    int open_error = 0;       // errno of every open
    bool registers = true;    // HAVE_PERF_REGS and HAVE_PERF_USER_STACK_DUMP
    bool narrow = false;      // a 32-bit kernel: it supports 16 registers
    bool call_stacks = true;  // branch records in call-stack mode
    int max_precise = 3;
    std::int64_t paranoid = 1;
    std::int64_t max_rate = 100'000;
    int next_fd = 1'000;
    int opens = 0, reads = 0;
    std::map<int, perf_event_attr> fds = {};

    int open(const perf_event_attr& attr) {
        ++opens;
        if (open_error != 0) return -open_error;
        // Reserved bits and unknown read formats are EINVAL; build_id came with 5.12, PERF_FORMAT_LOST with 6.0.
        if (attr.build_id != 0 && version < 512) return -EINVAL;
        if ((attr.read_format & PERF_FORMAT_LOST) != 0 && version < 600) return -EINVAL;
        if (attr.freq != 0 && attr.sample_freq > static_cast<std::uint64_t>(max_rate)) return -EINVAL;
        if (attr.exclude_kernel == 0 && !kernel_mode) return -EACCES;
        if ((attr.sample_type & PERF_SAMPLE_REGS_USER) != 0) {
            if (!registers) return -ENOSYS;
            if (attr.sample_regs_user == 0 || (narrow && attr.sample_regs_user >> 16 != 0)) return -EINVAL;
        }
        if ((attr.sample_type & PERF_SAMPLE_STACK_USER) != 0) {
            if (!registers) return -ENOSYS;
            if (attr.sample_stack_user >= 65'535 || attr.sample_stack_user % 8 != 0) return -EINVAL;
        }
        const bool hardware = attr.type != PERF_TYPE_SOFTWARE && attr.type != PERF_TYPE_TRACEPOINT;
        if (hardware && !pmu) return -ENOENT;
        if ((attr.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 && (!hardware || !call_stacks)) return -EOPNOTSUPP;
        if (hardware && static_cast<int>(attr.precise_ip) > max_precise) return -EOPNOTSUPP;
        if (attr.type == PERF_TYPE_HARDWARE && (attr.config >> 32) != 0 && version < 515) return -EINVAL;
        fds[++next_fd] = attr;
        return next_fd;
    }

    Kernel calls() {
        return {[this](perf_event_attr& attr, pid_t, int) { return open(attr); },
                [](int, unsigned long, unsigned long) { return 0; },
                [](int, std::uint64_t& id) {
                    id = 1;
                    return 0;
                },
                [this](int fd, std::span<std::uint64_t> values) {
                    ++reads;
                    const bool hardware = fds.at(fd).type != PERF_TYPE_SOFTWARE;
                    values[1] = 1'000;
                    values[2] = scheduled || !hardware ? 1'000 : 0;
                    values[0] = values[2] > 0 && (counts || !hardware) ? 42 : 0;
                    return 3;
                },
                [](int, std::size_t, int& error) -> void* {
                    error = -EPERM;
                    return nullptr;
                },
                [this](int fd) { REQUIRE(fds.erase(fd) == 1); },
                [this](const std::string& name) -> std::optional<std::int64_t> {
                    if (name == "perf_event_paranoid") return paranoid;
                    if (name == "perf_event_max_sample_rate") return max_rate;
                    if (name == "perf_event_max_stack") return 127;
                    if (name == "perf_event_mlock_kb") return 516;
                    return std::nullopt;
                }};
    }
};

Capabilities read(FakeKernel& kernel, const FakeTree& tree = plain_x86()) {
    return read_capabilities(fake_sysfs(tree), kernel.calls());
}

Result<EventChoice> choose(FakeKernel& kernel, std::string_view events, std::uint32_t hz = 99, std::uint64_t period = 0,
                           bool kernel_mode = true, const FakeTree& tree = plain_x86()) {
    return choose_events(*parse_events(events, fake_sysfs(tree)), hz, period, kernel_mode, read(kernel, tree),
                         kernel.calls());
}

const wire::Notice* notice(const EventChoice& choice, std::string_view code) {
    for (const wire::Notice& one : choice.notices)
        if (one.code == code) return &one;
    return nullptr;
}

}  // namespace

TEST_CASE("attribute bits are tried one by one") {
    FakeKernel now{.version = 600}, k54{.version = 504}, k49{.version = 409};
    const Capabilities modern = read(now);
    CHECK((modern.perf_events && modern.clockid && modern.format_lost && modern.build_id && modern.kernel_samples));
    CHECK(
        (modern.max_stack == 127 && modern.max_sample_rate_hz == 100'000 && modern.mlock_bytes_per_cpu == 516 * 1024));
    CHECK(modern.pmus == std::vector<std::string>{"amd_df", "broken", "cpu", "software", "uncore_imc_0"});
    CHECK(modern.unwind_modes == std::vector<std::string>{"auto", "fp", "dwarf", "lbr"});
    for (FakeKernel* old : {&k54, &k49}) {
        const Capabilities capabilities = read(*old);
        CHECK((capabilities.perf_events && capabilities.clockid && capabilities.kernel_samples));
        CHECK_FALSE((capabilities.format_lost || capabilities.build_id));
        CHECK(old->fds.empty());
        // With the detected capabilities, opening works on the old kernel, too.
        CHECK(choose(*old, "cycles,cpu-clock")->events.size() == 2);
    }
}

TEST_CASE("a period takes precedence over a frequency") {
    FakeKernel kernel{.version = 600};
    const auto choice = choose(kernel, "cpu-clock,page-faults@50", 99, 1'000);
    REQUIRE(choice);
    CHECK((choice->period == 1'000 && choice->frequency_hz == 0));
    const SampleAttrOptions options{.frequency_hz = choice->frequency_hz, .period = choice->period};
    const perf_event_attr attr = sample_attr(choice->events[0], choice->events[0].parts[0], options, read(kernel));
    CHECK((attr.freq == 0 && attr.sample_period == 1'000));
    CHECK(choice->events[1].frequency_hz == 50);
}

TEST_CASE("stack modes are probed, too") {
    using Modes = std::vector<std::string>;
    FakeKernel no_registers{.registers = false}, no_branches{.call_stacks = false}, no_pmu_here{.pmu = false};
    const Capabilities plain = read(no_registers);
    CHECK(plain.unwind_modes == Modes{"auto", "fp", "lbr"});
    CHECK((plain.register_mask == 0 && plain.stack_pointer_mask == 0 && !plain.user_stacks));
    CHECK(read(no_pmu_here).unwind_modes == Modes{"auto", "fp", "dwarf"});
    const Capabilities copies = read(no_branches);
    CHECK(copies.unwind_modes == Modes{"auto", "fp", "dwarf"});
    CHECK((copies.user_stacks && !copies.branch_stacks));
    CHECK((copies.register_mask & copies.stack_pointer_mask) == copies.stack_pointer_mask);
    CHECK(std::popcount(copies.stack_pointer_mask) >= 2);
    CHECK(no_branches.fds.empty());

    CHECK(check_unwind_here("auto", plain));
    CHECK(check_unwind_here("fp", plain));
    CHECK(check_unwind_here("lbr", plain));
    for (const char* mode : {"dwarf", "hybrid"}) {
        const auto refused = check_unwind_here(mode, plain);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::unsupported);
        CHECK(refused.error().message ==
              std::string(mode) +
                  " needs a kernel that hands out user registers and stacks with samples; available: auto, fp, lbr");
        CHECK(check_unwind_here(mode, copies));
    }
    const auto refused = check_unwind_here("lbr", copies);
    REQUIRE_FALSE(refused);
    CHECK(
        refused.error().message ==
        "lbr needs a CPU that records call stacks (Intel) and whose counters can be used; available: auto, fp, dwarf");
    // If nothing may be opened, opening reports the reason.
    CHECK(check_unwind_here("dwarf", Capabilities{}));
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("a 32-bit kernel is detected by the registers that it supports") {
    FakeKernel wide, narrow{.narrow = true};
    const Capabilities here = read(wide), there = read(narrow);
    CHECK(here.register_mask >> 16 != 0);
    CHECK(there.register_mask != 0);
    CHECK(there.register_mask >> 16 == 0);
    CHECK(here.register_arch != there.register_arch);
#if defined(__x86_64__)
    CHECK(here.register_arch == unwind::Arch::x86_64);
    CHECK(there.register_arch == unwind::Arch::x86);
    CHECK(here.stack_pointer_mask == 0x180);  // PERF_REG_X86_SP 7, PERF_REG_X86_IP 8
#else
    CHECK(here.register_arch == unwind::Arch::aarch64);
    CHECK(there.register_arch == unwind::Arch::arm);
    // PERF_REG_ARM64_SP 31, _PC 32, and their places in a 32-bit process.
    CHECK(here.stack_pointer_mask == 0x1'8000'a000);
    CHECK(there.stack_pointer_mask == 0xa000);  // PERF_REG_ARM_SP 13, PERF_REG_ARM_PC 15
#endif
}
#endif

TEST_CASE("names of stack modes") {
    for (const wire::StackMode mode :
         {wire::StackMode::fp, wire::StackMode::hybrid, wire::StackMode::dwarf, wire::StackMode::lbr})
        CHECK(stack_mode(name_of(mode)) == mode);
    CHECK(name_of(wire::StackMode::lbr) == "lbr");
    CHECK_FALSE(stack_mode("auto"));
    CHECK_FALSE(stack_mode(""));
}

TEST_CASE("without perf events, each capability has a reason") {
    FakeKernel none{.open_error = ENOSYS}, forbidden{.open_error = EACCES, .paranoid = 4};
    CHECK_FALSE(read(none).perf_events);
    CHECK(none.opens == 1);
    const auto no_call = choose(none, "cycles");
    REQUIRE_FALSE(no_call);
    CHECK(no_call.error().code == ErrorCode::unsupported);
    const auto refused = choose(forbidden, "cycles");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::permission);
    CHECK(refused.error().message ==
          "kernel.perf_event_paranoid is 4: ordinary users may not use perf events. Try: sysctl -w "
          "kernel.perf_event_paranoid=1");
    CHECK(probe_capabilities(fake_sysfs(plain_x86()), none.calls()).sampling_events.empty());
}

TEST_CASE("cycles if they work, else the clock") {
    FakeKernel good;
    const auto cycles = choose(good, "cycles:u", 999);
    REQUIRE(cycles);
    CHECK(cycles->notices.empty());
    CHECK(cycles->events.at(0).name == "cycles:u");
    CHECK(cycles->kernel);
    CHECK(cycles->frequency_hz == 999);
    CHECK(good.reads == 1);  // it counted at once: no busy loop was needed
    CHECK(good.fds.empty());

    FakeKernel no_pmu_kernel{.pmu = false};
    const auto clock = choose(no_pmu_kernel, "cycles:u@49");
    REQUIRE(clock);
    CHECK(clock->events.at(0).name == "cpu-clock:u");
    CHECK(clock->events.at(0).unit == "ns");
    CHECK(clock->events.at(0).exclude_kernel);
    CHECK(*clock->events.at(0).frequency_hz == 49);
    REQUIRE(notice(*clock, "event-fallback"));
    CHECK(notice(*clock, "event-fallback")->text ==
          "Sampling cpu-clock:u instead of cycles:u: this CPU or kernel has no event cycles:u.");

    FakeKernel silent{.counts = false};
    const auto dead = choose(silent, "cycles,cpu-clock,cache-misses");
    REQUIRE(dead);
    REQUIRE(dead->events.size() == 1);  // the clock once, not twice
    CHECK(dead->events[0].name == "cpu-clock");
    CHECK(notice(*dead, "event-fallback")->text.find("never counts") != std::string::npos);
    CHECK(notice(*dead, "event-unsupported")->text.starts_with("cache-misses is left out"));

    FakeKernel taken{.scheduled = false};
    const auto busy = choose(taken, "cycles");
    REQUIRE(busy);
    CHECK(notice(*busy, "event-fallback")->remedy == "sysctl -w kernel.nmi_watchdog=0");

    FakeKernel no_other{.pmu = false};
    const auto nothing = choose(no_other, "instructions,cache-misses");
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().code == ErrorCode::unsupported);
    CHECK(nothing.error().message == "instructions: this CPU or kernel has no event instructions");
}

TEST_CASE("rates above the limit are lowered, with a notice") {
    FakeKernel kernel{.max_rate = 500};
    const auto clamped = choose(kernel, "cycles,cpu-clock@4000,instructions@100", 999);
    REQUIRE(clamped);
    CHECK(clamped->frequency_hz == 500);
    CHECK(*clamped->events.at(1).frequency_hz == 500);
    CHECK(*clamped->events.at(2).frequency_hz == 100);
    REQUIRE(notice(*clamped, "rate-clamped"));
    CHECK(notice(*clamped, "rate-clamped")->text ==
          "The kernel allows 500 samples per second, so sampling runs at 500 Hz instead of 999 Hz.");
    CHECK(notice(*clamped, "rate-clamped")->remedy == "sysctl -w kernel.perf_event_max_sample_rate=999");

    const auto by_period = choose(kernel, "cycles", 0, 1'000'000);
    REQUIRE(by_period);
    CHECK((by_period->frequency_hz == 0 && by_period->period == 1'000'000 && by_period->notices.empty()));
    CHECK_FALSE(choose(kernel, "cycles", 0, 0));
}

TEST_CASE("kernel mode only if permitted") {
    FakeKernel kernel{.kernel_mode = false, .paranoid = 2};
    const auto user = choose(kernel, "cycles,cpu-clock:k");
    REQUIRE(user);
    CHECK_FALSE(user->kernel);
    CHECK(user->events.size() == 1);
    REQUIRE(notice(*user, "kernel-excluded"));
    CHECK(notice(*user, "kernel-excluded")->remedy == "sysctl -w kernel.perf_event_paranoid=1");
    const auto only_kernel = choose(kernel, "cpu-clock:k");
    REQUIRE_FALSE(only_kernel);
    CHECK(only_kernel.error().code == ErrorCode::permission);

    FakeKernel allowed;
    const auto not_wanted = choose(allowed, "cycles", 99, 0, false);
    REQUIRE(not_wanted);
    CHECK_FALSE(not_wanted->kernel);
    CHECK(not_wanted->notices.empty());
}

TEST_CASE("hybrid parts on a kernel without PMU numbers, and precise levels") {
    FakeKernel old{.version = 504};
    const auto parts = choose(old, "cycles", 99, 0, true, arm_big_little());
    REQUIRE(parts);
    REQUIRE(parts->events.at(0).parts.size() == 2);
    CHECK(parts->events[0].parts[0].config == 0);
    CHECK(parts->events[0].parts[1].cpus == std::vector<std::uint32_t>{4, 5});
    CHECK(parts->notices.empty());

    FakeKernel amd{.max_precise = 0};
    const auto precise = choose(amd, "cycles:ppp");
    REQUIRE(precise);
    CHECK(precise->events.at(0).precise == 0);
    CHECK(notice(*precise, "precise-lowered"));
}

TEST_CASE("the full probe lists the events that counted") {
    FakeKernel good, silent{.counts = false};
    const Capabilities all = probe_capabilities(fake_sysfs(plain_x86()), good.calls());
    const auto has = [](const Capabilities& capabilities, const char* name) {
        return std::find(capabilities.sampling_events.begin(), capabilities.sampling_events.end(), name) !=
               capabilities.sampling_events.end();
    };
    CHECK((has(all, "cycles") && has(all, "LLC-load-misses") && has(all, "page-faults") && has(all, "cpu-clock")));
    CHECK(good.fds.empty());
    const Capabilities soft = probe_capabilities(fake_sysfs(plain_x86()), silent.calls());
    CHECK_FALSE((has(soft, "cycles") || has(soft, "LLC-load-misses")));
    CHECK((has(soft, "page-faults") && has(soft, "cpu-clock")));
}

TEST_CASE("a failed check has a text, and a working one has no remedy") {
    const auto found = probe_capabilities(real_sysfs(), real_kernel());
    const auto of = [&](std::string_view code) {
        return std::ranges::find_if(found.diagnostics,
                                    [&](const Diagnostic& diagnostic) { return diagnostic.code == code; });
    };
    REQUIRE(of("perf-events") != found.diagnostics.end());
    CHECK(of("perf-events")->works == found.perf_events);
    if (found.perf_events) {
        CHECK(of("kernel-samples")->works == found.kernel_samples);
        CHECK(of("lbr")->works == found.branch_stacks);
        CHECK(of("dwarf")->works == (found.user_stacks && found.register_mask != 0));
    }
    for (const Diagnostic& diagnostic : found.diagnostics) {
        CHECK_FALSE(diagnostic.text.empty());
        CHECK((diagnostic.code == "event") == !diagnostic.name.empty());
        if (diagnostic.works) CHECK(diagnostic.remedy.empty());
        CHECK(std::ranges::find(found.sampling_events, diagnostic.name) == found.sampling_events.end());
    }

    Kernel none = real_kernel();
    none.open = [](perf_event_attr&, pid_t, int) { return -EACCES; };
    none.sysctl = [](const std::string&) { return std::optional<std::int64_t>(3); };
    const auto refused = probe_capabilities(real_sysfs(), none);
    REQUIRE(refused.diagnostics.size() == 1);
    CHECK(refused.diagnostics.front().code == "perf-events");
    CHECK(refused.diagnostics.front().remedy == "sysctl -w kernel.perf_event_paranoid=1");

    // Other users' processes and kernel mode are refused.
    Kernel strict = real_kernel();
    strict.open = [](perf_event_attr& attr, pid_t pid, int cpu) {
        if (pid == 1) return -EPERM;
        return attr.exclude_kernel == 0 && attr.type != PERF_TYPE_SOFTWARE ? -EACCES
                                                                           : real_kernel().open(attr, pid, cpu);
    };
    if (!found.perf_events) return;
    const auto some = probe_capabilities(real_sysfs(), strict);
    const auto others = std::ranges::find_if(
        some.diagnostics, [](const Diagnostic& diagnostic) { return diagnostic.code == "other-users"; });
    REQUIRE(others != some.diagnostics.end());
    CHECK_FALSE(others->works);
    CHECK(others->remedy.find("cap_sys_ptrace") != std::string::npos);
}

TEST_CASE("every refusal has its message and remedy") {
    struct Expected {
        int error;
        ErrorCode code;
        const char* text;
        const char* remedy;
    };
    const auto expected =
        GENERATE(Expected{ENOENT, ErrorCode::unsupported, "has no event", ""},
                 Expected{ENOSYS, ErrorCode::unsupported, "CONFIG_PERF_EVENTS", ""},
                 Expected{EOPNOTSUPP, ErrorCode::unsupported, "cannot be sampled", ""},
                 Expected{EINVAL, ErrorCode::unsupported, "does not accept", ""},
                 Expected{E2BIG, ErrorCode::unsupported, "does not accept", ""},
                 Expected{EBUSY, ErrorCode::busy, "taken by another user", "nmi_watchdog"},
                 Expected{EMFILE, ErrorCode::busy, "limit of open files", "ulimit -n"},
                 Expected{ENFILE, ErrorCode::busy, "no file handles", "fs.file-max"},
                 Expected{ENOMEM, ErrorCode::busy, "no memory", ""}, Expected{EIO, ErrorCode::io, "cannot open", ""});
    const Explanation why = explain_open_failure({expected.error, "cycles", 0, 2});
    INFO(why.text);
    CHECK(why.code == expected.code);
    CHECK(why.text.find(expected.text) != std::string::npos);
    CHECK(why.remedy.find(expected.remedy) != std::string::npos);
    CHECK(why.remedy.empty() == std::string_view(expected.remedy).empty());
    CHECK(explain_open_failure({EACCES, "cycles", 4242, 2}).text.find("this user may not profile process 4242") == 0);
    CHECK(explain_open_failure({EACCES, "cycles", 4242, 2}).remedy.find("cap_sys_ptrace") != std::string::npos);
    for (const int error : {EBADF, EINVAL, ENOENT}) {
        const Explanation group = explain_open_failure({.error = error, .event = "cycles", .cgroup = true});
        CHECK(group.text.starts_with("the kernel does not accept event cycles for this control group: "));
        CHECK(group.text.find("perf_event") != std::string::npos);
        CHECK_FALSE(group.remedy.empty());
    }
}
