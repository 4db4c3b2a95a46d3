// Parses the events to sample and the counters of a recording.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/options.h"
#include "agent/perf/counter_spec.h"
#include "agent/perf/event_spec.h"
#include "agent/probes/place_probes.h"
#include "base/result.h"

namespace flamewire::agent {

struct RequestedEvents {
    std::vector<EventSpec> events;  // empty: --events none, only counted
    std::vector<RequestedCounter> counters;
    // After ProbeSetup::prepare(): what the probes created in tracefs.
    PlacedProbes event_probes = {}, counter_probes = {};
    bool by_server = false;  // not by the agent's own command line
};

// The error message starts with the wrong setting, "events: " or "stat: ".
Result<RequestedEvents> parse_requested(const Settings& settings, const Sysfs& sysfs);

// "page-faults", or "page-faults and 3 other events".
std::string summarize_names(const std::vector<std::string_view>& names);

// Reports probes whose hits are not sampled one by one, because there are too many.
std::vector<wire::Notice> thinning_notices(const std::vector<EventSpec>& events);

}  // namespace flamewire::agent
