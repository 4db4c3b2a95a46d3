// How to leave a frame, small enough to be cached for every pc: what most rows of unwind tables say.
//
// A compact rule is these equations (w: the word size; preserved: ArchInfo::preserved, by position):
//
//     CFA            = value(cfa_register) + cfa_offset
//     caller's pc    = *(CFA + return_at * w), or the link register's value when return_in_link
//     caller's sp    = CFA
//     caller's p[i]  = *(CFA + saved_at[i] * w)   when bit i of `saved` is set
//                    = not known                  when bit i of `lost` is set
//                    = value(p[i])                otherwise
//     all others     = not known
#pragma once

#include <array>
#include <cstdint>

#include "unwind/arch/arch.h"
#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

struct Rule {
    enum class Kind : std::uint8_t {
        none,           // nothing is known: no table covers the address, or what covers it is damaged
        compact,        // the equations above
        inferred,       // the equations above, from the code itself: right when the return address follows a call
        root,           // the outermost frame
        row,            // more than a compact rule can say: the whole FrameRow
        inferred_row,   // the same, from the code itself
        signal_return,  // the code that a signal handler returns to
    };
    Kind kind = Kind::none;
    // The frame-pointer convention's (ArchInfo::frame_pointer_row); only with `compact`.
    bool frame_pointer_safe : 1 = false;
    bool return_in_link : 1 = false;
    bool other_stack : 1 = false, skips_caller : 1 = false;  // as in FrameRow; only with `compact`
    // A call ends at the return address, when that is even or odd (ARM: in Thumb code). Set by RuleSource::may_return_to.
    bool call_checked : 1 = false, after_even_call : 1 = false, after_odd_call : 1 = false;
    std::uint8_t cfa_register = 0;
    std::int32_t cfa_offset = 0;
    std::int16_t return_at = 0;
    std::uint16_t saved = 0, lost = 0;  // bits by position in ArchInfo::preserved
    std::uint16_t slot = 0;             // with a row: its place in a RowTable
    std::array<std::int16_t, 12> saved_at{};
    // The row holds for [address - before, address + after) of the address that was looked up. 0 after: there is no row.
    std::uint32_t before = 0, after = 0;
    bool operator==(const Rule&) const = default;
};
static_assert(sizeof(Rule) == 48);

// The row as a compact rule, `root` when its return address is undefined, `none` when it says nothing that could be
// used, else `row`.
Rule compile_rule(const FrameRow& row, const ArchInfo& arch);

// The place of preserved[position] is below the stack pointer, where nothing is kept: the register was restored already
// (compilers do not say so in epilogues; code that keeps registers in a red zone is rare, and could not be helped).
inline bool saved_below_sp(const Rule& rule, std::size_t position, const RegisterNames& names) {
    return rule.cfa_register == names.sp &&
           std::int64_t{rule.cfa_offset} + rule.saved_at[position] * names.word_size < 0;
}

// Whether the frame-pointer register holds the caller's value.
bool leaves_frame_pointer(const Rule& rule, const ArchInfo& arch);

}  // namespace flamewire::unwind
