// Parses the events to sample and the counters of a recording.
#pragma once

#include <vector>

#include "agent/options.h"
#include "agent/perf/counter_spec.h"
#include "agent/perf/event_spec.h"
#include "base/result.h"

namespace flamewire::agent {

struct RequestedEvents {
    std::vector<EventSpec> events;  // empty: --events none, only counted
    std::vector<RequestedCounter> counters;
};

// The error message starts with the wrong setting, "events: " or "stat: ".
Result<RequestedEvents> parse_requested(const Settings& settings, const Sysfs& sysfs);

}  // namespace flamewire::agent
