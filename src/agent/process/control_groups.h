// Targets other than processes, as users specify them: the whole system, some CPUs, control groups, a container. Their
// folders are found in /proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// As in options and commands.
struct WideTarget {
    bool all = false;
    std::vector<std::uint32_t> cpus;   // ascending; combined with another target, or alone: all that runs there
    std::vector<std::string> cgroups;  // absolute folders, or paths as in /proc/PID/cgroup
    std::string container;             // an id, its prefix, or a name, as in a cgroup path
    [[nodiscard]] bool given() const { return all || !cpus.empty() || !cgroups.empty() || !container.empty(); }
    bool operator==(const WideTarget&) const = default;
};

// The folder of the control groups that perf events support: version 2, or else the controller perf_event of version 1.
// `mountinfo` is the text of /proc/self/mountinfo. Empty: not mounted.
std::string cgroup_mount(std::string_view mountinfo);

// The folders of these control groups, without those inside another one in the list, which includes them. not_found
// with a sentence if a name is not a control group.
Result<std::vector<std::string>> find_cgroups(const std::vector<std::string>& names,
                                              const std::string& proc_root = "/proc");

// Up to `limit` processes of a control group, without those of its subgroups. Empty if it cannot be read.
std::vector<std::uint32_t> processes_of_cgroup(const std::string& folder, std::size_t limit);

struct Container {
    std::string id;      // the complete one
    std::string cgroup;  // the path of its control group
};
// Searches the cgroup paths of the running processes. not_found if none matches, invalid if several have this prefix;
// the message lists the candidates.
Result<Container> find_container(std::string_view name, const std::string& proc_root = "/proc");

}  // namespace flamewire::agent
