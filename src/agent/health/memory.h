// The machine's memory from /proc/meminfo, and the memory limit of a cgroup. In a container, a program can be near its
// limit and the OOM killer while the machine has plenty of free memory.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/health/roots.h"

namespace flamewire::agent {

struct Memory {
    std::optional<std::uint64_t> total_kb, free_kb, available_kb, buffers_kb, cached_kb;
    std::optional<std::uint64_t> swap_total_kb, swap_free_kb;

    // Memory that the kernel cannot reclaim: total - available. Kernels before 3.14 do not report available memory. For
    // them it is total - free - buffers - cached.
    [[nodiscard]] std::optional<std::uint64_t> used_kb() const;
};
Memory read_memory(const std::string& proc_root);

struct MemoryLimit {
    std::uint64_t limit_kb = 0;
    std::optional<std::uint64_t> used_kb;  // by everything under that limit
};
// The lowest limit of the agent's cgroup and its ancestors (v2 memory.max, or v1). Empty unless it is below `total_kb`.
std::optional<MemoryLimit> read_memory_limit(const HealthRoots& roots, std::uint64_t total_kb);

}  // namespace flamewire::agent
