#include "unwind/code/x86_instruction.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

namespace flamewire::unwind {
namespace {

using Kind = CodeEffect::Kind;

constexpr std::uint8_t rbp = 6, rsp = 7, rip = 16;
constexpr std::int64_t word = 8;

// DWARF number by instruction encoding.
constexpr std::array<std::uint8_t, 16> dwarf_number{0, 2, 1, 3, rsp, rbp, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

struct Range {
    std::uint8_t first, last;
};
// A set of opcodes.
class Opcodes {
public:
    consteval Opcodes(std::initializer_list<Range> ranges) {
        for (const Range range : ranges)
            for (unsigned opcode = range.first; opcode <= range.last; ++opcode)
                words_[opcode / 32] |= 1u << opcode % 32;
    }
    [[nodiscard]] constexpr bool has(std::uint8_t opcode) const {
        return (words_[opcode / 32] >> opcode % 32 & 1) != 0;
    }

private:
    std::array<std::uint32_t, 8> words_{};
};

// One-byte opcodes. Below 0x40, arithmetic has the same six forms in each row of eight.
constexpr std::uint8_t end_of_arithmetic = 0x40;
constexpr Opcodes invalid{{0x06, 0x07}, {0x0e, 0x0e}, {0x16, 0x17}, {0x1e, 0x1f}, {0x27, 0x27},
                          {0x2f, 0x2f}, {0x37, 0x37}, {0x3f, 0x3f}, {0x60, 0x62}, {0x82, 0x82},
                          {0x9a, 0x9a}, {0xc4, 0xc5}, {0xce, 0xce}, {0xd4, 0xd6}, {0xea, 0xea}};
constexpr Opcodes with_modrm{{0x63, 0x63}, {0x69, 0x69}, {0x6b, 0x6b}, {0x80, 0x81}, {0x83, 0x8f}, {0xc0, 0xc1},
                             {0xc6, 0xc7}, {0xd0, 0xd3}, {0xd8, 0xdf}, {0xf6, 0xf7}, {0xfe, 0xff}};
constexpr Opcodes with_imm8{{0x6a, 0x6b}, {0x70, 0x80}, {0x83, 0x83}, {0xa8, 0xa8}, {0xb0, 0xb7},
                            {0xc0, 0xc1}, {0xc6, 0xc6}, {0xcd, 0xcd}, {0xe0, 0xe7}, {0xeb, 0xeb}};
constexpr Opcodes with_imm32{{0x68, 0x69}, {0x81, 0x81}, {0xa9, 0xa9}, {0xc7, 0xc7}};  // 16 bits with prefix 66

// Opcodes after 0F.
constexpr Opcodes invalid_0f{{0x04, 0x04}, {0x0a, 0x0a}, {0x0c, 0x0c}, {0x24, 0x27},
                             {0x36, 0x36}, {0x39, 0x39}, {0x3b, 0x3f}, {0xa6, 0xa7}};
constexpr Opcodes without_modrm_0f{{0x05, 0x09}, {0x0b, 0x0b}, {0x0e, 0x0e}, {0x30, 0x37}, {0x77, 0x77},
                                   {0x80, 0x8f}, {0xa0, 0xa2}, {0xa8, 0xaa}, {0xc8, 0xcf}};
constexpr Opcodes with_imm8_0f{{0x0f, 0x0f}, {0x70, 0x73}, {0xa4, 0xa4}, {0xac, 0xac},
                               {0xba, 0xba}, {0xc2, 0xc2}, {0xc4, 0xc6}};
constexpr Opcodes writes_register_0f{{0x40, 0x4f}, {0xaf, 0xaf}, {0xb6, 0xb8}, {0xbc, 0xbf}};

class Decoder {
public:
    explicit Decoder(std::span<const std::byte> code)
        : code_(code.first(std::min(code.size(), longest_x86_instruction))) {}

    std::optional<CodeEffect> run() {
        const std::uint8_t opcode = prefixes();
        CodeEffect effect = is_vector(opcode) ? vector(opcode) : opcode == 0x0f ? two_bytes() : one_byte(opcode);
        if (!valid_) return std::nullopt;
        effect.size = static_cast<std::uint8_t>(at_);
        if (effect.kind == Kind::jump || effect.kind == Kind::branch) effect.bytes += effect.size;
        return effect;
    }

private:
    // The operands in ModRM and SIB: `reg`, and another register or memory.
    struct Operands {
        std::uint8_t reg = 0;      // its DWARF number
        std::uint8_t group = 0;    // the same bits as an opcode extension
        bool is_register = false;  // `base` itself, not memory
        bool is_plain = false;     // memory at `base` + `offset`
        std::uint8_t base = 0;
        std::int64_t offset = 0;
    };

    std::uint8_t byte() {
        if (at_ >= code_.size()) {
            valid_ = false;
            return 0;
        }
        return std::to_integer<std::uint8_t>(code_[at_++]);
    }
    std::int64_t signed_number(unsigned bytes) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << 8 * i;
        if (bytes == 0) return 0;
        const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
        return static_cast<std::int64_t>((value ^ sign) - sign);
    }
    void skip(unsigned bytes) {
        at_ += bytes;
        valid_ &= at_ <= code_.size();
    }
    [[nodiscard]] bool wide() const { return (rex_ & 8) != 0; }
    [[nodiscard]] static std::uint8_t number_of(unsigned low_bits, bool extended) {
        return dwarf_number[low_bits | (extended ? 8u : 0u)];
    }
    // The register in the lowest three bits of an opcode.
    [[nodiscard]] std::uint8_t register_of(std::uint8_t opcode) const {
        return number_of(opcode & 7u, (rex_ & 1) != 0);
    }

    // Reads the prefixes and the first byte of the opcode.
    std::uint8_t prefixes() {
        for (;;) {
            const std::uint8_t next = byte();
            switch (next) {
                case 0x66: short_ = true; break;
                case 0x67: address32_ = true; break;
                case 0xf2: f2_ = true; break;
                case 0xf0:
                case 0xf3:
                case 0x26:
                case 0x2e:
                case 0x36:
                case 0x3e:
                case 0x64:
                case 0x65: break;
                default:
                    if (next >> 4 != 4) return next;
                    rex_ = next;
                    return byte();
            }
            if (!valid_) return 0;
        }
    }

    Operands operands() {
        const std::uint8_t modrm = byte();
        const unsigned mod = modrm >> 6, low = modrm & 7u;
        Operands found;
        found.group = modrm >> 3 & 7;
        found.reg = number_of(found.group, (rex_ & 4) != 0);
        found.base = number_of(low, (rex_ & 1) != 0);
        found.is_register = mod == 3;
        if (found.is_register) return found;
        bool has_base = true;
        if (low == 4) {
            const std::uint8_t sib = byte();
            const bool has_index = (sib >> 3 & 7) != 4 || (rex_ & 2) != 0;
            has_base = (sib & 7) != 5 || mod != 0;
            found.base = number_of(sib & 7u, (rex_ & 1) != 0);
            found.is_plain = has_base && !has_index && !address32_;
        } else {
            has_base = low != 5 || mod != 0;  // otherwise relative to the next instruction
            found.is_plain = has_base && !address32_;
        }
        found.offset = signed_number(mod == 1 ? 1 : mod == 2 || !has_base ? 4 : 0);
        return found;
    }

    // VEX, EVEX and XOP prefixes: vector instructions, and a few others that do not touch the stack.
    bool is_vector(std::uint8_t opcode) const {
        if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) return true;
        return opcode == 0x8f && at_ < code_.size() && (std::to_integer<unsigned>(code_[at_]) & 0x1f) >= 8;
    }
    CodeEffect vector(std::uint8_t first) {
        unsigned map = 1;
        if (first == 0xc5) {
            skip(1);
        } else {
            map = byte() & (first == 0x62 ? 7u : 0x1fu);
            skip(first == 0x62 ? 2 : 1);
        }
        const std::uint8_t opcode = byte();
        constexpr unsigned first_of_xop = 8;
        const bool half_precision = first == 0x62 && (map == 5 || map == 6);
        if (map == 0 || (map > 3 && map < first_of_xop && !half_precision) || map > first_of_xop + 2) valid_ = false;
        rex_ = 0;
        // vzeroupper and vzeroall have no operands.
        if (!(map == 1 && opcode == 0x77 && first != 0x62)) operands();
        if (map == 3 || map == first_of_xop || (map == 1 && with_imm8_0f.has(opcode))) skip(1);
        if (map == first_of_xop + 2) skip(4);
        return {.kind = Kind::none};
    }

    CodeEffect two_bytes() {
        const std::uint8_t opcode = byte();
        if (opcode == 0x38 || opcode == 0x3a) {
            skip(1);
            operands();
            if (opcode == 0x3a) skip(1);
            return {.kind = Kind::none};
        }
        if (invalid_0f.has(opcode)) valid_ = false;
        if (opcode >> 4 == 8) return {.kind = Kind::branch, .bytes = signed_number(4)};
        Operands on;
        if (!without_modrm_0f.has(opcode)) on = operands();
        if (with_imm8_0f.has(opcode)) skip(1);
        if (opcode == 0x78 && (short_ || f2_)) skip(2);  // SSE4a
        switch (opcode) {
            case 0xa0:  // push fs, gs
            case 0xa8: return {.kind = Kind::push, .bytes = word};
            case 0xa1:
            case 0xa9: return {.kind = Kind::pop, .bytes = word};
            case 0x07:  // sysret, ud2, sysenter, sysexit
            case 0x0b:
            case 0x34:
            case 0x35:
            case 0xb9:
            case 0xff: return {};
            default: break;
        }
        if (opcode >> 3 == 0x19) return overwritten(register_of(opcode));  // bswap
        return writes_register_0f.has(opcode) ? overwritten(on.reg) : CodeEffect{.kind = Kind::none};
    }

    [[nodiscard]] static CodeEffect overwritten(std::uint8_t reg) {
        if (reg == rsp) return {.kind = Kind::compute_sp};
        return {.kind = Kind::forget, .reg = reg};
    }
    // to = from + bytes, 64-bit.
    [[nodiscard]] static CodeEffect moved(std::uint8_t to, std::uint8_t from, std::int64_t bytes) {
        if (to == rsp && from == rsp) return {.kind = Kind::add, .bytes = bytes};
        if (from == rsp) return {.kind = Kind::copy_to, .reg = to, .bytes = bytes};
        if (to == rsp) return {.kind = Kind::copy_from, .reg = from, .bytes = bytes};
        if (to == from) return {.kind = Kind::add_to, .reg = to, .bytes = bytes};
        return overwritten(to);
    }

    // add, or, adc, sbb, and, sub, xor, cmp with a constant.
    [[nodiscard]] CodeEffect constant_arithmetic(const Operands& on, std::int64_t constant) const {
        constexpr std::uint8_t add = 0, subtract = 5, compare = 7;
        if (!on.is_register || on.group == compare) return {.kind = Kind::none};
        if (wide() && on.group == add) return moved(on.base, on.base, constant);
        if (wide() && on.group == subtract) return moved(on.base, on.base, -constant);
        return overwritten(on.base);
    }

    CodeEffect one_byte(std::uint8_t opcode) {
        if (invalid.has(opcode)) valid_ = false;
        const bool arithmetic = opcode < end_of_arithmetic;
        Operands on;
        if (arithmetic ? (opcode & 7) < 4 : with_modrm.has(opcode)) on = operands();
        std::int64_t constant = 0;
        if (arithmetic ? (opcode & 7) == 4 : with_imm8.has(opcode)) constant = signed_number(1);
        if (arithmetic ? (opcode & 7) == 5 : with_imm32.has(opcode))
            constant = signed_number(short_ && !wide() ? 2 : 4);
        if (arithmetic) {
            const bool compares = opcode >> 3 == 7, of_bytes = (opcode & 1) == 0, to_register = (opcode & 2) != 0;
            if (compares || of_bytes || (opcode & 7) > 3 || !(to_register || on.is_register))
                return {.kind = Kind::none};
            return overwritten(to_register ? on.reg : on.base);
        }
        if (opcode >> 3 == 0x0a) return short_ ? CodeEffect{} : pushed(1u << register_of(opcode));
        if (opcode >> 3 == 0x0b) return popped(register_of(opcode));
        if (opcode >> 4 == 7 || opcode >> 2 == 0x38) return {.kind = Kind::branch, .bytes = constant};  // jcc, loop
        if (opcode >> 3 == 0x17) {                                                                      // mov
            skip(wide() ? 8 : short_ ? 2 : 4);
            return overwritten(register_of(opcode));
        }
        if (opcode >> 3 == 0x12 && opcode != 0x90) return overwritten(register_of(opcode));  // xchg with rax
        return by_opcode(opcode, on, constant);
    }

    [[nodiscard]] CodeEffect pushed(std::uint32_t mask) const {
        return short_ ? CodeEffect{} : CodeEffect{.kind = Kind::push, .mask = mask, .bytes = word};
    }
    [[nodiscard]] CodeEffect popped(std::uint8_t reg) const {
        return short_ ? CodeEffect{} : CodeEffect{.kind = Kind::pop, .mask = 1u << reg, .bytes = word};
    }

    CodeEffect by_opcode(std::uint8_t opcode, const Operands& on, std::int64_t constant) {
        switch (opcode) {
            case 0x63:  // movsxd, imul
            case 0x69:
            case 0x6b: return overwritten(on.reg);
            case 0x68:
            case 0x6a:
            case 0x9c:  // pushf
                return pushed(0);
            case 0x9d: return {.kind = Kind::pop, .bytes = word};
            case 0x81:
            case 0x83: return constant_arithmetic(on, constant);
            case 0x87:  // xchg; with memory it is a lock or similar
                if (on.is_register && on.base == rsp) return {};
                return overwritten(on.reg);
            case 0x89: return moved_or_stored(on);
            case 0x8b: return moved_or_loaded(on);
            case 0x8d: return wide() && on.is_plain ? moved(on.reg, on.base, on.offset) : overwritten(on.reg);
            case 0x8f: return on.is_register ? popped(on.base) : CodeEffect{.kind = Kind::pop, .bytes = word};
            case 0xa0:
            case 0xa1:
            case 0xa2:
            case 0xa3: skip(address32_ ? 4 : 8); return {.kind = Kind::none};
            case 0xc2: skip(2); return {};
            case 0xc3: return {.kind = Kind::pop, .mask = 1u << rip, .bytes = word};
            case 0xc7: return on.is_register ? overwritten(on.base) : CodeEffect{.kind = Kind::none};
            case 0xc8: skip(3); return {};
            case 0xc9: return {.kind = Kind::leave, .reg = rbp, .mask = 1u << rbp, .bytes = word};
            case 0xca: skip(2); return {};
            case 0xe8: skip(4); return {.kind = Kind::call};
            case 0xe9: return {.kind = Kind::jump, .bytes = signed_number(4)};
            case 0xeb: return {.kind = Kind::jump, .bytes = constant};
            case 0xf6:  // test with a constant is /0 and /1
                if (on.group < 2) skip(1);
                return {.kind = Kind::none};
            case 0xf7:
                if (on.group < 2) skip(short_ && !wide() ? 2 : 4);
                return on.is_register && (on.group == 2 || on.group == 3) ? overwritten(on.base)
                                                                          : CodeEffect{.kind = Kind::none};
            case 0xff: return by_last_group(on);
            case 0xcb:  // far returns, interrupts, hlt
            case 0xcc:
            case 0xcd:
            case 0xcf:
            case 0xf1:
            case 0xf4: return {};
            default: return {.kind = Kind::none};
        }
    }

    [[nodiscard]] CodeEffect moved_or_stored(const Operands& on) const {
        if (on.is_register) return wide() ? moved(on.base, on.reg, 0) : overwritten(on.base);
        if (!wide() || !on.is_plain) return {.kind = Kind::none};
        return {.kind = Kind::store, .reg = on.reg, .base = on.base, .bytes = on.offset};
    }
    [[nodiscard]] CodeEffect moved_or_loaded(const Operands& on) const {
        if (on.is_register && wide()) return moved(on.reg, on.base, 0);
        if (on.is_register || !wide() || !on.is_plain) return overwritten(on.reg);
        return {.kind = Kind::load, .reg = on.reg, .base = on.base, .bytes = on.offset};
    }
    // inc, dec, call, far call, jmp, far jmp, push.
    [[nodiscard]] CodeEffect by_last_group(const Operands& on) const {
        switch (on.group) {
            case 0:
            case 1: return on.is_register ? overwritten(on.base) : CodeEffect{.kind = Kind::none};
            case 2: return {.kind = Kind::call};
            case 4: return {.kind = Kind::indirect};
            case 6: return pushed(on.is_register ? 1u << on.base : 0);
            default: return {};
        }
    }

    std::span<const std::byte> code_;
    std::size_t at_ = 0;
    bool valid_ = true;
    bool short_ = false;      // 16-bit operands
    bool address32_ = false;  // 32-bit addresses
    bool f2_ = false;
    std::uint8_t rex_ = 0;
};

}  // namespace

std::optional<CodeEffect> x86_64_effect(std::span<const std::byte> code) { return Decoder(code).run(); }

}  // namespace flamewire::unwind
