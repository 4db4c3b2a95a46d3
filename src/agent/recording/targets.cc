#include "agent/recording/targets.h"

#include <fmt/format.h>

#include "agent/perf/pmu.h"
#include "agent/process/process_list.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t short_id = 12;

}  // namespace

RecordingTarget describe_target(const std::vector<std::uint32_t>& pids) {
    std::string text = pids.size() == 1 ? "pid " : "pids ";
    for (std::size_t i = 0; i < pids.size(); ++i) {
        if (i == 8) {
            text += fmt::format(" and {} more", pids.size() - i);
            break;
        }
        if (i != 0) text += ", ";
        text += fmt::format("{}", pids[i]);
        if (const auto identity = identify_process(pids[i])) text += fmt::format(" ({})", identity->comm);
    }
    return {std::move(text), pids};
}

Result<RecordingTarget> find_wide(const WideTarget& wide) {
    RecordingTarget target;
    target.scope.wide = true;
    target.scope.cpus = wide.cpus;
    std::vector<std::string> groups = wide.cgroups;
    std::string& text = target.name;
    for (const std::string& group : groups) text += (text.empty() ? "cgroup " : ", ") + group;
    if (!wide.container.empty()) {
        Container container = TRY(find_container(wide.container));
        if (!text.empty()) text += ", ";
        text += "container " + container.id.substr(0, std::max(short_id, wide.container.size()));
        groups.push_back(std::move(container.cgroup));
    }
    if (!groups.empty()) target.scope.cgroups = TRY(find_cgroups(groups));
    if (text.empty()) text = "system-wide";
    if (!wide.cpus.empty())
        text += fmt::format(" on CPU{} {}", wide.cpus.size() == 1 ? "" : "s", cpu_list_text(wide.cpus));
    return target;
}

}  // namespace flamewire::agent
