// What was tried on this machine and what came of it, each in the words of the notices that a recording would give. For
// a person who decides before the recording, not after it.
#pragma once

#include <span>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/trial.h"

namespace flamewire::agent {

// One that does not work.
Finding finding_of(const Trial& trial, const Capabilities& capabilities);

// What read_capabilities has found out, and two questions more to the kernel: a process of another user (pid 1), and a
// tracepoint. `trials`: of the usual events; those that work are left out here, as they are in sampling_events.
std::vector<Finding> find_out(const Capabilities& capabilities, std::span<const Trial> trials, const Sysfs& sysfs,
                              const Kernel& calls);

}  // namespace flamewire::agent
