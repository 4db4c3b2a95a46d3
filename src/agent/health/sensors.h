// Temperature and clock rates, if the machine reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/health/cpu.h"
#include "agent/health/roots.h"

namespace flamewire::agent {

// The hottest thermal zone in degrees Celsius, rounded. Disabled or unconnected zones report 0, -273 or absurdly high
// values and are left out.
std::optional<std::int64_t> read_temperature(const HealthRoots& roots);

// The MHz of each of `cpus`, in their order, from cpufreq or else from /proc/cpuinfo (on x86). Empty if a rate is
// unknown or there are more than 128 CPUs, because reading a rate wakes the CPU.
std::vector<std::uint64_t> read_frequencies(const HealthRoots& roots, std::span<const CpuTimes> cpus);

}  // namespace flamewire::agent
