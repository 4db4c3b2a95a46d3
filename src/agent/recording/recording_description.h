// Describes the recording: to the server in batches, and to other threads for `status`.
#pragma once

#include <cstdint>

#include "agent/commands.h"
#include "agent/counting.h"
#include "agent/pipeline/folder.h"
#include "agent/recording/recording_setup.h"
#include "agent/recording/stack_sampling.h"
#include "wire/batch.h"

namespace flamewire::agent {

class RecordingDescription {
public:
    // All arguments must outlive this.
    RecordingDescription(const RecordingSetup& setup, const StackSampling& stacks, Folder& folder)
        : setup_(setup), stacks_(stacks), folder_(folder) {}

    void set_id(const wire::RecordingId& id) { id_ = id; }
    [[nodiscard]] const wire::RecordingId& id() const { return id_; }
    // The folder begins to collect batches with this description.
    OffCpuEvents begin(std::uint64_t start_ns);
    // Adds a description of what is recorded from now on to the next batch.
    OffCpuEvents update();
    // The same after a user changed the recording at `changed_ns`, when nothing was recorded for `gap_ns`.
    OffCpuEvents update(std::uint64_t changed_ns, std::uint64_t gap_ns);
    // `counting`: null before the counters are open.
    [[nodiscard]] Running running(const Counting* counting) const;

private:
    [[nodiscard]] wire::Recording recording() const;
    // Sets the events of `options` and what is kept of them.
    OffCpuEvents set_events(FolderOptions& options) const;

    const RecordingSetup& setup_;
    const StackSampling& stacks_;
    Folder& folder_;
    wire::RecordingId id_{};
    std::uint64_t start_ns_ = 0, changed_ns_ = 0, gap_ns_ = 0;
};

}  // namespace flamewire::agent
