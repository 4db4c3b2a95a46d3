// uapi/asm/perf_regs.h of x86, arm64 and arm, as tables.
#include "unwind/frame/linux_registers.h"

#include <array>
#include <bit>

namespace flamewire::unwind {

namespace {

constexpr std::uint8_t none = no_register;

// DWARF numbers in the kernel's order: ax bx cx dx si di bp sp ip, flags and segments (not used), then r8 to r15.
constexpr std::array<std::uint8_t, 24> x86_64_order{0,    3,    2,    1,    4, 5, 6,  7,  16, none, none, none,
                                                    none, none, none, none, 8, 9, 10, 11, 12, 13,   14,   15};
constexpr std::array<std::uint8_t, 9> x86_order{0, 3, 1, 2, 6, 7, 5, 4, 8};

// The order on Arm is DWARF's: x0 to x30, sp, pc; r0 to r15.
constexpr std::size_t aarch64_count = 33, arm_count = 16;

std::uint8_t number_of(Arch arch, std::size_t bit) {
    switch (arch) {
        case Arch::x86_64: return bit < x86_64_order.size() ? x86_64_order[bit] : none;
        case Arch::x86: return bit < x86_order.size() ? x86_order[bit] : none;
        case Arch::aarch64: return bit < aarch64_count ? static_cast<std::uint8_t>(bit) : none;
        case Arch::arm: return bit < arm_count ? static_cast<std::uint8_t>(bit) : none;
    }
    return none;
}

// The architecture of a task with `abi` on a kernel of `machine`. 32-bit tasks use the layout of 64-bit ones: on x86
// the order is the same, on arm64 the first 16 are the task's r0 to r15.
std::optional<Arch> arch_of_task(Arch machine, RegisterAbi abi) {
    if (abi == RegisterAbi::bits_64 && (machine == Arch::x86_64 || machine == Arch::aarch64)) return machine;
    if (abi != RegisterAbi::bits_32) return std::nullopt;
    return machine == Arch::x86_64 || machine == Arch::x86 ? Arch::x86 : Arch::arm;
}

}  // namespace

std::uint64_t sampled_register_mask(Arch machine) {
    std::uint64_t mask = 0;
    for (std::size_t bit = 0; bit < 64; ++bit)
        if (number_of(machine, bit) != none) mask |= std::uint64_t{1} << bit;
    return mask;
}

std::optional<Registers> registers_of_sample(Arch machine, RegisterAbi abi, std::uint64_t mask,
                                             std::span<const std::uint64_t> values) {
    const std::optional<Arch> arch = arch_of_task(machine, abi);
    if (!arch || values.size() < static_cast<std::size_t>(std::popcount(mask))) return std::nullopt;
    const RegisterNames& names = register_names(*arch);
    Registers registers(*arch);
    std::size_t next = 0;
    for (std::size_t bit = 0; bit < 64; ++bit) {
        if ((mask >> bit & 1) == 0) continue;
        const std::uint64_t value = names.word_size == 4 ? values[next] & 0xffffffffu : values[next];
        ++next;
        if (const std::uint8_t number = number_of(*arch, bit); number != none) registers.set(number, value);
    }
    if (!registers.has(names.pc) || !registers.has(names.sp)) return std::nullopt;
    return registers;
}

}  // namespace flamewire::unwind
