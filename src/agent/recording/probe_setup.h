// Places the probes of recordings, after predicting what they cost.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "agent/perf/counter_set.h"
#include "agent/perf/event_spec.h"
#include "agent/probes/probe_cost.h"
#include "agent/probes/probe_files.h"
#include "agent/recording/requested_events.h"
#include "base/result.h"

namespace flamewire::agent {

class ProbeSetup {
public:
    // `sysfs` must outlive this.
    ProbeSetup(const Sysfs& sysfs, std::uint32_t max_slowdown_percent)
        : sysfs_(sysfs), max_slowdown_percent_(max_slowdown_percent) {}

    // Creates the probes among the events and counters, and raises the periods of events that would slow down the target
    // too much. Their events must be closed before `wanted` is destroyed. `running`: the target whose hits are counted
    // for a second before; nullopt if it has not started yet. Errors: those of ProbePlacer::place(); busy if counting
    // shows that the probes would slow down the target too much.
    Result<bool> prepare(RequestedEvents& wanted, const Settings& settings, const ProbeTarget& target,
                         const std::optional<CounterSetOptions>& running);

    // Measures them at the first call. Any thread.
    [[nodiscard]] ProbeCosts costs();

private:
    Result<bool> check_slowdown(RequestedEvents& wanted, const Settings& settings, const ProbeCosts& costs,
                                const CounterSetOptions& running) const;

    const Sysfs& sysfs_;
    const std::uint32_t max_slowdown_percent_;
    std::mutex mutex_;
    ProbeCosts costs_;  // measured for the first probe
};

}  // namespace flamewire::agent
