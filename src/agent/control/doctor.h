// Everything that can be found out about this machine before a recording: one list, for `reprobe`, for the page and for
// --doctor. docs/troubleshooting.md has an entry for each thing that is limited.
#pragma once

#include <span>
#include <string>

#include "agent/machine.h"
#include "agent/perf/capabilities.h"

namespace flamewire::agent {

// probe_capabilities, and what depends on more than perf events: the kernel's names, and the limits of this user on locked
// memory and open files.
Capabilities examine_machine(const Sysfs& sysfs);

// The findings as a person reads them, a line each: "ok", "limited" with its remedy, "missing" where this machine has
// none. Events that fail for one reason share a line. Pure.
struct Diagnosis {
    std::string text;
    bool healthy = true;  // nothing is limited, and own processes can be profiled
};
Diagnosis diagnose(const Machine& machine, std::span<const Finding> findings);

}  // namespace flamewire::agent
