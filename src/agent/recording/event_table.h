// Builds the wire's event table of a recording. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/pipeline/off_cpu_tracker.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Three lists of the same length, in the order of the choice's events. At the end, each off-CPU reason has its own
// entry, although all of them are one kernel event.
struct EventTable {
    std::vector<wire::Event> events;
    std::vector<std::string> names, units;
    std::optional<std::uint32_t> trigger;  // index of the event whose first sample begins the trace
    OffCpuEvents off_cpu;
};

// The period of an event that is sampled by frequency is 0, except for the clocks, for which the kernel sets a constant
// period.
EventTable make_event_table(const EventChoice& choice);

}  // namespace flamewire::agent
