#include "unwind/code/arm_instruction.h"

#include <bit>
#include <optional>

namespace flamewire::unwind {
namespace {

using Kind = CodeEffect::Kind;

constexpr std::uint8_t sp = 13, lr = 14, pc = 15;

CodeEffect push_of(std::uint32_t mask) {
    if ((mask >> sp & 1) != 0 || (mask >> pc & 1) != 0) return {};
    return {.kind = Kind::push, .mask = mask, .bytes = 4 * std::popcount(mask)};
}
CodeEffect pop_of(std::uint32_t mask) {
    if ((mask >> sp & 1) != 0) return {};
    return {.kind = Kind::pop, .mask = mask, .bytes = 4 * std::popcount(mask)};
}

// vpush and vpop. Their halfwords are the same in ARM and Thumb code.
std::optional<CodeEffect> vfp_effect(std::uint32_t first, std::uint32_t second) {
    if ((second & 0x0e00) != 0x0a00) return {};
    const std::int64_t bytes = std::int64_t{second & 0xff} * 4;
    if ((first & 0xffbf) == 0xed2d) return CodeEffect{.kind = Kind::push, .bytes = bytes};
    if ((first & 0xffbf) == 0xecbd) return CodeEffect{.kind = Kind::pop, .bytes = bytes};
    return {};
}

std::int64_t sign_extended(std::uint32_t value, unsigned bits) {
    const std::uint32_t sign = 1u << (bits - 1);
    return std::int64_t{value ^ sign} - std::int64_t{sign};
}

// add and sub of a constant (8 bits, rotated), except into pc.
std::optional<CodeEffect> arm_constant_effect(std::uint32_t word) {
    const std::uint32_t operation = word >> 20;
    constexpr std::uint32_t add = 0xe28, subtract = 0xe24;
    if (operation != add && operation != subtract) return {};
    const std::int64_t value = std::rotr(word & 0xff, static_cast<int>((word >> 8 & 0xf) * 2));
    const std::int64_t bytes = operation == add ? value : -value;
    const auto from = static_cast<std::uint8_t>(word >> 16 & 0xf), to = static_cast<std::uint8_t>(word >> 12 & 0xf);
    if (to == pc) return CodeEffect{};
    if (from == sp && to == sp) return CodeEffect{.kind = Kind::add, .bytes = bytes};
    if (from == sp) return CodeEffect{.kind = Kind::copy_to, .reg = to, .bytes = bytes};
    if (to == sp) return CodeEffect{.kind = Kind::copy_from, .reg = from, .bytes = bytes};
    return CodeEffect{.kind = from == to ? Kind::add_to : Kind::none, .reg = to, .bytes = bytes};
}

// The modified constant of a 32-bit Thumb instruction. -1 for forms that no stack size has.
std::int64_t thumb_constant(std::uint32_t first, std::uint32_t second) {
    const std::uint32_t rotation = (first >> 10 & 1) << 4 | (second >> 12 & 7) << 1 | (second >> 7 & 1);
    if (rotation < 2) return second & 0xff;
    if (rotation < 8) return -1;
    return std::rotr(0x80 | (second & 0x7f), static_cast<int>(rotation));
}

// add, sub, addw and subw of a constant.
std::optional<CodeEffect> thumb_constant_effect(std::uint32_t first, std::uint32_t second) {
    const std::uint32_t operation = first & 0xfbf0;
    constexpr std::uint32_t add = 0xf100, add_plain = 0xf200, subtract = 0xf1a0, subtract_plain = 0xf2a0;
    if (operation != add && operation != add_plain && operation != subtract && operation != subtract_plain) return {};
    const std::int64_t plain = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | (second & 0xff);
    const bool is_plain = operation == add_plain || operation == subtract_plain;
    const std::int64_t value = is_plain ? plain : thumb_constant(first, second);
    const std::int64_t bytes = operation == add || operation == add_plain ? value : -value;
    const auto from = static_cast<std::uint8_t>(first & 0xf), to = static_cast<std::uint8_t>(second >> 8 & 0xf);
    if (value < 0 && (from == sp || to == sp)) return CodeEffect{};
    if (from == sp && to == sp) return CodeEffect{.kind = Kind::add, .bytes = bytes};
    if (from == sp) return CodeEffect{.kind = Kind::copy_to, .reg = to, .bytes = bytes};
    if (to == sp) return CodeEffect{.kind = Kind::copy_from, .reg = from, .bytes = bytes};
    return CodeEffect{.kind = from == to ? Kind::add_to : Kind::none, .reg = to, .bytes = bytes};
}

CodeEffect thumb_long_effect(std::uint32_t first, std::uint32_t second) {
    const auto reg = static_cast<std::uint8_t>(second >> 12);
    if (first == 0xe92d) return push_of(second);
    if (first == 0xe8bd) return pop_of(second);
    if (first == 0xf84d && (second & 0x0f00) == 0x0d00)  // str [sp, #-N]!
        return {.kind = Kind::push, .mask = 1u << reg, .bytes = second & 0xff};
    if (first == 0xf85d && (second & 0x0f00) == 0x0b00)  // ldr [sp], #N
        return reg == sp ? CodeEffect{} : CodeEffect{.kind = Kind::pop, .mask = 1u << reg, .bytes = second & 0xff};
    if (first == 0xe96d || first == 0xe8fd) {  // strd, [sp, #-N]!; ldrd, [sp], #N
        const std::uint32_t other = second >> 8 & 0xf, mask = 1u << reg | 1u << other;
        if (reg >= other || other >= sp) return {};
        return {
            .kind = first == 0xe96d ? Kind::push : Kind::pop, .mask = mask, .bytes = std::int64_t{second & 0xff} * 4};
    }
    if (const auto effect = vfp_effect(first, second)) return *effect;
    if (const bool branches = (first & 0xf800) == 0xf000 && (second & 0x8000) != 0; branches) {
        const std::uint32_t sign = first >> 10 & 1;
        if ((second & 0x5000) == 0 && (first & 0x0380) != 0x0380) {  // conditional
            const std::uint32_t near = sign << 20 | (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 |
                                       (first & 0x3f) << 12 | (second & 0x7ff) << 1;
            return {.kind = Kind::branch, .bytes = 4 + sign_extended(near, 21)};
        }
        if ((second & 0x4000) != 0) return {.kind = Kind::call};
        // Hints, barriers, and moves of status registers.
        if (first == 0xf3af || first == 0xf3bf || first == 0xf3ef || (first & 0xffe0) == 0xf380)
            return {.kind = Kind::none};
        if ((second & 0x1000) == 0) return {};
        const std::uint32_t i1 = (second >> 13 & 1) ^ sign ^ 1, i2 = (second >> 11 & 1) ^ sign ^ 1;
        const std::uint32_t offset = sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
        return {.kind = Kind::jump, .bytes = 4 + sign_extended(offset, 25)};
    }
    if (const auto effect = thumb_constant_effect(first, second)) return *effect;
    // From here on, detect instructions that may write sp or pc. Data processing and loads have their target in one of
    // two places. Loads and stores of several registers or with write-back may have sp as their base.
    const bool based_on_sp = (first & 0xf) == sp;
    const bool multiple = (first & 0xfe00) == 0xe800;
    const bool writes_back = (first & 0xfe00) == 0xf800 && (second & 0x0900) == 0x0900;
    const auto target = static_cast<std::uint8_t>(second >> 8 & 0xf);
    const bool processes = (first & 0xf800) == 0xf000 || (first & 0xfe00) == 0xea00 || (first & 0xff00) == 0xfa00;
    const bool table_branch = (first & 0xfff0) == 0xe8d0 && (second & 0xffe0) == 0xf000;
    if (first == 0xf8dc && second == 0xf000) return {.kind = Kind::indirect};  // ldr.w pc, [ip] of a stub
    const bool loads_pc = (first & 0xfe10) == 0xf810 && reg == pc && (first & 0x0060) == 0x0040;
    if (table_branch || loads_pc) return {};
    if (processes && target == sp) return {.kind = Kind::compute_sp};
    const bool two_or_exclusive = (first & 0x40) != 0;
    const bool loads_several = !two_or_exclusive && (first & 0x10) != 0;
    if (multiple && ((based_on_sp && (first & 0x20) != 0) || (loads_several && second >> 15 != 0))) return {};
    if (based_on_sp && writes_back) return {};
    return {.kind = Kind::none};
}

CodeEffect thumb_short_effect(std::uint32_t code) {
    const auto low = static_cast<std::uint8_t>(code >> 8 & 7);
    if (code >> 9 == 0x5a) return push_of((code & 0xff) | (code >> 8 & 1) << lr);
    if (code >> 9 == 0x5e) return pop_of((code & 0xff) | (code >> 8 & 1) << pc);
    if (code >> 8 == 0xb0) {
        const std::int64_t bytes = std::int64_t{code & 0x7f} * 4;
        return {.kind = Kind::add, .bytes = (code & 0x80) != 0 ? -bytes : bytes};
    }
    if (code >> 11 == 0x15) return {.kind = Kind::copy_to, .reg = low, .bytes = std::int64_t{code & 0xff} * 4};
    if (code >> 11 == 0x06) return {.kind = Kind::add_to, .reg = low, .bytes = code & 0xff};
    if (code == 0x4770) return {.kind = Kind::returns};
    if (code >> 11 == 0x1c) return {.kind = Kind::jump, .bytes = 4 + 2 * sign_extended(code & 0x7ff, 11)};
    if (code >> 8 == 0x46 || code >> 8 == 0x44) {  // mov, add of any two registers
        const auto to = static_cast<std::uint8_t>((code & 7) | (code >> 4 & 8));
        const auto from = static_cast<std::uint8_t>(code >> 3 & 15);
        const bool moves = code >> 8 == 0x46;
        if (moves && from == sp && to != pc) return {.kind = Kind::copy_to, .reg = to};
        if (moves && to == sp) return {.kind = Kind::copy_from, .reg = from};
        if (to == sp) return {.kind = Kind::compute_sp};
        return {.kind = to == pc ? Kind::other : Kind::none};
    }
    if ((code & 0xf500) == 0xb100)  // cbz, cbnz
        return {.kind = Kind::branch, .bytes = 4 + std::int64_t{(code >> 9 & 1) << 6 | (code >> 3 & 0x1f) << 1}};
    if (code >> 12 == 0xd && (code >> 8 & 0xf) < 0xe)  // b with a condition
        return {.kind = Kind::branch, .bytes = 4 + 2 * sign_extended(code & 0xff, 8)};
    if (code >> 8 == 0xbf && (code & 0xf) != 0) return {.kind = Kind::branch};  // it
    if (code >> 7 == 0x8f) return {.kind = Kind::call};                         // blx
    if (code >> 7 == 0x8e) return {.kind = Kind::indirect};                     // bx
    if (code >> 8 == 0xdf) return {.kind = Kind::none};                         // svc
    return {.kind = code >> 12 == 0xd || code >> 8 == 0xbe ? Kind::other : Kind::none};
}

constexpr std::uint32_t always = 14, unconditional = 15;  // conditions of an instruction

CodeEffect unconditional_effect(std::uint32_t word) {
    const bool barrier = word >> 20 == 0xf57, preload = (word & 0xfd70f000) == 0xf550f000;
    const bool vectors = word >> 25 == 0x79;  // data processing
    const bool elements = word >> 24 == 0xf4 && ((word >> 16 & 0xf) != sp || (word & 0xf) == pc);
    if (barrier || preload || vectors || elements) return {.kind = Kind::none};
    return {.kind = word >> 25 == 0x7d ? Kind::call : Kind::other};  // blx
}

CodeEffect conditional_effect(std::uint32_t word) {
    const CodeEffect effect = arm_effect((word & 0x0fffffff) | always << 28);
    switch (effect.kind) {
        case Kind::jump: return {.kind = Kind::branch, .bytes = effect.bytes};
        case Kind::returns: return {.kind = Kind::branch};
        case Kind::pop:  // a conditional return
            return (effect.mask >> pc & 1) != 0 ? effect : CodeEffect{};
        case Kind::none:
        case Kind::call: return {.kind = effect.kind};
        default: return {};
    }
}

}  // namespace

CodeEffect arm_effect(std::uint32_t word) {
    const auto reg = static_cast<std::uint8_t>(word >> 12 & 0xf);
    if (word >> 28 == unconditional) return unconditional_effect(word);
    if (word >> 28 != always) return conditional_effect(word);
    if (word >> 16 == 0xe92d) return push_of(word & 0xffff);
    if (word >> 16 == 0xe8bd) return pop_of(word & 0xffff);
    if (word >> 16 == 0xe52d) return {.kind = Kind::push, .mask = 1u << reg, .bytes = word & 0xfff};  // str [sp, #-N]!
    if (word >> 16 == 0xe49d)                                                                         // ldr [sp], #N
        return reg == sp ? CodeEffect{} : CodeEffect{.kind = Kind::pop, .mask = 1u << reg, .bytes = word & 0xfff};
    const bool pushes_two = (word & 0xffff00f0) == 0xe16d00f0, pops_two = (word & 0xffff00f0) == 0xe0cd00d0;
    if (pushes_two || pops_two) {  // strd, [sp, #-N]!; ldrd, [sp], #N
        if (reg > 10) return {};
        return {.kind = pushes_two ? Kind::push : Kind::pop,
                .mask = 3u << reg,
                .bytes = std::int64_t{(word >> 4 & 0xf0) | (word & 0xf)}};
    }
    if ((word & 0xffff0fff) == 0xe1a0000d && reg != pc) return {.kind = Kind::copy_to, .reg = reg};  // mov reg, sp
    if ((word & 0xfffffff0) == 0xe1a0d000)                                                           // mov sp, reg
        return {.kind = Kind::copy_from, .reg = static_cast<std::uint8_t>(word & 0xf)};
    if (word == 0xe12fff1e) return {.kind = Kind::returns};
    if ((word & 0xfffffff0) == 0xe12fff10) return {.kind = Kind::indirect};                        // bx
    if ((word & 0xfffffff0) == 0xe12fff30 || word >> 24 == 0xeb) return {.kind = Kind::call};      // blx, bl
    if (word == 0xe51ff004 || (word & 0xffdff000) == 0xe59cf000) return {.kind = Kind::indirect};  // stubs
    if (word >> 24 == 0xef || (word & 0x0fffff00) == 0x0320f000) return {.kind = Kind::none};      // svc, nop
    if (word >> 24 == 0xea) return {.kind = Kind::jump, .bytes = 8 + 4 * sign_extended(word & 0xffffff, 24)};
    if (const auto effect = vfp_effect(word >> 16, word & 0xffff)) return *effect;
    if (const auto effect = arm_constant_effect(word)) return *effect;
    const std::uint32_t group = word >> 25 & 7;
    constexpr std::uint32_t several_registers = 4, branch = 5;
    const bool branches = group == branch;
    const bool based_on_sp = (word >> 16 & 0xf) == sp && (word >> 21 & 1) != 0;  // with write-back, in loads, stores
    if (group < 2 && reg == sp) return {.kind = Kind::compute_sp};
    if (group == several_registers) {
        const bool loads = (word >> 20 & 1) != 0;
        const bool takes_sp_or_pc = loads && ((word >> sp & 1) != 0 || (word >> pc & 1) != 0);
        return {.kind = based_on_sp || takes_sp_or_pc ? Kind::other : Kind::none};
    }
    if (branches || (group < several_registers && (reg == sp || reg == pc))) return {};
    return {.kind = (group == 2 || group == 3) && (based_on_sp || ((word >> 16 & 0xf) == sp && (word >> 24 & 1) == 0))
                        ? Kind::other
                        : Kind::none};
}

CodeEffect thumb_effect(std::uint32_t first, std::uint32_t second) {
    constexpr std::uint32_t first_long = 0xe800;
    if (first >= first_long) return thumb_long_effect(first, second);
    CodeEffect effect = thumb_short_effect(first);
    effect.size = 2;
    return effect;
}

}  // namespace flamewire::unwind
