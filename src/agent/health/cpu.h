// /proc/stat, proc(5): CPU time by state, in ticks since boot, and a few other counters. CPU usage is computed from the
// ticks between two readings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flamewire::agent {

// user, nice, system, idle, iowait, irq, softirq, steal. The guest columns that follow are included in user and nice.
using CpuTicks = std::array<std::uint64_t, 8>;

struct CpuTimes {
    std::uint32_t cpu = 0;
    CpuTicks ticks{};
};

struct KernelStat {
    std::optional<CpuTicks> all;
    std::vector<CpuTimes> cpus;  // online CPUs, ascending
    std::optional<std::uint64_t> context_switches, interrupts, procs_running, procs_blocked;
};
// Empty if the file is missing.
KernelStat read_kernel_stat(const std::string& proc_root);

// In tenths of a percent; 1000 is fully busy. Waiting for I/O (iowait) does not count as busy, but stolen time does.
struct CpuShare {
    std::uint32_t cpu = 0;
    std::uint32_t permille = 0;
};
struct CpuShares {
    std::optional<std::uint32_t> overall_permille;
    std::vector<CpuShare> cpus;  // those that were online in both readings
};

class CpuUsage {
public:
    // Usage since the previous call. Empty in the first call.
    CpuShares next(const KernelStat& stat);
    void forget() { before_.reset(); }

private:
    struct Before {
        std::optional<CpuTicks> all;
        std::vector<CpuTimes> cpus;
    };
    std::optional<Before> before_;
};

}  // namespace flamewire::agent
