#include "unwind/tables/arm_prologue.h"

#include <array>
#include <bit>
#include <optional>

#include "unwind/code/arm_instruction.h"

namespace flamewire::unwind {
namespace {

using Kind = CodeEffect::Kind;

constexpr std::uint8_t sp = 13, lr = 14, pc = 15;
constexpr std::uint32_t preserved = 0x0ff0 | 1u << lr;  // r4 to r11 and the return address
// Compilers mix a few other instructions with those that save and restore.
constexpr int longest_prologue = 40, longest_epilogue = 12;

// Saved registers and their distances from an address in the frame.
struct Saved {
    std::uint32_t mask = 0;
    std::array<std::int64_t, 16> at{};

    void put(std::uint32_t registers, std::int64_t place) {
        for (std::uint8_t number = 0; number < 16; ++number) {
            if ((registers >> number & 1) == 0) continue;
            mask |= 1u << number;
            at[number] = place;
            place += 4;
        }
    }
    [[nodiscard]] bool has(std::uint8_t number) const { return (mask >> number & 1) != 0; }
};

CodeEffect effect_at(const WordReader& read, std::uint64_t address, bool thumb) {
    const auto word = read(address & ~std::uint64_t{3});
    if (!word) return {};
    if (!thumb) return arm_effect(*word);
    if ((address & 2) == 0) return thumb_effect(*word & 0xffff, *word >> 16);
    const auto next = read((address & ~std::uint64_t{3}) + 4);
    return thumb_effect(*word >> 16, next.value_or(0) & 0xffff);
}

// The row of a frame whose CFA is `base` + `cfa`. `saved` has distances from the CFA.
FrameRow row_of(std::uint8_t base, std::int64_t cfa, const Saved& saved) {
    FrameRow row;
    row.cfa_register = base;
    row.cfa_offset = cfa;
    row.return_column = lr;
    for (std::uint8_t number = 0; number < 15; ++number)
        if (saved.has(number) && (preserved >> number & 1) != 0)
            row.registers[number] = {.kind = RegisterRule::Kind::at_cfa, .offset = saved.at[number]};
    return row;
}

// Follows the instructions from `start`, decoded as ARM or Thumb code.
class Prologue {
public:
    Prologue(const WordReader& read, std::uint64_t start, std::uint64_t address, const FrameRow& body, bool thumb,
             bool with_branches)
        : body_(body), with_branches_(with_branches) {
        std::uint64_t at = start;
        for (int count = 0; count < longest_prologue && !explains_; ++count) {
            if (at == address) inside_ = row_of(sp, depth_, saved_);
            const CodeEffect effect = effect_at(read, at, thumb);
            if (!run(effect)) return;
            at += effect.size;
        }
    }
    // Whether the instructions explain everything in the body's row.
    [[nodiscard]] bool explains() const { return explains_; }
    // The row at the address, if it was reached.
    [[nodiscard]] const std::optional<FrameRow>& inside() const { return inside_; }

private:
    bool run(const CodeEffect& effect) {
        switch (effect.kind) {
            case Kind::none:
            case Kind::add_to: return true;
            case Kind::push:
                depth_ += effect.bytes;
                saved_.put(effect.mask, -depth_);
                break;
            case Kind::add:
                if (effect.bytes > 0) return false;
                depth_ -= effect.bytes;
                break;
            case Kind::copy_to:
                if (effect.reg == body_.cfa_register) explains_ = same_as_body(depth_ - effect.bytes);
                return true;
            case Kind::jump:
            case Kind::branch:
            case Kind::returns: return depth_ == 0 && with_branches_;  // early exits come before the frame is set up
            default: return false;
        }
        if (body_.cfa_register == sp) explains_ = same_as_body(depth_);
        return true;
    }
    [[nodiscard]] bool same_as_body(std::int64_t cfa) const {
        if (cfa != body_.cfa_offset) return false;
        for (std::uint8_t number = 0; number < 15; ++number) {
            const RegisterRule& rule = body_.registers[number];
            if ((preserved >> number & 1) == 0 || rule.kind == RegisterRule::Kind::same) continue;
            if (rule.kind != RegisterRule::Kind::at_cfa || !saved_.has(number) || saved_.at[number] != rule.offset)
                return false;
        }
        return true;
    }

    const FrameRow& body_;
    bool with_branches_;
    std::int64_t depth_ = 0;  // distance of sp below the CFA
    Saved saved_;
    bool explains_ = false;
    std::optional<FrameRow> inside_;
};

// What remains to be popped, if only pops are between the address and the function's end.
class Epilogue {
public:
    std::optional<FrameRow> row(const WordReader& read, std::uint64_t function, std::uint64_t address,
                                const FrameRow& body, bool thumb) {
        std::uint64_t at = address;
        for (int count = 0; count < longest_epilogue && !returned_; ++count) {
            const CodeEffect effect = effect_at(read, at, thumb);
            const std::uint64_t target = at + static_cast<std::uint64_t>(effect.bytes);
            const bool tail_call = effect.kind == Kind::jump && (target < function || target >= body.end);
            if (tail_call)
                returned_ = true;
            else if (!run(effect))
                return {};
            at += effect.size;
        }
        if (!returned_) return {};
        if (saved_.has(pc)) {  // holds the pushed lr
            saved_.mask |= 1u << lr;
            saved_.at[lr] = saved_.at[pc];
        }
        for (std::int64_t& place : saved_.at) place -= offset_;
        return row_of(base_, offset_, saved_);
    }

private:
    bool run(const CodeEffect& effect) {
        switch (effect.kind) {
            case Kind::none: return true;
            case Kind::add: offset_ += effect.bytes; return effect.bytes > 0;
            case Kind::pop:
                if ((effect.mask >> sp & 1) != 0) return false;
                saved_.put(effect.mask, offset_);
                offset_ += effect.bytes;
                returned_ = saved_.has(pc);
                return true;
            case Kind::add_to: added_[effect.reg] += effect.bytes; return true;
            case Kind::copy_from:
                if (saved_.mask != 0) return false;
                base_ = effect.reg;
                offset_ = added_[effect.reg] + effect.bytes;
                return true;
            case Kind::returns: returned_ = true; return true;
            default: return false;
        }
    }

    // sp = the value of `base_` at the address, plus `offset_`.
    std::uint8_t base_ = sp;
    std::int64_t offset_ = 0;
    std::array<std::int64_t, 16> added_{};
    Saved saved_;
    bool returned_ = false;
};

// The linker merges neighboring entries with the same contents, so the function can start later than its entry. Tries
// the starts up to 32 bytes before the address.
std::optional<FrameRow> in_joined_prologue(const WordReader& read, std::uint64_t function, std::uint64_t address,
                                           const FrameRow& body, bool thumb) {
    constexpr std::uint64_t furthest = 32;
    for (std::uint64_t back = 0; back <= furthest && address - back > function; back += thumb ? 2 : 4) {
        const Prologue prologue(read, address - back, address, body, thumb, false);
        if (prologue.explains() && prologue.inside()) return prologue.inside();
    }
    return {};
}

bool saves_nothing(const FrameRow& row) { return row.cfa_register == sp && row.cfa_offset == 0; }

}  // namespace

void refine_at_edges(const WordReader& read, std::uint64_t function, std::uint64_t address, FrameRow& row) {
    if (row.cfa_is_expression || row.signal_frame || row.return_column != lr || saves_nothing(row)) return;
    for (const bool thumb : {true, false}) {
        if (!thumb && (function & 3) != 0) continue;
        const Prologue prologue(read, function, address, row, thumb, true);
        if (!prologue.explains()) continue;
        std::optional<FrameRow> found = prologue.inside();
        if (!found) found = Epilogue().row(read, function, address, row, thumb);
        if (!found) found = in_joined_prologue(read, function, address, row, thumb);
        if (!found) return;
        row = *found;
        row.start = address;
        row.end = address + 1;
        return;
    }
}

}  // namespace flamewire::unwind
