// The event set that is open, and its replacement by another one within the recording. Pauses and the delayed start of
// a launched command are states of it. Use it only on the sampler thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/counting.h"
#include "agent/perf/event_set.h"
#include "agent/pipeline/folder.h"
#include "agent/process/process_table.h"
#include "agent/recording/open_batch.h"
#include "agent/recording/priority_boost.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/stack_sampling.h"
#include "agent/recording/target_members.h"
#include "base/result.h"

namespace flamewire::agent {

class ActiveEvents final : private OpeningObserver {
public:
    // What the events depend on, and what gets their records. All of it must outlive the events.
    struct Parts {
        RecordingSetup& setup;
        const TargetMembers& members;
        const StackSampling& stacks;
        ProcessTable& processes;
        Folder& folder;
        OpenBatch& batch;
        PriorityBoost& priority_boost;
        RecordSink& sink;
    };
    explicit ActiveEvents(const Parts& parts) : parts_(parts) {}

    // The first event set of the recording.
    Result<bool> open(const EventSetOptions& options);
    [[nodiscard]] EventSet& current() { return *current_; }
    [[nodiscard]] const EventSet& current() const { return *current_; }

    // Opens an event set for all live processes of the target. It does not sample yet.
    Result<std::unique_ptr<EventSet>> open_replacement(const EventChoice& choice);
    // On an error, the current set continues; without its breakpoints if they had to make room for the replacement.
    Result<bool> replace(std::unique_ptr<EventSet> replacement, EventChoice choice);
    // Both in one step.
    Result<bool> switch_to(EventChoice choice);

    // Opens the current choice again if its breakpoints were closed for a replacement that failed.
    void reopen_breakpoints();

    // Delivers records. Returns the time up to which they were delivered.
    std::uint64_t drain();
    // Reports weight that is in no sample.
    std::vector<Unsampled> add_unsampled(std::uint64_t now_ns);
    // Of all event sets of the recording.
    [[nodiscard]] EventSetCounts counts();

    Result<bool> pause(Counting& counting);
    Result<bool> resume(Counting& counting);
    void enable_at(std::uint64_t time_ns) { enable_at_ns_ = time_ns; }
    // Starts to sample if the delay is over. True: now.
    bool enable_if_due(std::uint64_t now_ns);
    [[nodiscard]] std::optional<std::uint64_t> enabled_at() const { return enable_at_ns_; }
    [[nodiscard]] bool paused() const { return paused_; }
    [[nodiscard]] std::uint64_t paused_ns() const { return paused_ns_; }
    // Neither paused nor delayed.
    [[nodiscard]] bool sampling() const { return !paused_ && !enable_at_ns_; }

    // The previous event set had older records of processes and mappings.
    [[nodiscard]] std::uint64_t sideband_from_ns() const { return sideband_from_ns_; }
    // The last replacement: when it was, and for how long nothing was sampled.
    [[nodiscard]] std::uint64_t switched_ns() const { return switched_ns_; }
    [[nodiscard]] std::uint64_t gap_ns() const { return gap_ns_; }

private:
    void while_opening() override { drain(); }

    const Parts parts_;
    std::unique_ptr<EventSet> current_;
    EventSetCounts closed_counts_;  // of event sets that were replaced
    std::uint64_t sideband_from_ns_ = 0, switched_ns_ = 0, gap_ns_ = 0;
    bool breakpoints_closed_ = false;  // of the current set
    bool paused_ = false;
    std::uint64_t paused_ns_ = 0;  // when sampling was paused last
    std::optional<std::uint64_t> enable_at_ns_;
};

}  // namespace flamewire::agent
