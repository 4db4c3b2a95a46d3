#include <algorithm>
#include <array>
#include <bit>

#include "agent/probes/probe_instruction.h"
#include "unwind/code/x86_instruction.h"

namespace flamewire::agent {
namespace {

using unwind::CodeEffect;
using Kind = CodeEffect::Kind;
using Code = std::span<const std::byte>;

constexpr std::uint32_t rsp = 1u << 7;

unsigned byte_at(Code code, std::size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; }

bool is_in(std::initializer_list<unsigned> list, unsigned value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

// The opcode of an instruction, and the byte that follows it.
struct Opcode {
    std::size_t prefixes = 0;  // bytes before REX
    bool rex = false;
    unsigned first = 0, second = 0;  // second: after 0f, otherwise 0
    unsigned modrm = 0;              // if the instruction has one
    [[nodiscard]] bool in_memory() const { return modrm >> 6 != 3; }
    [[nodiscard]] unsigned group() const { return modrm >> 3 & 7; }
};

Opcode opcode_of(Code code, bool wide) {
    Opcode found;
    std::size_t at = 0;
    while (is_in({0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65}, byte_at(code, at))) ++at;
    found.prefixes = at;
    found.rex = wide && byte_at(code, at) >> 4 == 4;
    if (found.rex) ++at;
    found.first = byte_at(code, at++);
    if (found.first == 0x0f) found.second = byte_at(code, at++);
    found.modrm = byte_at(code, at);
    return found;
}

// The kernel compares whole nops with its table (arch/x86/include/asm/nops.h).
InstructionClass nop_class(Code code) {
    const bool prefixed = byte_at(code, 0) == 0x66;
    const Code rest = code.subspan(prefixed ? 1 : 0);
    const unsigned modrm = byte_at(rest, 2);
    const bool has_sib = is_in({0x44, 0x84}, modrm);
    const bool zero = std::all_of(rest.begin() + 3, rest.end(), [](std::byte byte) { return byte == std::byte{0}; });
    if (!zero || !(has_sib || (!prefixed && is_in({0x00, 0x40, 0x80}, modrm)))) return InstructionClass::other;
    return InstructionClass::long_nop;
}

// `code` is one instruction.
InstructionClass class_of(Code code, const Opcode& opcode) {
    const unsigned first = opcode.first, second = opcode.second;
    if (first == 0x0f && second == 0x1e && byte_at(code, 0) == 0xf3 && opcode.modrm >> 1 == 0xfa >> 1)
        return InstructionClass::hint;
    if (first == 0x0f && second == 0x1f && code.size() > 2 && !opcode.rex && opcode.prefixes <= 1)
        return nop_class(code);
    if (opcode.prefixes != 0) return InstructionClass::other;
    if (first >> 3 == 0x50 >> 3 && (!opcode.rex || byte_at(code, 0) == 0x41)) return InstructionClass::push;
    if (opcode.rex) return InstructionClass::other;
    if (first == 0x90) return InstructionClass::nop;
    if (first >> 4 == 7 || (first == 0x0f && second >> 4 == 8)) return InstructionClass::conditional_branch;
    if (first == 0xe9 || first == 0xeb) return InstructionClass::jump;
    return first == 0xe8 ? InstructionClass::call : InstructionClass::other;
}

// Whether an instruction writes no general register. Covers frequent instructions without an effect on the stack.
bool writes_only_memory_or_flags(const Opcode& opcode, bool prefixed_f3) {
    const unsigned first = opcode.first, second = opcode.second, group = opcode.group();
    if (first == 0x0f) {  // nops, prefetches, and moves and arithmetic of vectors
        if (is_in({0x0d, 0x18, 0x1f, 0x28, 0x29, 0x2e, 0x2f, 0x7f, 0xd6, 0xef}, second)) return true;
        return second >> 3 == 0x10 >> 3 || (second > 0x50 && second < 0x70) || (second == 0x7e && prefixed_f3);
    }
    if (first < 0x40) return (first & 7) < 6 && (first >> 3 == 7 || ((first & 7) < 2 && opcode.in_memory()));
    if (first == 0x80 || first == 0x81 || first == 0x83) return group == 7 || opcode.in_memory();
    if (first == 0xf6 || first == 0xf7) return group < 2;
    if (is_in({0x88, 0x89, 0xc6, 0xc7}, first)) return opcode.in_memory();
    return is_in({0x84, 0x85, 0x90, 0xa8, 0xa9}, first);
}

std::uint32_t written_by(const CodeEffect& effect, const Opcode& opcode, bool prefixed_f3) {
    const bool exchanges = opcode.first == 0x87 || (opcode.first > 0x90 && opcode.first < 0x98);
    if (exchanges) return all_registers;
    switch (effect.kind) {
        case Kind::push:
        case Kind::add:
        case Kind::compute_sp:
        case Kind::copy_from: return rsp;
        case Kind::pop:
        case Kind::leave: return effect.mask | rsp;
        case Kind::copy_to:
        case Kind::add_to:
        case Kind::forget:
        case Kind::load: return 1u << effect.reg;
        case Kind::store: return 0;
        case Kind::none: return writes_only_memory_or_flags(opcode, prefixed_f3) ? 0 : all_registers;
        default: return all_registers;
    }
}

bool falls_through(const CodeEffect& effect, const Opcode& opcode) {
    switch (effect.kind) {
        case Kind::jump:
        case Kind::branch:
        case Kind::call:
        case Kind::indirect:
        case Kind::returns:
        case Kind::other: return false;
        case Kind::pop: return effect.mask >> 16 == 0;  // ret
        default: break;
    }
    const bool system_call = opcode.first == 0x0f && opcode.second == 0x05;
    const bool aborts = opcode.first == 0xc6 && opcode.modrm == 0xf8;  // xabort
    return !system_call && !aborts;
}

std::int64_t last_int32(Code code) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= byte_at(code, code.size() - 4 + i) << 8 * i;
    return static_cast<std::int32_t>(value);
}

// The operands of `jmp` to a register or through a table at a constant address, and of `add` of registers. The number of
// a register is only compared with another one, so it need not be DWARF's.
void describe_indirect(ProbeInstruction& found, Code code, const Opcode& opcode) {
    const unsigned rex = opcode.rex ? byte_at(code, opcode.prefixes) : 0;
    const unsigned rm = (opcode.modrm & 7) | (rex & 1) << 3, other = opcode.group() | (rex & 4) << 1;
    if (found.adds) found.reg = static_cast<std::uint8_t>(opcode.first == 0x01 ? rm : other);
    if (!found.jumps_indirect) return;
    if (!opcode.in_memory()) found.reg = static_cast<std::uint8_t>(rm);
    constexpr std::size_t with_table = 7;  // opcode, ModRM, SIB and 4 bytes of address
    if (opcode.modrm != 0x24 || code.size() < with_table || (byte_at(code, code.size() - 5) & 7) != 5) return;
    found.target = last_int32(code);
}

// From the numbers of x86-64 to those of i386 (System V ABI, figure 2.14 of i386).
std::uint32_t i386_numbers(std::uint32_t written) {
    constexpr std::array<std::uint8_t, 8> number{0, 2, 1, 3, 6, 7, 5, 4};
    if (written == all_registers) return written;
    std::uint32_t renumbered = 0;
    for (unsigned i = 0; i < number.size(); ++i) renumbered |= (written >> i & 1) << number[i];
    return renumbered;
}

// One instruction of 32-bit code. Most have the same bytes in 64-bit code, with 32 or 64-bit operands. nullopt for the
// rare forms that differ in another way than here.
std::optional<CodeEffect> i386_effect(Code code, const Opcode& opcode) {
    const unsigned first = opcode.first;
    const std::size_t operands = opcode.prefixes + 1;
    if (first >> 4 == 4) {  // inc, dec
        constexpr std::array<std::uint8_t, 8> register_of{0, 2, 1, 3, 7, 6, 4, 5};
        return CodeEffect{
            .kind = Kind::forget, .reg = register_of[first & 7], .size = static_cast<std::uint8_t>(operands)};
    }
    if (first >> 2 == 0xa0 >> 2) {  // mov of an absolute address
        if (operands + 4 > code.size()) return std::nullopt;
        return CodeEffect{.kind = Kind::none, .size = static_cast<std::uint8_t>(operands + 4)};
    }
    const bool vector_only = is_in({0x62, 0xc4, 0xc5}, first);
    const bool short_address = std::ranges::count(code.first(opcode.prefixes), std::byte{0x67}) != 0;
    if (short_address || first == 0x63 || (vector_only && byte_at(code, operands) >> 6 != 3)) return std::nullopt;
    return unwind::x86_64_effect(code);
}

}  // namespace

std::optional<ProbeInstruction> x86_probe_instruction(std::span<const std::byte> code, bool wide) {
    code = code.first(std::min(code.size(), unwind::longest_x86_instruction));
    const Opcode opcode = opcode_of(code, wide);
    const auto effect = wide ? unwind::x86_64_effect(code) : i386_effect(code, opcode);
    if (!effect) return std::nullopt;
    const Code prefixes = code.first(opcode.prefixes);
    // Processors differ in the operands of a branch with this prefix. xbegin jumps when its transaction aborts.
    const bool branches = effect->kind == Kind::jump || effect->kind == Kind::branch || effect->kind == Kind::call;
    const bool short_operands = std::ranges::count(prefixes, std::byte{0x66}) != 0;
    if ((branches && short_operands) || (opcode.first == 0xc7 && opcode.modrm == 0xf8)) return std::nullopt;

    ProbeInstruction found;
    found.size = effect->size;
    found.instruction_class = class_of(code.first(effect->size), opcode);
    found.falls_through = falls_through(*effect, opcode);
    found.may_jump = effect->kind == Kind::jump || effect->kind == Kind::branch;
    found.jumps_indirect = effect->kind == Kind::indirect;
    found.returns = opcode.first == 0xc3 || opcode.first == 0xc2;
    found.target = found.may_jump ? effect->bytes : 0;
    if (found.instruction_class == InstructionClass::call)
        found.target = effect->size + last_int32(code.first(effect->size));
    constexpr std::uint32_t callee_saved = 1u << 3 | 1u << 6 | 0xfu << 12;  // rbx, rbp, r12 to r15
    found.ends_frame = effect->kind == Kind::leave || (effect->kind == Kind::pop && (effect->mask & callee_saved) != 0);
    found.adds = (opcode.first == 0x01 || opcode.first == 0x03) && !opcode.in_memory();
    describe_indirect(found, code.first(effect->size), opcode);
    found.written = written_by(*effect, opcode, std::ranges::count(prefixes, std::byte{0xf3}) != 0);
    if (found.instruction_class == InstructionClass::hint) found.written = 0;
    if (!wide) found.written = i386_numbers(found.written);
    return found;
}

}  // namespace flamewire::agent
