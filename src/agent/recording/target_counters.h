// The counters of the target: opens them for its processes, and replaces them when the target or the wanted counters
// change. Use it only on the sampler thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/counting.h"
#include "agent/pipeline/folder.h"
#include "agent/recording/open_batch.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/target_members.h"
#include "base/result.h"

namespace flamewire::agent {

class TargetCounters {
public:
    // All arguments must outlive this.
    TargetCounters(const RecordingSetup& setup, const TargetMembers& members, Folder& folder, OpenBatch& batch)
        : setup_(setup), members_(members), folder_(folder), batch_(batch) {}

    // If events are sampled, a failure to open counters does not prevent the recording: it is a notice.
    Result<bool> open();
    // Counts what `settings` and `wanted` contain from now on, or from resume() on if `start_disabled`. The totals
    // continue. Counts per thread or per CPU restart.
    Result<bool> replace(const Settings& settings, const RequestedEvents& wanted, const Capabilities& capabilities,
                         bool start_disabled);
    // Gives a notice that nothing is counted.
    void report(const Error& error);

    // Call open() before.
    [[nodiscard]] Counting& counting() { return *counting_; }
    [[nodiscard]] const Counting& counting() const { return *counting_; }

private:
    [[nodiscard]] CountingPlan plan(const Settings& settings, const RequestedEvents& wanted,
                                    std::vector<std::uint32_t> pids) const;

    const RecordingSetup& setup_;
    const TargetMembers& members_;
    Folder& folder_;
    OpenBatch& batch_;
    std::unique_ptr<Counting> counting_;
};

}  // namespace flamewire::agent
