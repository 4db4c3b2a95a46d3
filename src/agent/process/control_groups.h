// Targets that are no processes, as people name them: the whole system, some CPUs, control groups, a container. Where
// their folders are is told by /proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// As options and commands have it.
struct WideTarget {
    bool all = false;
    std::vector<std::uint32_t> cpus;   // ascending; with one of the others, or alone: all that runs there
    std::vector<std::string> cgroups;  // absolute folders, or as /proc/PID/cgroup has them
    std::string container;             // an id, its beginning, or a name, as a cgroup path tells it
    [[nodiscard]] bool given() const { return all || !cpus.empty() || !cgroups.empty() || !container.empty(); }
    bool operator==(const WideTarget&) const = default;
};

// Where the control groups are that perf events know: of version 2, else of the controller perf_event of version 1. The
// text is /proc/self/mountinfo's; empty: nowhere.
std::string cgroup_mount(std::string_view mountinfo);

// The folders of these control groups, those inside of another of them left out: it has them. not_found with a sentence
// for one that is none.
Result<std::vector<std::string>> find_cgroups(const std::vector<std::string>& names,
                                              const std::string& proc_root = "/proc");

struct Container {
    std::string id;      // whole
    std::string cgroup;  // the path of its group
};
// By the cgroup paths of the processes that run. not_found when there is none, invalid when several begin so; both say
// which there are.
Result<Container> find_container(std::string_view name, const std::string& proc_root = "/proc");

}  // namespace flamewire::agent
