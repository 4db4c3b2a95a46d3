// The registers that carry arguments in C, as DWARF numbers, a bit each. Sources: System V AMD64 ABI 3.2.3; Intel386
// psABI 2.2.3 (arguments are on the stack); AAPCS64 6.8.2; AAPCS32 6.5.
#pragma once

#include <cstdint>

#include "unwind/frame/registers.h"

namespace flamewire::agent {

inline std::uint32_t argument_registers(unwind::Arch arch) {
    switch (arch) {
        case unwind::Arch::x86_64: return 1u << 5 | 1u << 4 | 1u << 1 | 1u << 2 | 1u << 8 | 1u << 9;
        case unwind::Arch::aarch64: return 0xff;
        case unwind::Arch::arm: return 0xf;
        case unwind::Arch::x86: break;
    }
    return 1u << 4;
}

}  // namespace flamewire::agent
