// Times between context switches: finds the kernel functions that wait for I/O, scans the states of threads whose
// switches were not recorded, and emits slices in time. Use it only on the sampler thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/pipeline/folder.h"
#include "agent/process/kallsyms.h"
#include "agent/process/process_table.h"
#include "agent/recording/active_events.h"
#include "agent/recording/open_batch.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/target_members.h"

namespace flamewire::agent {

class OffCpuRecording {
public:
    // All of it must outlive this.
    struct Parts {
        const RecordingSetup& setup;
        const TargetMembers& members;
        const ActiveEvents& events;
        ProcessTable& processes;
        Folder& folder;
        OpenBatch& batch;
    };
    explicit OffCpuRecording(const Parts& parts) : parts_(parts) {}

    // Scans all kernel symbols if `choice` needs them. Call it before the events are opened, because rings are not read
    // during the scan.
    void find_io_functions(const EventChoice& choice);
    // The open events are these from now on.
    void start(OffCpuEvents events);
    // Threads that sleep now count as asleep since `begin_ns`, unless records contradict. Events must be open already,
    // so that every later switch is recorded.
    void scan_threads(std::uint64_t begin_ns);
    void track(const SwitchRecord& change);
    void track(const TaskRecord& task);
    void track(const CommRecord& comm);
    void track(const LostRecord& lost);
    // Call it when all records until `drained_ns` are processed, except those that the merge holds back.
    void cut(std::uint64_t drained_ns);

private:
    const Parts parts_;
    std::optional<std::vector<KernelFunction>> io_functions_;  // functions of I/O waits; looked up when needed
    std::uint64_t cut_ns_ = 0;                                 // times are emitted until then
    bool threads_unknown_ = false;                             // records were lost, so thread states must be scanned
};

}  // namespace flamewire::agent
