// The sampler: drains the rings, folds samples, and passes a batch to the sink every interval. All functions but the
// constructor run on the recorder's thread.
//
// All input of the sampler passes through a System, a Kernel and the sink, so that a recording can be captured and
// replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/batch_sink.h"
#include "agent/commands.h"
#include "agent/machine.h"
#include "agent/perf/event_set.h"
#include "agent/perf/kernel.h"
#include "agent/pipeline/folder.h"
#include "agent/process/process_table.h"
#include "agent/recording/active_events.h"
#include "agent/recording/batch_outbox.h"
#include "agent/recording/fault_throttle.h"
#include "agent/recording/kernel_names_pass.h"
#include "agent/recording/off_cpu_recording.h"
#include "agent/recording/open_batch.h"
#include "agent/recording/priority_boost.h"
#include "agent/recording/recorder_command.h"
#include "agent/recording/recorder_mailbox.h"
#include "agent/recording/recorder_snapshot.h"
#include "agent/recording/recording_description.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/stack_sampling.h"
#include "agent/recording/target_counters.h"
#include "agent/recording/target_members.h"
#include "base/result.h"
#include "base/system.h"

namespace flamewire::agent {

class Sampler final : private RecordSink {
public:
    // All references must outlive the sampler.
    Sampler(RecordingSetup setup, BatchSink& sink, ProcessTable& processes, RecorderMailbox& mailbox,
            RecorderSnapshot& snapshot);

    // Opens the events and begins the recording in the sink.
    Result<bool> open(const Capabilities& capabilities);
    // Samples until the mailbox has a request to stop, the target has exited, or the sink fails. Sends the last batch.
    void run();
    // Permanent error of the sink.
    [[nodiscard]] const std::optional<Error>& sink_error() const { return outbox_.error(); }

private:
    Result<bool> open_events(const Capabilities& capabilities);
    void start_folding();
    void publish_running();

    void run_pending_command();
    Result<bool> perform(const RecorderCommand& command);
    Result<bool> pause();
    Result<bool> resume();
    Result<bool> change(const Change& change);
    Result<bool> add_processes(const AddProcesses& added);
    [[nodiscard]] std::chrono::milliseconds next_timeout() const;
    void finish();

    void on_record(const Record& record) override;
    Result<bool> switch_to(Settings settings, EventChoice choice, const std::optional<RecordingTarget>& target,
                           bool same_stacks);
    // The state to restore if the events of a new target cannot be opened.
    struct Targets {
        RecordingTarget target;
        bool follows_name = false;
        std::set<std::uint32_t> members;
        StackSampling::State stacks;
    };
    [[nodiscard]] Targets targets() const;
    void restore(Targets before);
    void adapt_stack_modes(std::uint64_t now_ns);
    void adapt_stack_copies(std::uint64_t now_ns);
    void check_unsampled(std::uint64_t now_ns);
    void sample_whole_cpus();
    void use_one_mode();
    void throttle_faults(std::uint64_t now_ns);

    void flush();
    void gather(std::uint64_t now_ns);
    [[nodiscard]] wire::AgentStats own_cost() const;
    void publish();

    RecordingSetup setup_;
    PriorityBoost priority_boost_;
    BatchSink& sink_;
    ProcessTable& processes_;
    RecorderMailbox& mailbox_;
    RecorderSnapshot& snapshot_;
    ResidentMemory memory_;
    Folder folder_;
    OpenBatch batch_;
    KernelNamesPass kernel_names_;
    StackSampling stacks_;
    UnsampledPolicy unsampled_policy_;
    bool whole_cpus_refused_ = false;
    std::uint64_t next_unsampled_ns_ = 0;
    std::uint64_t next_adapt_ns_ = 0;
    FaultThrottle fault_throttle_;
    TargetMembers members_;
    ActiveEvents events_;
    TargetCounters counters_;
    OffCpuRecording off_cpu_;
    RecordingDescription description_;
    bool processes_limit_notified_ = false;
    bool costly_tables_notified_ = false;
    EventSetCounts counts_;            // of all event sets, at the last round
    std::uint64_t lost_reported_ = 0;  // part of counts_.samples_lost that is already in a batch
    std::uint64_t last_flush_ns_ = 0, next_flush_ns_ = 0;
    BatchOutbox outbox_;
};

}  // namespace flamewire::agent
