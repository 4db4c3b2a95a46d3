// Measures which instruction classes this kernel emulates under a uprobe, and what hits and samples cost here, with
// probes on functions of this program. Uses the `uprobe` PMU, which needs no tracefs.
//
// The kernel resolves attr.uprobe_path again in each task that inherits an event of this PMU. So an event with
// `inherit` makes fork and pthread_create of its target fail with EFAULT or EACCES. Never set it.
#pragma once

#include <cstdint>

#include "agent/perf/event_spec.h"
#include "agent/perf/kernel.h"
#include "agent/probes/probe_instruction.h"
#include "unwind/frame/registers.h"

namespace flamewire::agent {

// Nanoseconds of CPU time of the thread that hits, with warm caches: lower bounds. 0: not measured.
struct ProbeCosts {
    std::uint32_t emulated_hit_ns = 0, other_hit_ns = 0;  // counted, no sample
    std::uint32_t sample_ns = 0;                          // added by a sample with the user's registers
    std::uint32_t copy_16k_ns = 0;                        // added to that by a copy of 16 KiB of stack
    std::uint32_t chain_32_ns = 0;                        // added instead by a call chain of 32 user frames
    InstructionClasses emulated;
    int error = 0;  // errno of opening a probe; ENOENT without the PMU, ENOSYS on other architectures
    [[nodiscard]] bool measured() const { return emulated_hit_ns != 0 && other_hit_ns != 0; }
    [[nodiscard]] std::uint32_t hit_ns(bool is_emulated) const { return is_emulated ? emulated_hit_ns : other_hit_ns; }
    [[nodiscard]] std::uint32_t copy_ns(std::uint32_t bytes) const;
};

// Runs on the calling thread, which needs 64 KiB of stack. Mostly waits for RCU grace periods while the kernel removes
// each of the three probes: 220 to 290 ms in all with Linux 6.18, of them 7 ms of CPU time. Nothing is measured without the PMU (Linux
// 4.17), without privileges, and on architectures other than x86-64 and aarch64.
ProbeCosts measure_probe_costs(const Sysfs& sysfs, const Kernel& calls);

// The classes that all kernels with the PMU emulate. What to assume if nothing was measured; the costs are unknown then.
InstructionClasses assumed_emulated(unwind::Arch arch);

}  // namespace flamewire::agent
