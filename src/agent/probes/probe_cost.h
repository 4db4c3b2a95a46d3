// Measures which instruction classes this kernel emulates under a uprobe, and what hits and samples cost here, with
// probes on functions of this program.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>

#include "agent/perf/kernel.h"
#include "agent/probes/probe_instruction.h"
#include "base/result.h"
#include "unwind/frame/registers.h"

namespace flamewire::agent {

// Nanoseconds of CPU time of the thread that hits, with warm caches: lower bounds. 0: not measured.
struct ProbeCosts {
    std::uint32_t emulated_hit_ns = 0, other_hit_ns = 0;  // counted, no sample
    std::uint32_t sample_ns = 0;                          // added by a sample with the user's registers
    std::uint32_t copy_16k_ns = 0;                        // added to that by a copy of 16 KiB of stack
    std::uint32_t chain_32_ns = 0;                        // added instead by a call chain of 32 user frames
    InstructionClasses emulated;
    int error = 0;  // errno of the first probe; ENOSYS on other architectures
    [[nodiscard]] bool measured() const { return emulated_hit_ns != 0 && other_hit_ns != 0; }
    [[nodiscard]] std::uint32_t hit_ns(bool is_emulated) const { return is_emulated ? emulated_hit_ns : other_hit_ns; }
    [[nodiscard]] std::uint32_t copy_ns(std::uint32_t bytes) const;
};

// Creates a probe at an offset of /proc/self/exe. Returns the attributes that select it: type, config, …
using MakeOwnProbe = std::function<Result<perf_event_attr>(std::uint64_t offset)>;

// Runs on the calling thread, which needs 64 KiB of stack. Mostly waits for RCU grace periods while the kernel removes
// each of the three probes: 220 to 290 ms in all with Linux 6.18, of them 7 ms of CPU time. Nothing is measured without
// privileges, and on architectures other than x86-64 and aarch64.
ProbeCosts measure_probe_costs(const MakeOwnProbe& make_probe, const Kernel& calls);

// The classes that all kernels since Linux 4.17 emulate. What to assume if nothing was measured; the costs are unknown then.
InstructionClasses assumed_emulated(unwind::Arch arch);

}  // namespace flamewire::agent
