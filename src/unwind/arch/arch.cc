// Lookup of architectures.
#include "unwind/arch/arch.h"

#include "unwind/frame/registers.h"

namespace flamewire::unwind {

const ArchInfo& arch_info(Arch arch) {
    switch (arch) {
        case Arch::x86_64: return arch_x86_64;
        case Arch::x86: return arch_x86;
        case Arch::aarch64: return arch_aarch64;
        case Arch::arm: return arch_arm;
    }
    return arch_x86_64;
}

const RegisterNames& register_names(Arch arch) { return arch_info(arch).names; }

std::optional<Arch> arch_of_machine(std::uint32_t machine) {
    switch (machine) {
        case 3: return Arch::x86;
        case 40: return Arch::arm;
        case 62: return Arch::x86_64;
        case 183: return Arch::aarch64;
        default: return std::nullopt;
    }
}

}  // namespace flamewire::unwind
