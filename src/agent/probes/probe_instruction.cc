#include "agent/probes/probe_instruction.h"

namespace flamewire::agent {
namespace {

// Decoders that the agent does not need are not linked into it.
#if !defined(FLAMEWIRE_NATIVE_CODE_ONLY)
constexpr bool decodes_x86 = true, decodes_aarch64 = true;
#elif defined(__x86_64__) || defined(__i386__)
constexpr bool decodes_x86 = true, decodes_aarch64 = false;
#else
constexpr bool decodes_x86 = false, decodes_aarch64 = true;
#endif

std::int64_t sign_extended(std::uint32_t value, unsigned bits) {
    const std::uint32_t sign = 1u << (bits - 1);
    return std::int64_t{value ^ sign} - std::int64_t{sign};
}
std::int64_t target_of(std::uint32_t word, unsigned lowest_bit, unsigned bits) {
    return 4 * sign_extended(word >> lowest_bit & ((1u << bits) - 1), bits);
}

// The general registers that an instruction writes. 31 is sp or no register.
std::uint32_t written_by(std::uint32_t word) {
    const std::uint32_t group = word >> 25 & 0xf, rd = word & 0x1f, rn = word >> 5 & 0x1f;
    const bool vector = (word >> 26 & 1) != 0;
    if (group >> 1 == 4 || (group & 7) == 5) return 1u << rd;  // data processing with a constant or registers
    if ((group & 5) == 4) {                                    // loads and stores
        const bool pair = (word & 0x3a000000) == 0x28000000, single = (word & 0x3a000000) == 0x38000000;
        const bool stores_pair = pair && (word >> 22 & 1) == 0;
        // opc 10 of vectors is a store of 16 bytes.
        const std::uint32_t opc = word >> 22 & 3;
        const bool is_plain_form = (word >> 24 & 1) != 0 || (word >> 21 & 1) == 0 || (word >> 10 & 3) == 2;
        const bool stores_single = single && is_plain_form && (opc == 0 || (opc == 2 && vector && word >> 30 == 0));
        const bool writes_back = pair ? (word >> 23 & 1) != 0 : (word >> 24 & 1) == 0 && (word >> 10 & 1) != 0;
        if (stores_pair || stores_single) return writes_back ? 1u << rn : 0;
    }
    return all_registers;
}

// Exclusive loads and stores. A trap between the two clears the monitor, so that the store never succeeds.
bool is_exclusive(std::uint32_t word) { return (word & 0x3e800000) == 0x08000000; }

// Loads x30 from the stack, and releases it.
bool ends_frame(std::uint32_t word) {
    const bool pair = (word & 0xffc07fff) == 0xa8c07bfd, single = (word & 0xffe00fff) == 0xf84007fe;
    return pair || single;
}

}  // namespace

std::optional<ProbeInstruction> aarch64_probe_instruction(std::uint32_t word) {
    using Class = InstructionClass;
    const std::uint32_t group = word >> 25 & 0xf;
    if (group == 0) return std::nullopt;  // reserved, for example udf
    if (word == 0xd503201f) return ProbeInstruction{.instruction_class = Class::nop, .written = 0};
    if ((word & 0xfffff01f) == 0xd503201f) {
        const std::uint32_t number = word >> 5 & 0x7f;
        constexpr std::uint32_t paciasp = 25, pacibsp = 27;
        const bool bti = number >= 32 && number < 40, signs = number == paciasp || number == pacibsp;
        constexpr std::uint32_t x16_x17_x30 = 3u << 16 | 1u << 30;
        return ProbeInstruction{.instruction_class = bti || signs ? Class::hint : Class::other, .written = x16_x17_x30};
    }
    if (word >> 26 == 0x05 || word >> 26 == 0x25) {
        const bool call = word >> 31 != 0;
        return ProbeInstruction{.instruction_class = call ? Class::call : Class::jump,
                                .falls_through = false,
                                .may_jump = !call,
                                .target = target_of(word, 0, 26)};
    }
    const bool conditional = (word & 0xff000000) == 0x54000000;  // b.cond; with bit 4 bc.cond
    const bool compares = (word & 0x7e000000) == 0x34000000, tests = (word & 0x7e000000) == 0x36000000;
    if (conditional || compares || tests)
        return ProbeInstruction{
            .instruction_class = conditional && (word & 0x10) != 0 ? Class::other : Class::conditional_branch,
            .falls_through = false,
            .may_jump = true,
            .target = tests ? target_of(word, 5, 14) : target_of(word, 5, 19)};
    if (word >> 25 == 0x6b) {  // branches to registers; also with authentication
        const std::uint32_t operation = word >> 21 & 0xf;
        const bool call = (operation & 7) == 1, returns = (operation & 7) == 2,
                   plain = (word & 0xff9ffc1f) == 0xd61f0000;
        return ProbeInstruction{.instruction_class = !plain ? Class::other
                                                     : call ? Class::call
                                                            : Class::jump,
                                .falls_through = false,
                                .jumps_indirect = !call && !returns,
                                .returns = returns,
                                .reg = static_cast<std::uint8_t>(word >> 5 & 0x1f)};
    }
    if (word >> 24 == 0xd4) return ProbeInstruction{.falls_through = false};  // svc, brk
    if (word >> 24 == 0xd5) return ProbeInstruction{};                        // registers of the system, barriers
    if (group >> 1 == 5) return std::nullopt;                                 // other branches
    if ((word & 0x1f000000) == 0x10000000)
        return ProbeInstruction{.instruction_class = Class::address, .written = 1u << (word & 0x1f)};
    if ((word & 0x3b000000) == 0x18000000) {
        const bool vector = (word >> 26 & 1) != 0;
        return ProbeInstruction{.instruction_class = Class::literal_load, .written = vector ? 0 : 1u << (word & 0x1f)};
    }
    if (is_exclusive(word)) return ProbeInstruction{.falls_through = false};
    // add of a shifted or extended register.
    const bool adds = (word & 0xff200000) == 0x8b000000 || (word & 0xffe00000) == 0x8b200000;
    return ProbeInstruction{.ends_frame = ends_frame(word),
                            .adds = adds,
                            .reg = static_cast<std::uint8_t>(adds ? word & 0x1f : 0xff),
                            .written = written_by(word)};
}

std::optional<ProbeInstruction> probe_instruction(unwind::Arch arch, std::span<const std::byte> code) {
    const bool x86_64 = arch == unwind::Arch::x86_64;
    if (decodes_x86 && (x86_64 || arch == unwind::Arch::x86)) return x86_probe_instruction(code, x86_64);
    if (!decodes_aarch64 || arch != unwind::Arch::aarch64 || code.size() < 4) return std::nullopt;
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(code[i]) << 8 * i;  // in any byte order
    return aarch64_probe_instruction(word);
}

}  // namespace flamewire::agent
