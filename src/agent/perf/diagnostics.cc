#include "agent/perf/diagnostics.h"

#include <fmt/format.h>

#include "agent/perf/attr.h"
#include "agent/perf/open_error.h"

namespace flamewire::agent {
namespace {

// The kernel's defaults. A lower value was set by an administrator, or by the kernel itself because sampling took too
// long.
constexpr std::uint32_t usual_rate_hz = 1'000, usual_stack = 127;

Diagnostic works(std::string code, std::string text) { return {std::move(code), {}, true, std::move(text), {}}; }

Diagnostic fails(std::string code, Explanation why) {
    return {std::move(code), {}, false, std::move(why.text), std::move(why.remedy)};
}

// Opens `attr` for `pid`; returns an errno, 0 on success.
int try_open(perf_event_attr attr, pid_t pid, const Kernel& calls) {
    const int fd = calls.open(attr, pid, -1);
    if (fd < 0) return -fd;
    calls.close(fd);
    return 0;
}

Diagnostic other_users(const Capabilities& capabilities, const Kernel& calls) {
    const int error = try_open(owner_attr(0, capabilities), 1, calls);
    if (error == 0) return works("other-users", "Processes of every user can be profiled");
    return fails("other-users", explain_open_failure({error, {}, 1, capabilities.paranoid}));
}

Diagnostic tracepoints(const Capabilities& capabilities, const Sysfs& sysfs, const Kernel& calls) {
    constexpr std::string_view usual = "sched:sched_switch";
    const auto parsed = parse_events(usual, sysfs);
    if (!parsed) {
        const bool hidden = parsed.error().code == ErrorCode::permission;
        const std::string& message = parsed.error().message;
        return {"tracepoints",
                {},
                false,
                message.substr(0, message.find(". Try: ")),
                hidden ? "run the agent as root, or mount -o remount,mode=755 /sys/kernel/tracing"
                       : "mount -t tracefs tracefs /sys/kernel/tracing"};
    }
    perf_event_attr attr = owner_attr(0, capabilities);
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = parsed->front().parts.front().config;
    attr.exclude_kernel = 0;
    attr.exclude_hv = 0;
    attr.disabled = 1;
    if (const int error = try_open(attr, 0, calls))
        return fails("tracepoints", explain_open_failure({error, usual, 0, capabilities.paranoid}));
    return works("tracepoints", "Tracepoints can be sampled");
}

Diagnostic hardware(std::span<const EventProbe> probes) {
    for (const EventProbe& probe : probes)
        if (probe.works() && probe.spec.parts.front().type == PERF_TYPE_HARDWARE)
            return works("hardware", "The CPU's own counters can be used");
    return {"hardware",
            {},
            false,
            "No hardware counter works here, as in most virtual machines: cpu-clock is sampled instead of cycles",
            {}};
}

Diagnostic sample_rate(const Capabilities& capabilities) {
    std::string text = fmt::format("The kernel allows {} samples per second", capabilities.max_sample_rate_hz);
    if (capabilities.max_sample_rate_hz >= usual_rate_hz) return works("sample-rate", std::move(text));
    return {"sample-rate", {}, false, std::move(text), "sysctl -w kernel.perf_event_max_sample_rate=100000"};
}

Diagnostic stack_depth(const Capabilities& capabilities) {
    std::string text = fmt::format("The kernel walks frame pointers for {} frames at most", capabilities.max_stack);
    if (capabilities.max_stack >= usual_stack) return works("stack-depth", std::move(text));
    return {"stack-depth",
            {},
            false,
            std::move(text),
            fmt::format("sysctl -w kernel.perf_event_max_stack={}", usual_stack)};
}

Diagnostic stacks(std::string mode, std::string what, const Capabilities& capabilities) {
    if (const auto here = check_unwind_here(mode, capabilities); !here)
        return {std::move(mode), {}, false, here.error().message, {}};
    return works(std::move(mode), std::move(what));
}

}  // namespace

Diagnostic diagnostic_of(const EventProbe& probe, const Capabilities& capabilities) {
    Explanation why = why_not(probe, capabilities);
    return {"event", probe.spec.name, false, std::move(why.text), std::move(why.remedy)};
}

std::vector<Diagnostic> collect_diagnostics(const Capabilities& capabilities, std::span<const EventProbe> probes,
                                            const Sysfs& sysfs, const Kernel& calls) {
    std::vector<Diagnostic> found;
    if (!capabilities.perf_events) {
        found.push_back(
            fails("perf-events", explain_open_failure({capabilities.open_errno, {}, 0, capabilities.paranoid})));
        return found;
    }
    found.push_back(works("perf-events", "Own processes can be profiled"));
    found.push_back(other_users(capabilities, calls));
    found.push_back(capabilities.kernel_samples ? works("kernel-samples", "Kernel functions are sampled")
                                                : Diagnostic{"kernel-samples",
                                                             {},
                                                             false,
                                                             kernel_excluded_text(capabilities.paranoid),
                                                             std::string(remedy_paranoid)});
    found.push_back(
        stacks("dwarf", "Stacks of programs without frame pointers are found by their unwind tables", capabilities));
    found.push_back(stacks("lbr", "The CPU records call stacks (lbr)", capabilities));
    found.push_back(tracepoints(capabilities, sysfs, calls));
    found.push_back(hardware(probes));
    found.push_back(sample_rate(capabilities));
    found.push_back(stack_depth(capabilities));
    for (const EventProbe& probe : probes)
        if (!probe.works()) found.push_back(diagnostic_of(probe, capabilities));
    return found;
}

}  // namespace flamewire::agent
