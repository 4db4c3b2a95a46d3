// Converts the registers of Linux samples. Their order is that of uapi/asm/perf_regs.h, not DWARF's. Pure; any host
// reads the registers of any target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// The abi word before sampled registers (linux/perf_event.h, enum perf_sample_regs_abi).
enum class RegisterAbi : std::uint64_t { none = 0, bits_32 = 1, bits_64 = 2 };

// Whether kernels that run this build provide registers that a walk can use. Elsewhere nothing is ever walked. Check
// this first, so that the linker omits the unwinder.
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__arm__)
inline constexpr bool walks_here = true;
#else
inline constexpr bool walks_here = false;
#endif

// Bits for perf_event_attr.sample_regs_user on a machine of this architecture: all registers that a walk can use.
std::uint64_t sampled_register_mask(Arch machine);

// `values` are the registers whose bits are set in `mask`, lowest first. `machine` is the kernel's architecture: with
// bits_32 the process is x86 on x86_64 and arm on aarch64. nullopt for RegisterAbi::none, for a mask without pc and sp,
// or if there are fewer values than bits.
std::optional<Registers> registers_of_sample(Arch machine, RegisterAbi abi, std::uint64_t mask,
                                             std::span<const std::uint64_t> values);

}  // namespace flamewire::unwind
