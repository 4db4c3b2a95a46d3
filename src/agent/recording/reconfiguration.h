// Commands that change what is recorded: other settings, events or processes within the same recording.
#pragma once

#include <optional>
#include <vector>

#include "agent/recording/adaptation.h"
#include "agent/recording/batch_producer.h"
#include "agent/recording/recorder_command.h"
#include "agent/recording/sampler_parts.h"
#include "agent/recording/target_members.h"
#include "base/result.h"

namespace flamewire::agent {

// Whether a change of settings needs other events or counters than those of the running recording. If not, a Change
// need not have them.
bool needs_other_events(const Settings& from, const Settings& to);
bool needs_other_counters(const Settings& from, const Settings& to);

class Reconfiguration {
public:
    // All arguments must outlive this.
    Reconfiguration(SamplerParts& parts, Adaptation& adaptation, BatchProducer& producer)
        : parts_(parts), adaptation_(adaptation), producer_(producer) {}

    // On an error, the previous events and counters continue.
    Result<bool> change(const Change& change);
    // False: the recording already has all of them, or cannot have more.
    Result<bool> add_processes(const AddProcesses& added);
    // They become part of the recording with the processes.
    Result<bool> add_breakpoints(const AddBreakpoints& added);

private:
    // The state to restore if the events of a new target cannot be opened.
    struct Targets {
        RecordingTarget target;
        bool follows_name = false;
        TargetMembers::State members;
        StackSampling::State stacks;
    };
    [[nodiscard]] Targets targets() const;
    void restore(Targets before);
    Result<bool> switch_to(Settings settings, EventChoice choice, const std::optional<RecordingTarget>& target,
                           bool same_stacks);
    [[nodiscard]] std::vector<std::uint32_t> processes_with_breakpoints() const;
    void add_parts(std::vector<EventSpec>& events, const std::vector<std::uint32_t>& kept,
                   const std::vector<std::uint32_t>& fresh) const;
    void limit_to_room(std::vector<std::uint32_t>& pids);
    void publish();

    SamplerParts& parts_;
    Adaptation& adaptation_;
    BatchProducer& producer_;
    bool limit_notified_ = false;
    std::vector<EventSpec> next_breakpoints_;  // for the next add_processes()
};

}  // namespace flamewire::agent
