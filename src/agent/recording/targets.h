// Describes targets for users, and finds wide targets on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/process/control_groups.h"
#include "agent/recording/recording_plan.h"
#include "base/result.h"

namespace flamewire::agent {

// "pid 4242 (demo)"
RecordingTarget describe_target(const std::vector<std::uint32_t>& pids);

// "system-wide", "CPUs 0-1", "cgroup /system.slice". Errors: those of find_cgroups and find_container.
Result<RecordingTarget> find_wide(const WideTarget& wide);

}  // namespace flamewire::agent
