// How user stacks are sampled: the stack mode of each process, and how much of each stack the kernel copies.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "agent/perf/event_set_options.h"
#include "agent/pipeline/copy_budget.h"
#include "agent/pipeline/stack_policy.h"
#include "agent/pipeline/user_stack.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/target_members.h"

namespace flamewire::agent {

class StackSampling {
public:
    // By pid. Children without an entry are sampled like the first process.
    using Modes = std::map<std::uint32_t, StackChoice>;
    // For returning to it if the events of a change cannot be opened.
    struct State {
        Modes modes;
        CopyBudget copies;
        bool prefers_whole_cpus = false;
    };

    // `setup` must outlive this.
    explicit StackSampling(RecordingSetup& setup) : setup_(setup) {}

    // Sets the first mode of each process of the plan. `auto` depends on the program. A mode named by the user needs
    // no reason.
    void choose_first_modes();
    [[nodiscard]] StackChoice first_mode(std::uint32_t pid) const;
    void set_mode(std::uint32_t pid, StackChoice choice) { state_.modes[pid] = std::move(choice); }
    // Sets the first mode again for all processes that have a mode.
    void reset_modes();
    [[nodiscard]] const StackChoice& mode(std::uint32_t pid) { return state_.modes[pid]; }
    // Child processes inherit the mode of the target that started them, so raise it for later ones. True if it was
    // lower.
    bool raise_inherited(const StackChoice& choice);
    // Keeps the modes of the members and the plan's processes only.
    void forget_others(const TargetMembers& members);
    [[nodiscard]] const Modes& modes() const { return state_.modes; }
    void set_modes(Modes modes) { state_.modes = std::move(modes); }

    // Starts a new copy budget for these events.
    void reset_copies(const EventChoice& choice);
    [[nodiscard]] CopyBudget& copies() { return state_.copies; }
    [[nodiscard]] const CopyBudget& copies() const { return state_.copies; }

    // If too many threads exit before their first sample, events of whole CPUs replace those of threads.
    void prefer_whole_cpus(bool prefer) { state_.prefers_whole_cpus = prefer; }
    [[nodiscard]] bool prefers_whole_cpus() const { return state_.prefers_whole_cpus; }

    [[nodiscard]] const State& state() const { return state_; }
    void restore(State state) { state_ = std::move(state); }

    [[nodiscard]] EventSetOptions event_options(const EventChoice& choice,
                                                const std::vector<std::uint32_t>& pids) const;
    // Empty: the agent does not unwind.
    [[nodiscard]] std::optional<UserStackOptions> unwinding() const;

private:
    [[nodiscard]] wire::StackMode mode_of(std::uint32_t pid) const;

    RecordingSetup& setup_;
    State state_;
};

}  // namespace flamewire::agent
