// The health of the machine as a whole: one reading of everything in the `system` frame.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/health/cpu.h"
#include "agent/health/memory.h"
#include "agent/health/roots.h"

namespace flamewire::agent {

struct SystemHealth {
    KernelStat stat;
    CpuShares shares;
    std::vector<std::uint64_t> frequencies_mhz;  // of stat.cpus; empty: unknown
    Memory memory;
    std::optional<MemoryLimit> memory_limit;
    std::optional<std::array<std::uint64_t, 3>> load_hundredths;  // over 1, 5 and 15 minutes
    std::optional<std::int64_t> temperature_c;
    std::optional<std::uint64_t> uptime_s;
};

// `usage` holds the previous reading.
SystemHealth read_system_health(const HealthRoots& roots, CpuUsage& usage);

}  // namespace flamewire::agent
