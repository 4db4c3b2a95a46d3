// What events are, for --describe and for servers: the fields of tracepoints and probes, and the places of probes.
#pragma once

#include <string>
#include <string_view>

#include "agent/perf/event_spec.h"
#include "agent/probes/probe_cost.h"
#include "agent/probes/probe_files.h"
#include "base/result.h"

namespace flamewire::agent {

// A paragraph for each event of `list`, in the grammar of parse_events(). Creates no probe. `target`: the processes whose
// files are probed. `costs`: of hits; nullptr: not known. Errors: those of parse_events() and find_probe_files(), and
// unsupported for code that cannot be probed.
Result<std::string> describe_events(std::string_view list, const ProbeTarget& target, const Sysfs& sysfs,
                                    const ProbeCosts* costs = nullptr);

}  // namespace flamewire::agent
