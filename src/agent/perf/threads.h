// What /proc says of a target's threads. Small reads, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace flamewire::agent {

// Thread ids of a process, in the kernel's order; empty when it is gone.
std::vector<std::uint32_t> list_threads(std::uint32_t pid);

struct TaskStat {
    char state = '?';  // R, S, D, T, Z, X, …
    std::uint32_t threads = 0;
    std::uint64_t start_ticks = 0;                   // since boot; tells a reused pid
    std::uint64_t user_ticks = 0, system_ticks = 0;  // CPU time, with that of children that were waited for
};
// From /proc/PID/stat, or of one thread from /proc/PID/task/TID/stat; nothing when it is gone.
std::optional<TaskStat> read_task_stat(std::uint32_t pid, std::uint32_t tid = 0);

}  // namespace flamewire::agent
