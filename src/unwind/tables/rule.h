// How to unwind a frame, in a form small enough to be cached for every pc. Covers most rows of unwind tables.
//
// A compact rule is these equations (w: the word size; preserved: ArchInfo::preserved, by position):
//
//     CFA            = value(cfa_register) + cfa_offset
//     caller's pc    = *(CFA + return_at * w), or the link register's value if return_in_link
//     caller's sp    = CFA
//     caller's p[i]  = *(CFA + saved_at[i] * w)   if bit i of `saved` is set
//                    = unknown                    if bit i of `lost` is set
//                    = value(p[i])                otherwise
//     all others     = unknown
#pragma once

#include <array>
#include <cstdint>

#include "unwind/arch/arch.h"
#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

struct Rule {
    enum class Kind : std::uint8_t {
        none,           // unknown: no table covers the address, or its entry is damaged
        compact,        // the equations above
        inferred,       // the equations above, inferred from the code: correct if the return address follows a call
        root,           // the outermost frame
        row,            // more than a compact rule can express: the whole FrameRow
        inferred_row,   // the same, inferred from the code
        signal_return,  // the code that a signal handler returns to
    };
    Kind kind = Kind::none;
    // Follows the frame-pointer convention (ArchInfo::frame_pointer_row). Only for `compact`.
    bool frame_pointer_safe : 1 = false;
    bool return_in_link : 1 = false;
    bool other_stack : 1 = false, skips_caller : 1 = false;  // as in FrameRow; only for `compact`
    // A call ends at the return address if that is even or odd (ARM: in Thumb code). Set by RuleSource::may_return_to.
    bool call_checked : 1 = false, after_even_call : 1 = false, after_odd_call : 1 = false;
    std::uint8_t cfa_register = 0;
    std::int32_t cfa_offset = 0;
    std::int16_t return_at = 0;
    std::uint16_t saved = 0, lost = 0;  // bits by position in ArchInfo::preserved
    std::uint16_t slot = 0;             // with a row: its slot in a RowTable
    std::array<std::int16_t, 12> saved_at{};
    // The row holds for [address - before, address + after), with the address that was looked up. after = 0: no row.
    std::uint32_t before = 0, after = 0;
    bool operator==(const Rule&) const = default;
};
static_assert(sizeof(Rule) == 48);

// Converts a row to a compact rule, to `root` if its return address is undefined, to `none` if it has no usable
// information, otherwise to `row`.
Rule compile_rule(const FrameRow& row, const ArchInfo& arch);

// Whether preserved[position] is saved below the stack pointer, where nothing is preserved: it was already restored.
// (Compilers omit this in epilogues. Code that keeps registers in a red zone is rare and cannot be supported.)
inline bool saved_below_sp(const Rule& rule, std::size_t position, const RegisterNames& names) {
    return rule.cfa_register == names.sp &&
           std::int64_t{rule.cfa_offset} + rule.saved_at[position] * names.word_size < 0;
}

// Whether the frame-pointer register holds the caller's value.
bool leaves_frame_pointer(const Rule& rule, const ArchInfo& arch);

}  // namespace flamewire::unwind
