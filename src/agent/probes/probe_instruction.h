// Decodes what placing a uprobe needs from an instruction: its class (kernels emulate some classes, see probe_cost.h),
// the registers that it writes, and where it continues. Registers have the DWARF numbers of their architecture.
// Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2; Arm Architecture Reference Manual
// (A-profile), C4.1; classes: the kernel's arch/x86/kernel/uprobes.c and arch/arm64/kernel/probes/decode-insn.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "unwind/frame/registers.h"

namespace flamewire::agent {

// Instructions that a kernel emulates alike. x86 forms with a prefix other than REX are `other` unless listed.
enum class InstructionClass : std::uint8_t {
    nop,                 // x86: 90; aarch64: nop
    long_nop,            // x86: the recommended nops of 3 to 9 bytes
    hint,                // x86: endbr64, endbr32; aarch64: other hints, for example bti and paciasp
    push,                // x86: 50 to 57, also with REX (41)
    conditional_branch,  // x86: jcc; aarch64: b.cond, cbz, cbnz, tbz, tbnz
    jump,                // x86: jmp to a constant; aarch64: b, br, ret
    call,                // x86: call of a constant; aarch64: bl, blr
    address,             // aarch64: adr, adrp
    // aarch64: ldr, ldrsw and prfm of an address relative to pc. Kernels since 6.12 refuse a probe here. Older ones load
    // with the kernel's rights, which can end the kernel.
    literal_load,
    other,
};
inline constexpr std::size_t instruction_classes = 10;

// A set of classes.
class InstructionClasses {
public:
    constexpr InstructionClasses() = default;
    constexpr InstructionClasses(std::initializer_list<InstructionClass> classes) {
        for (const InstructionClass each : classes) insert(each);
    }
    constexpr void insert(InstructionClass each) { mask_ = static_cast<std::uint16_t>(mask_ | bit(each)); }
    [[nodiscard]] constexpr bool contains(InstructionClass each) const { return (mask_ & bit(each)) != 0; }
    bool operator==(const InstructionClasses&) const = default;

private:
    static constexpr unsigned bit(InstructionClass each) { return 1u << static_cast<unsigned>(each); }
    std::uint16_t mask_ = 0;
};

inline constexpr std::uint32_t all_registers = 0xffff'ffff;

struct ProbeInstruction {
    InstructionClass instruction_class = InstructionClass::other;
    std::uint8_t size = 4;
    bool falls_through = true;    // always continues with the next instruction; false for calls, which may not return
    bool may_jump = false;        // to `target`
    bool jumps_indirect = false;  // to an address in a register or in memory
    bool returns = false;         // to the caller
    bool ends_frame = false;      // restores a callee-saved register from the stack
    bool adds = false;            // `reg` += another register
    std::uint8_t reg = 0xff;      // of `adds`; of an indirect jump the register with its address, 0xff: in memory
    std::uint32_t written = all_registers;  // general registers that it may write, a bit each
    // Of jumps and calls to constants: relative to the start of this instruction. Of an indirect jump of non-PIC x86
    // through a table: its address; otherwise 0.
    std::int64_t target = 0;
};

// Decodes the first instruction of `code`; x86-64, x86 and aarch64, in the agent only those of its machine. nullopt if
// it is incomplete or unknown.
std::optional<ProbeInstruction> probe_instruction(unwind::Arch arch, std::span<const std::byte> code);

// The two parts of it. `code`: the bytes of x86-64 (`wide`) or i386 code.
std::optional<ProbeInstruction> x86_probe_instruction(std::span<const std::byte> code, bool wide);
std::optional<ProbeInstruction> aarch64_probe_instruction(std::uint32_t word);

}  // namespace flamewire::agent
