// Examines this machine before a recording and returns one list of findings, for `reprobe`, the page and --doctor.
// docs/troubleshooting.md has an entry for each limitation.
#pragma once

#include <span>
#include <string>

#include "agent/machine.h"
#include "agent/perf/capabilities.h"

namespace flamewire::agent {

// probe_capabilities plus findings that do not depend only on perf events: kernel symbol names, and this user's limits
// of locked memory and open files.
Capabilities examine_machine(const Sysfs& sysfs);

// The findings as text, one line each: "ok", "limited" with its remedy, or "missing" if this machine lacks it. Events
// that fail for the same reason share a line. Pure.
struct Diagnosis {
    std::string text;
    bool healthy = true;  // nothing is limited, and the user's own processes can be profiled
};
Diagnosis diagnose(const Machine& machine, std::span<const Diagnostic> diagnostics);

}  // namespace flamewire::agent
