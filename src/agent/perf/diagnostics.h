// What was tried on this machine, and the results, in the same words as the notices of a recording. Users can decide
// before the recording, not after it.
#pragma once

#include <span>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/event_probe.h"

namespace flamewire::agent {

// A finding for an event that does not work.
Diagnostic diagnostic_of(const EventProbe& probe, const Capabilities& capabilities);

// The results of read_capabilities, plus two further checks: a process of another user (pid 1), and a tracepoint.
// `trials` are those of the usual events; the ones that work are omitted here, because they are in sampling_events.
std::vector<Diagnostic> collect_diagnostics(const Capabilities& capabilities, std::span<const EventProbe> probes,
                                            const Sysfs& sysfs, const Kernel& calls);

}  // namespace flamewire::agent
