// The machine's memory, /proc/meminfo, and the limit that a cgroup puts on it: in a container the machine has plenty
// while the program is about to be killed.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/health/roots.h"

namespace flamewire::agent {

struct Memory {
    std::optional<std::uint64_t> total_kb, free_kb, available_kb, buffers_kb, cached_kb;
    std::optional<std::uint64_t> swap_total_kb, swap_free_kb;

    // What programs have that the kernel could not give away: total - available, and on kernels before 3.14, which do not
    // say what is available, total - free - buffers - cached.
    [[nodiscard]] std::optional<std::uint64_t> used_kb() const;
};
Memory read_memory(const std::string& proc_root);

struct MemoryLimit {
    std::uint64_t limit_kb = 0;
    std::optional<std::uint64_t> used_kb;  // of everything under that limit
};
// The tightest limit on the agent's cgroup and those around it (v2 memory.max, or v1), when it is below `total_kb`.
std::optional<MemoryLimit> read_memory_limit(const HealthRoots& roots, std::uint64_t total_kb);

}  // namespace flamewire::agent
