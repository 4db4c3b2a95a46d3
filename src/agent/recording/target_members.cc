#include "agent/recording/target_members.h"

#include <algorithm>
#include <utility>

#include "agent/process/process_list.h"

namespace flamewire::agent {

void TargetMembers::assign(std::set<std::uint32_t> pids) {
    state_.pids = std::move(pids);
    std::erase_if(state_.origins, [&](const auto& one) { return !state_.pids.contains(one.first); });
    last_ = 0;
}

void TargetMembers::restore(State before) {
    state_ = std::move(before);
    last_ = 0;
}

void TargetMembers::saw_sample(std::uint32_t pid) {
    if (pid == last_) return;
    last_ = pid;
    state_.pids.insert(pid);
}

void TargetMembers::follow(const TaskRecord& task) {
    if (task.exit) {
        if (task.pid != task.tid) return;
        state_.pids.erase(task.pid);
        std::erase_if(state_.origins, [&](const auto& one) { return one.first == task.pid; });
        last_ = 0;
    } else if (!plan_.scope.wide && task.pid != task.parent_pid && state_.pids.contains(task.parent_pid)) {
        state_.pids.insert(task.pid);
        state_.origins.emplace_back(task.pid, origin_of(task.parent_pid));
    }
}

std::uint32_t TargetMembers::origin_of(std::uint32_t pid) const {
    if (std::ranges::find(plan_.pids, pid) != plan_.pids.end()) return pid;
    const auto found = std::ranges::find(state_.origins, pid, &std::pair<std::uint32_t, std::uint32_t>::first);
    return found != state_.origins.end() ? found->second : pid;
}

std::vector<std::uint32_t> TargetMembers::living() const {
    std::vector<std::uint32_t> living;
    if (plan_.scope.wide) return living;
    // A leader that exited before its other threads is no longer a member, but may be one of the named pids.
    std::set<std::uint32_t> candidates = state_.pids;
    candidates.insert(plan_.pids.begin(), plan_.pids.end());
    for (const std::uint32_t pid : candidates)
        if (identify_process(pid)) living.push_back(pid);
    return living;
}

}  // namespace flamewire::agent
