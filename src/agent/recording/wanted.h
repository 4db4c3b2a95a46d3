// What a recording is to sample and to count, out of the words for it.
#pragma once

#include <vector>

#include "agent/options.h"
#include "agent/perf/counter_spec.h"
#include "agent/perf/event_spec.h"
#include "base/result.h"

namespace flamewire::agent {

struct Wanted {
    std::vector<EventSpec> events;  // empty: --events none, only counted
    std::vector<WantedCounter> counters;
};

// The sentence begins with the setting that is wrong, "events: " or "stat: ".
Result<Wanted> parse_wanted(const Settings& settings, const Sysfs& sysfs);

}  // namespace flamewire::agent
