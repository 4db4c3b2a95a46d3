// /proc/stat, proc(5): where CPU time went, in ticks since boot, and the few counters beside it. Usage is what became of
// the ticks between two looks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flamewire::agent {

// user, nice, system, idle, iowait, irq, softirq, steal. The two guest columns that follow are in user and nice already.
using CpuTicks = std::array<std::uint64_t, 8>;

struct CpuTimes {
    std::uint32_t cpu = 0;
    CpuTicks ticks{};
};

struct KernelStat {
    std::optional<CpuTicks> all;
    std::vector<CpuTimes> cpus;  // that are online, ascending
    std::optional<std::uint64_t> context_switches, interrupts, procs_running, procs_blocked;
};
// Empty when the file is missing.
KernelStat read_kernel_stat(const std::string& proc_root);

// In tenths of a percent: 1000 is busy all the time. Waiting for a disk (iowait) is not busy; stolen time is.
struct CpuShare {
    std::uint32_t cpu = 0;
    std::uint32_t permille = 0;
};
struct CpuShares {
    std::optional<std::uint32_t> overall_permille;
    std::vector<CpuShare> cpus;  // those that were online in both looks
};

class CpuUsage {
public:
    // The shares since the call before; none in the first one.
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
