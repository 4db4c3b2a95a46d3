// What the classes around the sampler's loop share: what is recorded, the open events, and where their records go. Each
// part uses only those before it. Use it only on the sampler thread.
#pragma once

#include <utility>

#include "agent/pipeline/folder.h"
#include "agent/process/process_table.h"
#include "agent/recording/active_events.h"
#include "agent/recording/event_throttle.h"
#include "agent/recording/kernel_names_pass.h"
#include "agent/recording/off_cpu_recording.h"
#include "agent/recording/open_batch.h"
#include "agent/recording/priority_boost.h"
#include "agent/recording/recorder_snapshot.h"
#include "agent/recording/recording_description.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/stack_sampling.h"
#include "agent/recording/target_counters.h"
#include "agent/recording/target_members.h"

namespace flamewire::agent {

struct SamplerParts {
    // `sink` gets the records of the events. All references must outlive this.
    SamplerParts(RecordingSetup setup_in, ProcessTable& processes_in, RecorderSnapshot& snapshot_in, RecordSink& sink)
        : setup(std::move(setup_in)),
          processes(processes_in),
          snapshot(snapshot_in),
          priority_boost(setup.environment.boost_priority),
          folder(processes),
          batch(folder),
          members(setup.plan),
          stacks(setup),
          events({setup, members, stacks, processes, folder, batch, priority_boost, sink}),
          counters(setup, members, folder, batch),
          off_cpu({setup, members, events, processes, folder, batch}),
          description(setup, stacks, folder),
          kernel_names(processes, folder, batch) {}
    SamplerParts(const SamplerParts&) = delete;
    SamplerParts& operator=(const SamplerParts&) = delete;

    RecordingSetup setup;
    ProcessTable& processes;
    RecorderSnapshot& snapshot;
    PriorityBoost priority_boost;
    Folder folder;
    OpenBatch batch;
    TargetMembers members;
    StackSampling stacks;
    EventThrottle throttle;
    ActiveEvents events;
    TargetCounters counters;
    OffCpuRecording off_cpu;
    RecordingDescription description;
    KernelNamesPass kernel_names;
};

}  // namespace flamewire::agent
