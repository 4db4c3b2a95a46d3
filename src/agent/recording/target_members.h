// The processes of a recording's target: the named ones and their children. For wide targets, live processes that were
// sampled.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "agent/perf/record.h"
#include "agent/recording/recording_plan.h"

namespace flamewire::agent {

class TargetMembers {
public:
    // The plan's target is the current one, and must outlive this.
    explicit TargetMembers(const RecordingPlan& plan) : plan_(plan), state_{{plan.pids.begin(), plan.pids.end()}, {}} {}

    // The members, and the named process from which each one descends that was born by a fork.
    struct State {
        std::set<std::uint32_t> pids;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> origins;
    };
    [[nodiscard]] const State& state() const { return state_; }
    // As before assign().
    void restore(State before);
    [[nodiscard]] const std::set<std::uint32_t>& pids() const { return state_.pids; }
    // The members are these from now on.
    void assign(std::set<std::uint32_t> pids);
    void insert(const std::vector<std::uint32_t>& pids) { state_.pids.insert(pids.begin(), pids.end()); }
    // A sample of a control group's process.
    void saw_sample(std::uint32_t pid);
    // A fork or an exit.
    void follow(const TaskRecord& task);
    // The named process from which a member descends by forks; of a named process, itself.
    [[nodiscard]] std::uint32_t origin_of(std::uint32_t pid) const;
    // A recording of control groups also receives records of processes outside them.
    [[nodiscard]] bool include(std::uint32_t pid) const {
        return plan_.scope.cgroups.empty() || state_.pids.contains(pid);
    }
    // Those that exist now. Empty for a wide target.
    [[nodiscard]] std::vector<std::uint32_t> living() const;

private:
    const RecordingPlan& plan_;
    State state_;
    std::uint32_t last_ = 0;  // of saw_sample()
};

}  // namespace flamewire::agent
