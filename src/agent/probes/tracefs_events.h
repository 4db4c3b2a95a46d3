// Probes that the agent creates in tracefs, where each becomes a tracepoint. The files uprobe_events and kprobe_events
// are lists for the whole machine, so each recording has a group of its own:
// flamewire_<pid namespace>_<pid>_<start time>_<number>. From the group, a later agent can tell whether the one that
// created it still runs.
// Source of the format: Documentation/trace/uprobetracer.rst, Documentation/trace/kprobetrace.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/probe_spec.h"
#include "base/result.h"

namespace flamewire::agent {

// A probe on one instruction.
struct ProbeDefinition {
    std::string name;  // becomes a part of the event's name; in the kernel: the function
    std::string path;  // as this process opens it; a link such as /proc/self/fd/7 is followed. Empty: in the kernel
    std::uint64_t offset = 0;              // in the file or the kernel's function, bytes
    std::uint64_t reference_counter = 0;   // offset of a USDT semaphore in the file; 0: none
    std::vector<ProbeArgument> arguments;  // in the kernel's syntax
    bool returns = false;                  // the kernel's return probe on a function of the kernel
};

class TracefsEvents {
public:
    // `folder`: where tracefs is mounted. Creates nothing yet.
    explicit TracefsEvents(std::string folder);
    // Removes all events. Close the perf events on them before: the kernel keeps an event that is in use.
    ~TracefsEvents();
    TracefsEvents(const TracefsEvents&) = delete;
    TracefsEvents& operator=(const TracefsEvents&) = delete;

    [[nodiscard]] const std::string& group() const { return group_; }
    // Returns the name of the new event in the group. Errors: permission; unsupported, if the kernel has no such probes or
    // no reference counters; not_found, if it has no such function; invalid, with the kernel's reason.
    Result<std::string> add(const ProbeDefinition& probe);
    // Whether the kernel knows $arg1 at the entry of its functions (x86 and 64-bit Arm since Linux 4.20).
    [[nodiscard]] bool knows_kernel_arguments() const;

private:
    struct Event {
        std::string list;  // path of the file
        std::string name;
    };
    std::string folder_, group_;
    std::vector<Event> events_;
};

// Parts of a group's name.
struct TracefsOwner {
    std::uint64_t pid_namespace = 0;  // inode of /proc/self/ns/pid
    std::uint32_t pid = 0;
    std::uint64_t start_ticks = 0;  // of the process, since boot
};
std::string tracefs_group(const TracefsOwner& owner, std::uint64_t number);
// Nullopt: another program made the group.
std::optional<TracefsOwner> tracefs_owner(std::string_view group);

// Removes the events of agents in this pid namespace that have ended. Returns how many it removed.
std::size_t remove_stale_events(const std::string& folder);

}  // namespace flamewire::agent
