// Builds the wire's event table of a recording. Pure.
#pragma once

#include <cstdint>
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
    std::uint64_t triggers = 0;  // bits of the events of which a sample begins the trace; 0: it begins at once
    OffCpuEvents off_cpu;
};

// The period of an event that is sampled by frequency is 0, except for the clocks, for which the kernel sets a constant
// period.
EventTable make_event_table(const EventChoice& choice);

}  // namespace flamewire::agent
