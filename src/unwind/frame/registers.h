// The registers of one frame, by their DWARF numbers. Source of the numbers: System V psABI of x86-64 (figure 3.36) and
// i386, "DWARF for the Arm Architecture" and "DWARF for the Arm 64-bit Architecture".
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace flamewire::unwind {

enum class Arch : std::uint8_t { x86_64, x86, aarch64, arm };

// Number of registers that a walk tracks. Floating-point registers are never needed to find a caller.
inline constexpr std::size_t max_registers = 33;
inline constexpr std::uint8_t no_register = 0xff;

// Differences between architectures, besides code. Each architecture is one file, arch_NAME.cc; see arch.h.
struct RegisterNames {
    std::uint8_t count;          // tracked registers have numbers below this
    std::uint8_t sp, pc;         // pc on aarch64: 32, our own number (DWARF has none)
    std::uint8_t frame_pointer;  // of the frame-pointer convention; ARM: r11, Thumb code uses r7
    std::uint8_t link;           // no_register where calls push the return address
    std::uint8_t return_column;  // default column of the return address in call frame information
    std::uint8_t word_size;      // bytes
};
const RegisterNames& register_names(Arch arch);

// From ELF e_machine. nullopt if the machine is not supported.
std::optional<Arch> arch_of_machine(std::uint32_t machine);

class Registers {
public:
    explicit Registers(Arch arch = Arch::x86_64) : arch_(arch) {}

    [[nodiscard]] Arch arch() const { return arch_; }
    [[nodiscard]] bool has(std::size_t number) const { return number < max_registers && (known_ >> number & 1) != 0; }
    // 0 if unknown.
    [[nodiscard]] std::uint64_t get(std::size_t number) const { return has(number) ? values_[number] : 0; }
    void set(std::size_t number, std::uint64_t value) {
        values_[number] = value;
        known_ |= std::uint64_t{1} << number;
    }
    void forget(std::size_t number) { known_ &= ~(std::uint64_t{1} << number); }
    // Marks all registers as unknown except those whose bits are set.
    void keep(std::uint64_t mask) { known_ &= mask; }

    [[nodiscard]] std::uint64_t sp() const { return get(register_names(arch_).sp); }
    [[nodiscard]] std::uint64_t pc() const { return get(register_names(arch_).pc); }

private:
    std::array<std::uint64_t, max_registers> values_{};
    std::uint64_t known_ = 0;
    Arch arch_;
};

}  // namespace flamewire::unwind
