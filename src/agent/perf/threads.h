// Reads a target's threads from /proc. Small reads, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace flamewire::agent {

// Thread ids of a process, in the kernel's order; empty if the process is gone.
std::vector<std::uint32_t> list_threads(std::uint32_t pid);

struct TaskStat {
    char state = '?';  // R, S, D, T, Z, X, …
    std::uint32_t threads = 0;
    std::uint64_t start_ticks = 0;                   // since boot; detects a reused pid
    std::uint64_t user_ticks = 0, system_ticks = 0;  // CPU time, including that of children that were waited for
};
// From /proc/PID/stat, or for one thread from /proc/PID/task/TID/stat; nothing if it is gone.
std::optional<TaskStat> read_task_stat(std::uint32_t pid, std::uint32_t tid = 0);

}  // namespace flamewire::agent
