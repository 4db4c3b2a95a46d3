// What /proc tells of the health of one process and of its threads.
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
    std::optional<std::uint32_t> cpu_permille;  // of one CPU; nothing at the first look
    std::optional<std::uint64_t> rss_kb, vsize_kb;
    std::optional<std::uint64_t> fds;
    // Of the main thread, as /proc/PID/status has them.
    std::optional<std::uint64_t> voluntary_switches, involuntary_switches;
    std::optional<std::uint64_t> oom_score;
};

class ProcessWatch {
public:
    explicit ProcessWatch(std::uint64_t ticks_per_second) : ticks_per_second_(ticks_per_second) {}

    // Those of `pids` (each once) that live, by CPU since the call before, at most `most`; `now_ns` is CLOCK_MONOTONIC.
    std::vector<ProcessHealth> look(const std::string& proc_root, std::span<const std::uint32_t> pids, std::size_t most,
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
    std::uint64_t read_bytes = 0, write_bytes = 0;  // of the disks
    std::uint64_t read_system_calls = 0, write_system_calls = 0;
};
// Nothing without the right to look (ptrace) or where the kernel does not account.
std::optional<ProcessIo> read_process_io(const std::string& proc_root, std::uint32_t pid);

struct ThreadTicks {
    std::uint32_t tid = 0;
    std::string comm;
    char state = '?';
    std::uint64_t ticks = 0;  // user and system
};
// The first `most` in the order of the directory, which in /proc is by tid.
std::vector<ThreadTicks> read_thread_ticks(const std::string& proc_root, std::uint32_t pid, std::size_t most);

}  // namespace flamewire::agent
