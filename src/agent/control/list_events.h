// Lists the events that a server can choose: tracepoints, functions and USDT probes of a file, functions of the kernel.
// Files are read again for each list, so use it on a worker. Memory is bounded.
#pragma once

#include "agent/event_list.h"
#include "agent/perf/event_spec.h"
#include "agent/probes/probe_files.h"
#include "base/result.h"

namespace flamewire::agent {

// Adds to `list`, in no order; USDT probes with several places are there several times. `target`: whose files may be read.
// Errors: not_found (a file; tracefs cannot be read), invalid (not an ELF file), too_large (too many functions).
Result<bool> list_events(const EventQuery& query, const ProbeTarget& target, const Sysfs& sysfs, EventList& list);

}  // namespace flamewire::agent
