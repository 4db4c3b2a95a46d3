#include "agent/perf/open_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace flamewire::agent {
namespace {

constexpr std::string_view remedy_capabilities = "setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent";

// The kernel's internal ENOTSUPP, which user space does not define. PMU drivers have returned it.
constexpr int kernel_enotsupp = 524;

std::string name_of(const OpenFailure& failure) {
    return failure.event.empty() ? "perf events" : fmt::format("event {}", failure.event);
}

Explanation explain_refused(const OpenFailure& failure) {
    if (failure.whole_cpu)
        return {ErrorCode::permission,
                fmt::format(
                    "this user may not sample {}: kernel.perf_event_paranoid is {}; it must be 0 or less, or the agent "
                    "needs cap_perfmon",
                    failure.cgroup ? "a control group" : "the whole system", failure.paranoid),
                fmt::format("run the agent as root, or {}, or sysctl -w kernel.perf_event_paranoid=0",
                            remedy_capabilities)};
    if (failure.pid != 0)
        return {ErrorCode::permission,
                fmt::format("this user may not profile process {} (it belongs to another user, or is protected)",
                            failure.pid),
                fmt::format("run the agent as root, or {}", remedy_capabilities)};
    if (failure.paranoid > 2)
        return {
            ErrorCode::permission,
            fmt::format("kernel.perf_event_paranoid is {}: ordinary users may not use perf events", failure.paranoid),
            std::string(remedy_paranoid)};
    return {ErrorCode::permission,
            fmt::format("the kernel denies {} to this user (kernel.perf_event_paranoid is {}); in a container the "
                        "seccomp profile may be the reason",
                        name_of(failure), failure.paranoid),
            fmt::format("{}, or {}; in a container add the capability PERFMON", remedy_paranoid, remedy_capabilities)};
}

// EBADF: not the folder of a control group; ENOENT: a version 1 group outside the controller perf_event; EINVAL: a
// kernel without CONFIG_CGROUP_PERF.
Explanation explain_no_cgroup(const std::string& event) {
    return {ErrorCode::unsupported,
            fmt::format(
                "the kernel does not accept {} for this control group: it samples those of cgroup2, and of version 1 "
                "those of the controller perf_event, when built with CONFIG_CGROUP_PERF",
                event),
            "give the group of the same name below one of these, which grep cgroup /proc/mounts lists"};
}

}  // namespace

Explanation explain_open_failure(const OpenFailure& failure) {
    const std::string event = name_of(failure);
    switch (failure.error) {
        case EACCES:
        case EPERM: return explain_refused(failure);
        case EBADF:
        case EINVAL:
            if (failure.cgroup) return explain_no_cgroup(event);
            return {
                ErrorCode::unsupported, fmt::format("this kernel does not accept {} with these settings", event), {}};
        case ESRCH: return {ErrorCode::not_found, fmt::format("process {} has exited", failure.pid), {}};
        case ENOENT:
            // For a control group, the event itself was already tested before.
            if (failure.cgroup) return explain_no_cgroup(event);
            [[fallthrough]];
        case ENODEV: return {ErrorCode::unsupported, fmt::format("this CPU or kernel has no {}", event), {}};
        case ENOSYS:
            return {
                ErrorCode::unsupported,
                "this kernel has no perf_event_open (it is built without CONFIG_PERF_EVENTS, or a sandbox hides it)",
                {}};
        case EOPNOTSUPP:
        case kernel_enotsupp:
            return {ErrorCode::unsupported,
                    fmt::format("{} cannot be sampled here: its counter has no overflow interrupt, or not in this mode",
                                event),
                    {}};
        case EBUSY:
            return {ErrorCode::busy, fmt::format("the counters for {} are taken by another user of the PMU", event),
                    "sysctl -w kernel.nmi_watchdog=0"};
        case EMFILE:
            return {ErrorCode::busy, "the limit of open files is too low for this many threads and CPUs",
                    "ulimit -n 65536 before starting the agent"};
        case ENFILE: return {ErrorCode::busy, "the system has no file handles left", "sysctl -w fs.file-max=1000000"};
        case ENOMEM: return {ErrorCode::busy, fmt::format("the kernel has no memory for {}", event), {}};
        case ENOSPC:
            if (failure.event.starts_with("mem:"))
                return {ErrorCode::busy,
                        fmt::format("the CPU has no free breakpoint for {}: it has few (x86: 4 for each thread), and "
                                    "debuggers use the same",
                                    event),
                        {}};
            return {ErrorCode::busy, fmt::format("the CPU has no free counter for {}", event), {}};
        case EOVERFLOW:
            return {ErrorCode::busy, "kernel.perf_event_max_stack was lowered while it was read", "try again"};
        case E2BIG:
            return {
                ErrorCode::unsupported, fmt::format("this kernel does not accept {} with these settings", event), {}};
        default: return {ErrorCode::io, fmt::format("cannot open {}: {}", event, std::strerror(failure.error)), {}};
    }
}

Error open_error(const OpenFailure& failure) {
    Explanation why = explain_open_failure(failure);
    if (!why.remedy.empty()) why.text += fmt::format(". Try: {}", why.remedy);
    return {why.code, failure.error, std::move(why.text)};
}

}  // namespace flamewire::agent
