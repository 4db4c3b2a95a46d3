// The events of a recording as the wire's table wants them. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/pipeline/absences.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Three lists of one length, in the order of the choice's events. The kinds of absence, which are one event of the
// kernel, have an entry each at the end.
struct EventTable {
    std::vector<wire::Event> events;
    std::vector<std::string> names, units;
    AbsenceEvents absences;
};

// The period of an event that is sampled by frequency is known only where the kernel sets it once and for all (the
// clocks); else it is 0.
EventTable make_event_table(const EventChoice& choice);

}  // namespace flamewire::agent
