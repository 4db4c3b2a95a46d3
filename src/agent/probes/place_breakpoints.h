// Finds the addresses of breakpoints on symbols, in each process of a recording.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/perf/event_spec.h"
#include "base/result.h"

namespace flamewire::agent {

// Adds the parts of all breakpoints on symbols in `specs`, one for each process. `program`: the file that the only
// process, a launched command, will execute; empty: the processes run already. Errors: not_found (a process has exited);
// invalid (a process has no such file or variable, or several, or the CPU has no such breakpoint); unsupported (the
// address is not known before the command runs).
Result<bool> place_breakpoints(std::vector<EventSpec>& specs, const std::vector<std::uint32_t>& pids,
                               const std::string& program);

}  // namespace flamewire::agent
