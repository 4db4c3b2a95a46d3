#include "agent/recording/target_members.h"

#include <algorithm>
#include <utility>

#include "agent/process/process_list.h"

namespace flamewire::agent {

void TargetMembers::assign(std::set<std::uint32_t> pids) {
    pids_ = std::move(pids);
    std::erase_if(origins_, [&](const auto& one) { return !pids_.contains(one.first); });
    last_ = 0;
}

void TargetMembers::saw_sample(std::uint32_t pid) {
    if (pid == last_) return;
    last_ = pid;
    pids_.insert(pid);
}

void TargetMembers::follow(const TaskRecord& task) {
    if (task.exit) {
        if (task.pid != task.tid) return;
        pids_.erase(task.pid);
        std::erase_if(origins_, [&](const auto& one) { return one.first == task.pid; });
        last_ = 0;
    } else if (!plan_.scope.wide && task.pid != task.parent_pid && pids_.contains(task.parent_pid)) {
        pids_.insert(task.pid);
        origins_.emplace_back(task.pid, origin_of(task.parent_pid));
    }
}

std::uint32_t TargetMembers::origin_of(std::uint32_t pid) const {
    if (std::ranges::find(plan_.pids, pid) != plan_.pids.end()) return pid;
    const auto found = std::ranges::find(origins_, pid, &std::pair<std::uint32_t, std::uint32_t>::first);
    return found != origins_.end() ? found->second : pid;
}

std::vector<std::uint32_t> TargetMembers::living() const {
    std::vector<std::uint32_t> living;
    if (plan_.scope.wide) return living;
    // A leader that exited before its other threads is no longer a member, but may be one of the named pids.
    std::set<std::uint32_t> candidates = pids_;
    candidates.insert(plan_.pids.begin(), plan_.pids.end());
    for (const std::uint32_t pid : candidates)
        if (identify_process(pid)) living.push_back(pid);
    return living;
}

}  // namespace flamewire::agent
