// Registers as Linux hands them out with a sample: the orders of uapi/asm/perf_regs.h, which are not DWARF's. Pure;
// any host reads the registers of any target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// Value of the abi word in front of sampled registers (linux/perf_event.h, enum perf_sample_regs_abi).
enum class RegisterAbi : std::uint64_t { none = 0, bits_32 = 1, bits_64 = 2 };

// Whether kernels that run this build hand out registers that a walk can use. Elsewhere nothing is ever walked, and who
// asks this first leaves the unwinder out of the program.
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__arm__)
inline constexpr bool walks_here = true;
#else
inline constexpr bool walks_here = false;
#endif

// Bits of perf_event_attr.sample_regs_user to ask for on a machine of this architecture: all that a walk can use.
std::uint64_t sampled_register_mask(Arch machine);

// `values` are the registers whose bits are set in `mask`, lowest first. `machine` is the kernel's architecture: with
// bits_32 on x86_64 the process is x86, on aarch64 it is arm. Nothing for RegisterAbi::none, for a mask without pc and
// sp, or when there are fewer values than bits.
std::optional<Registers> registers_of_sample(Arch machine, RegisterAbi abi, std::uint64_t mask,
                                             std::span<const std::uint64_t> values);

}  // namespace flamewire::unwind
