#include "agent/perf/capabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "agent/perf/attr.h"
#include "agent/perf/diagnostics.h"
#include "agent/perf/event_names.h"
#include "agent/perf/event_probe.h"
#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "unwind/frame/linux_registers.h"

namespace flamewire::agent {
namespace {

// Tried by probe_capabilities, and shown in this order.
constexpr std::array<std::string_view, 21> usual_events{
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branch-instructions",
    "branch-misses",
    "ref-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "L1-dcache-loads",
    "L1-dcache-load-misses",
    "LLC-loads",
    "LLC-load-misses",
    "dTLB-load-misses",
    "iTLB-load-misses",
    "cpu-clock",
    "task-clock",
    "page-faults",
    "major-faults",
    "context-switches",
    "cpu-migrations",
};
constexpr std::uint32_t probe_frequency_hz = 99;

// Opens `attr` on our own thread; returns an errno, 0 on success.
int try_open(perf_event_attr attr, const Kernel& calls) {
    const int fd = calls.open(attr, 0, -1);
    if (fd < 0) return -fd;
    calls.close(fd);
    return 0;
}

// Tests each bit separately: a kernel without it answers EINVAL (a reserved bit) or E2BIG (a longer attr).
void read_attr_bits(Capabilities& capabilities, const Kernel& calls) {
    const perf_event_attr plain = owner_attr(0, Capabilities{});
    capabilities.open_errno = try_open(plain, calls);
    capabilities.perf_events = capabilities.open_errno == 0;
    if (!capabilities.perf_events) return;

    perf_event_attr attr = plain;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    capabilities.clockid = try_open(attr, calls) == 0;
    attr = plain;
    attr.read_format = PERF_FORMAT_LOST;
    capabilities.format_lost = try_open(attr, calls) == 0;
    attr = plain;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.build_id = 1;
    capabilities.build_id = try_open(attr, calls) == 0;

    // A clock that includes kernel mode: refused if kernel.perf_event_paranoid is 2 or more and we lack CAP_PERFMON.
    attr = plain;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = 1'000'000'000;
    attr.exclude_kernel = 0;
    attr.exclude_hv = 0;
    attr.disabled = 1;
    capabilities.kernel_samples = try_open(attr, calls) == 0;
}

// Kernels that can run this program, and the bits of their sp and pc in sample_regs_user (uapi/asm/perf_regs.h). A
// 32-bit kernel refuses registers of a 64-bit one, so the first accepted set is the kernel's.
struct RegisterSet {
    unwind::Arch arch;
    std::uint64_t stack_pointer_mask;
};
#if defined(__x86_64__) || defined(__i386__)
constexpr std::array register_sets{RegisterSet{unwind::Arch::x86_64, 1U << 7 | 1U << 8},
                                   RegisterSet{unwind::Arch::x86, 1U << 7 | 1U << 8}};
#elif defined(__aarch64__) || defined(__arm__)
// A 32-bit process on a 64-bit kernel has its sp and pc at the numbers of r13 and r15.
constexpr std::array register_sets{RegisterSet{unwind::Arch::aarch64, std::uint64_t{3} << 31 | 1U << 13 | 1U << 15},
                                   RegisterSet{unwind::Arch::arm, 1U << 13 | 1U << 15}};
#else
constexpr std::array<RegisterSet, 0> register_sets{};
#endif

// Ways to unwind user stacks besides the kernel's own walk.
void read_unwind_modes(Capabilities& capabilities, const Kernel& calls) {
    capabilities.unwind_modes = {"auto", "fp"};
    if (!capabilities.perf_events) return;
    const perf_event_attr plain = owner_attr(0, Capabilities{});
    for (const RegisterSet& set : register_sets) {
        perf_event_attr attr = plain;
        attr.sample_type |= PERF_SAMPLE_REGS_USER;
        attr.sample_regs_user = unwind::sampled_register_mask(set.arch);
        if (attr.sample_regs_user == 0 || try_open(attr, calls) != 0) continue;
        capabilities.register_mask = attr.sample_regs_user;
        capabilities.stack_pointer_mask = set.stack_pointer_mask;
        capabilities.register_arch = set.arch;
        break;
    }
    perf_event_attr attr = plain;
    attr.sample_type |= PERF_SAMPLE_STACK_USER;
    attr.sample_stack_user = 1'024;
    capabilities.user_stacks = try_open(attr, calls) == 0;

    attr = plain;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CPU_CYCLES;
    attr.sample_period = 1'000'000'000;
    attr.disabled = 1;
    attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
    capabilities.branch_stacks = try_open(attr, calls) == 0;

    if (capabilities.register_mask != 0 && capabilities.user_stacks) capabilities.unwind_modes.emplace_back("dwarf");
    if (capabilities.branch_stacks) capabilities.unwind_modes.emplace_back("lbr");
}

std::uint32_t max_sample_rate(const Kernel& calls) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(calls.sysctl("perf_event_max_sample_rate").value_or(100'000), 1, UINT32_MAX));
}

bool is_cycles(const EventSpec& spec) {
    return !spec.parts.empty() && spec.parts.front().type == PERF_TYPE_HARDWARE &&
           (spec.parts.front().config & 0xffff'ffff) == PERF_COUNT_HW_CPU_CYCLES;
}

EventSpec clock_instead_of(const EventSpec& cycles) {
    const NamedEvent clock = *find_named_event("cpu-clock");
    EventSpec spec;
    spec.name = clock.name;
    if (cycles.exclude_kernel) spec.name += ":u";
    if (cycles.exclude_user) spec.name += ":k";
    spec.unit = clock.unit;
    spec.parts = {{{}, clock.type, clock.config, 0, 0, {}}};
    spec.exclude_user = cycles.exclude_user;
    spec.exclude_kernel = cycles.exclude_kernel;
    spec.frequency_hz = cycles.frequency_hz;
    return spec;
}

// Lowers a rate to what the kernel accepts (above it, perf_event_open answers EINVAL).
std::uint32_t clamp_rate(std::uint32_t wanted_hz, std::uint32_t max_hz, EventChoice& choice) {
    if (wanted_hz <= max_hz) return wanted_hz;
    const bool notified = std::any_of(choice.notices.begin(), choice.notices.end(),
                                      [](const wire::Notice& notice) { return notice.code == "rate-clamped"; });
    if (!notified)
        choice.notices.push_back(
            {"rate-clamped",
             fmt::format("The kernel allows {} samples per second, so sampling runs at {} Hz instead of {} Hz.", max_hz,
                         max_hz, wanted_hz),
             fmt::format("sysctl -w kernel.perf_event_max_sample_rate={}", wanted_hz)});
    return max_hz;
}

bool has_event(const EventChoice& choice, std::string_view name) {
    return std::any_of(choice.events.begin(), choice.events.end(),
                       [&](const EventSpec& spec) { return spec.name == name; });
}

// Handles a wanted event that does not work: cycles become the clock, any other event is left out.
void replace_event(const EventSpec& wanted, const Explanation& why, EventChoice& choice) {
    if (!is_cycles(wanted)) {
        choice.notices.push_back(
            {"event-unsupported", fmt::format("{} is left out: {}.", wanted.name, why.text), why.remedy});
        return;
    }
    EventSpec clock = clock_instead_of(wanted);
    choice.notices.push_back({"event-fallback",
                              fmt::format("Sampling {} instead of {}: {}.", clock.name, wanted.name, why.text),
                              why.remedy});
    if (!has_event(choice, clock.name)) choice.events.push_back(std::move(clock));
}

void choose_mode(bool kernel_wanted, const Capabilities& capabilities, EventChoice& choice) {
    choice.kernel = kernel_wanted && capabilities.kernel_samples;
    if (kernel_wanted && !choice.kernel)
        choice.notices.push_back(
            {"kernel-excluded", kernel_excluded_text(capabilities.paranoid) + ".", std::string(remedy_paranoid)});
}

}  // namespace

Explanation why_not(const EventProbe& probe, const Capabilities& capabilities) {
    if (probe.error != 0) return explain_open_failure({probe.error, probe.spec.name, 0, capabilities.paranoid});
    if (!probe.scheduled) return explain_open_failure({EBUSY, probe.spec.name, 0, capabilities.paranoid});
    return {ErrorCode::unsupported, fmt::format("event {} opens but never counts on this CPU", probe.spec.name), {}};
}

std::string kernel_excluded_text(int paranoid) {
    return fmt::format(
        "Kernel functions are not sampled: kernel.perf_event_paranoid is {} and the agent has no CAP_PERFMON",
        paranoid);
}

std::vector<unwind::Arch> sampled_architectures() {
    std::vector<unwind::Arch> all;
    all.reserve(std::size(register_sets));
    for (const RegisterSet& set : register_sets) all.push_back(set.arch);
    return all;
}

Capabilities read_capabilities(const Sysfs& sysfs, const Kernel& calls) {
    Capabilities capabilities;
    capabilities.paranoid = static_cast<int>(calls.sysctl("perf_event_paranoid").value_or(2));
    capabilities.max_sample_rate_hz = max_sample_rate(calls);
    capabilities.max_stack = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(calls.sysctl("perf_event_max_stack").value_or(127), 1, 65'535));
    capabilities.mlock_bytes_per_cpu =
        1024 * static_cast<std::uint64_t>(std::max<std::int64_t>(calls.sysctl("perf_event_mlock_kb").value_or(516), 0));
    capabilities.pmus = list_pmus(sysfs);
    read_attr_bits(capabilities, calls);
    read_unwind_modes(capabilities, calls);
    return capabilities;
}

Capabilities probe_capabilities(const Sysfs& sysfs, const Kernel& calls) {
    Capabilities capabilities = read_capabilities(sysfs, calls);
    if (!capabilities.perf_events) {
        capabilities.diagnostics = collect_diagnostics(capabilities, {}, sysfs, calls);
        return capabilities;
    }
    std::vector<EventSpec> specs;
    for (const std::string_view name : usual_events)
        if (auto parsed = parse_events(name, sysfs)) specs.push_back(std::move(parsed->front()));
    const SampleAttrOptions options{.frequency_hz = std::min(probe_frequency_hz, capabilities.max_sample_rate_hz),
                                    .kernel = capabilities.kernel_samples};
    const std::vector<EventProbe> probes = probe_events(specs, options, capabilities, calls);
    for (const EventProbe& probe : probes)
        if (probe.works()) capabilities.sampling_events.push_back(probe.spec.name);
    capabilities.diagnostics = collect_diagnostics(capabilities, probes, sysfs, calls);
    return capabilities;
}

std::string_view name_of(wire::StackMode mode) {
    switch (mode) {
        case wire::StackMode::fp: return "fp";
        case wire::StackMode::hybrid: return "hybrid";
        case wire::StackMode::dwarf: return "dwarf";
        case wire::StackMode::lbr: return "lbr";
    }
    return "fp";
}

std::optional<wire::StackMode> stack_mode(std::string_view name) {
    for (const wire::StackMode mode :
         {wire::StackMode::fp, wire::StackMode::hybrid, wire::StackMode::dwarf, wire::StackMode::lbr})
        if (name == name_of(mode)) return mode;
    return std::nullopt;
}

Result<bool> check_unwind_here(std::string_view mode, const Capabilities& capabilities) {
    // Without perf events nothing works, and opening the events reports why.
    if (!capabilities.perf_events) return true;
    std::string_view needs;
    if (mode == "lbr" && !capabilities.branch_stacks)
        needs = "a CPU that records call stacks (Intel) and whose counters can be used";
    if ((mode == "dwarf" || mode == "hybrid") && (capabilities.register_mask == 0 || !capabilities.user_stacks))
        needs = "a kernel that hands out user registers and stacks with samples";
    if (needs.empty()) return true;
    std::string available;
    for (const std::string& one : capabilities.unwind_modes) available += (available.empty() ? "" : ", ") + one;
    return fail(ErrorCode::unsupported, fmt::format("{} needs {}; available: {}", mode, needs, available));
}

std::uint64_t sample_rate(const EventChoice& choice) {
    std::uint64_t sum_hz = 0;
    for (const EventSpec& spec : choice.events) {
        const std::uint32_t hz = spec.off_cpu != 0 ? 0 : sampling_rate_of(spec, {choice.frequency_hz, 0}).frequency_hz;
        if (hz == 0) return 0;
        sum_hz += hz;
    }
    return sum_hz;
}

Result<EventChoice> choose_events(std::vector<EventSpec> wanted, std::uint32_t frequency_hz, std::uint64_t period,
                                  bool kernel, const Capabilities& capabilities, const Kernel& calls) {
    if (!capabilities.perf_events)
        return std::unexpected(open_error({capabilities.open_errno, {}, 0, capabilities.paranoid}));
    if (!capabilities.clockid)
        return fail(ErrorCode::unsupported,
                    "this kernel cannot stamp samples with the monotonic clock (it needs Linux 4.1)");
    if (wanted.empty()) return EventChoice{};
    if (frequency_hz == 0 && period == 0)
        return fail(ErrorCode::invalid, "neither a sampling frequency nor a period is given");

    EventChoice choice;
    choose_mode(kernel, capabilities, choice);
    // Read it again: the kernel lowers it at run time.
    const std::uint32_t max_hz = max_sample_rate(calls);
    choice.period = period;
    choice.frequency_hz = period == 0 ? clamp_rate(frequency_hz, max_hz, choice) : 0;
    for (EventSpec& spec : wanted)
        if (spec.frequency_hz) spec.frequency_hz = clamp_rate(*spec.frequency_hz, max_hz, choice);

    const SampleAttrOptions options{
        .frequency_hz = choice.frequency_hz, .period = choice.period, .kernel = choice.kernel};
    std::optional<Error> first_failure;
    const std::vector<EventProbe> probes = probe_events(wanted, options, capabilities, calls);
    for (std::size_t i = 0; i < probes.size(); ++i) {
        if (probes[i].filter_error != 0) return std::unexpected(filter_refused(wanted[i], probes[i].filter_error));
        const bool nothing_left = wanted[i].exclude_user && !choice.kernel;
        if (probes[i].works() && !nothing_left) {
            if (has_event(choice, probes[i].spec.name)) continue;  // the clock that replaced cycles
            if (probes[i].spec.precise < wanted[i].precise)
                choice.notices.push_back(
                    {"precise-lowered",
                     fmt::format("{} is sampled with less precise addresses: the CPU has no more precise ones.",
                                 wanted[i].name),
                     {}});
            choice.events.push_back(probes[i].spec);
            continue;
        }
        const Explanation why = nothing_left ? Explanation{ErrorCode::permission, "kernel mode may not be sampled here",
                                                           std::string(remedy_paranoid)}
                                             : why_not(probes[i], capabilities);
        if (!first_failure) {
            std::string text = fmt::format("{}: {}", wanted[i].name, why.text);
            if (!why.remedy.empty()) text += fmt::format(". Try: {}", why.remedy);
            first_failure = Error{why.code, probes[i].error, std::move(text)};
        }
        if (!nothing_left) replace_event(wanted[i], why, choice);
    }
    if (choice.events.empty()) return std::unexpected(*std::move(first_failure));
    return choice;
}

}  // namespace flamewire::agent
