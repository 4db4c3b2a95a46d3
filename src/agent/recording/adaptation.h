// Adapts a recording to measurements: stack modes, the size of stack copies, the period of faults, and events of whole
// CPUs if threads exit early.
#pragma once

#include <cstdint>

#include "agent/perf/event_set.h"
#include "agent/perf/unsampled.h"
#include "agent/recording/sampler_parts.h"

namespace flamewire::agent {

class Adaptation {
public:
    // `parts` must outlive this.
    explicit Adaptation(SamplerParts& parts) : parts_(parts) {}

    // Call it in each round, after a drain.
    void adapt_events(std::uint64_t now_ns);
    // Call it after a batch. `counts` are those of the recording so far.
    void adapt_stacks(std::uint64_t now_ns, const EventSetCounts& counts);
    // The events or the target were changed, so events of whole CPUs may be possible again.
    void allow_whole_cpus() { whole_cpus_refused_ = false; }

private:
    void throttle_events(std::uint64_t now_ns);
    void check_unsampled(std::uint64_t now_ns);
    void sample_whole_cpus();
    void use_one_mode();
    void adapt_modes(std::uint64_t now_ns);
    void adapt_copies(std::uint64_t now_ns, const EventSetCounts& counts);

    SamplerParts& parts_;
    UnsampledPolicy unsampled_policy_;
    bool whole_cpus_refused_ = false;
    std::uint64_t next_unsampled_ns_ = 0, next_modes_ns_ = 0;
};

}  // namespace flamewire::agent
