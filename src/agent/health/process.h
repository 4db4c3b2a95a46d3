// Health data of one process and its threads, from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/process/process_info.h"

namespace flamewire::agent {

struct ProcessHealth {
    std::uint32_t pid = 0;
    ProcStat stat;
    std::optional<std::uint32_t> cpu_permille;  // of one CPU; empty in the first reading
    std::optional<std::uint64_t> rss_kb, vsize_kb;
    std::optional<std::uint64_t> fds;
    // Of the main thread, from /proc/PID/status.
    std::optional<std::uint64_t> voluntary_switches, involuntary_switches;
    std::optional<std::uint64_t> oom_score;
};

class ProcessWatch {
public:
    explicit ProcessWatch(std::uint64_t ticks_per_second) : ticks_per_second_(ticks_per_second) {}

    // The live processes among `pids` (no duplicates), sorted by CPU time since the previous call; at most `most`.
    // `now_ns` is CLOCK_MONOTONIC.
    std::vector<ProcessHealth> read(const std::string& proc_root, std::span<const std::uint32_t> pids, std::size_t most,
                                    std::uint64_t now_ns);
    void forget() { before_.clear(); }

private:
    struct Before {
        std::uint32_t pid = 0;
        std::uint64_t start_ticks = 0, ticks = 0, at_ns = 0;
    };
    [[nodiscard]] const Before* before(std::uint32_t pid, const ProcStat& stat) const;

    std::uint64_t ticks_per_second_;
    std::vector<Before> before_;  // in the order of the pids
};

struct ProcessIo {
    std::uint32_t pid = 0;
    std::uint64_t read_bytes = 0, write_bytes = 0;  // from and to disks
    std::uint64_t read_system_calls = 0, write_system_calls = 0;
};
// Empty without ptrace access to the process, or if the kernel lacks I/O accounting.
std::optional<ProcessIo> read_process_io(const std::string& proc_root, std::uint32_t pid);

struct ThreadTicks {
    std::uint32_t tid = 0;
    std::string comm;
    char state = '?';
    std::uint64_t ticks = 0;  // user and system
};
// The first `most` in directory order, which is by tid in /proc.
std::vector<ThreadTicks> read_thread_ticks(const std::string& proc_root, std::uint32_t pid, std::size_t most);

}  // namespace flamewire::agent
