// Temperature and clock rates, where the machine tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/health/cpu.h"
#include "agent/health/roots.h"

namespace flamewire::agent {

// The hottest thermal zone in degrees Celsius, rounded. Zones that are switched off or not wired read 0, -273 or absurdly
// high, and are left out.
std::optional<std::int64_t> read_temperature(const HealthRoots& roots);

// MHz of each of `cpus`, in their order, from cpufreq or else from /proc/cpuinfo (x86 has it there). Empty when one of
// them is not told or there are more than 128: reading a rate wakes the CPU.
std::vector<std::uint64_t> read_frequencies(const HealthRoots& roots, std::span<const CpuTimes> cpus);

}  // namespace flamewire::agent
