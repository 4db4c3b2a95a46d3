// Builds the wire's event table of a recording. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/pipeline/absences.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Three lists of the same length, in the order of the choice's events. At the end, each kind of absence has its own
// entry, although all kinds are one kernel event.
struct EventTable {
    std::vector<wire::Event> events;
    std::vector<std::string> names, units;
    AbsenceEvents absences;
};

// The period of an event that is sampled by frequency is 0, except for the clocks, for which the kernel sets a constant
// period.
EventTable make_event_table(const EventChoice& choice);

}  // namespace flamewire::agent
