// How to leave a frame at one address: one row of the table that call frame information or ARM's EXIDX describes. The
// full form; most rows fit a compact Rule (rule.h). Source: DWARF 5, section 6.4.1; "Exception Handling ABI for the Arm
// Architecture" (EHABI32), section 9.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// A DWARF expression: a range of FrameRow::expressions.
struct ExpressionRange {
    std::uint32_t begin = 0, size = 0;
    bool operator==(const ExpressionRange&) const = default;
};

struct RegisterRule {
    enum class Kind : std::uint8_t {
        same,           // the caller's value is what the register holds now (also: no rule; the ABIs say so)
        undefined,      // not recoverable; of the return address: this is the outermost frame
        at_cfa,         // stored at CFA + offset
        cfa_plus,       // is CFA + offset
        in_register,    // is in `reg`
        at_expression,  // stored at the address that the expression gives
        is_expression,  // is what the expression gives
    };
    Kind kind = Kind::same;
    std::uint8_t reg = 0;
    std::int64_t offset = 0;
    ExpressionRange expression{};
    bool operator==(const RegisterRule&) const = default;
};

struct FrameRow {
    // ELF virtual addresses for which this row holds; contains the address that was asked for.
    std::uint64_t start = 0, end = 0;

    bool cfa_is_expression = false;
    std::uint8_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    ExpressionRange cfa_expression{};

    // By DWARF number. sp's `same` means CFA (that is what a CFA is), pc's rule is not used: the return address is the
    // value of return_column in the caller.
    std::array<RegisterRule, max_registers> registers{};
    std::uint8_t return_column = 0;
    bool signal_frame = false;   // the caller was interrupted at its pc, it did not call
    bool return_signed = false;  // aarch64: pointer authentication bits are in the return address
    bool other_stack = false;    // the caller is on another stack, to which the frame pointer leads
    bool skips_caller = false;   // a step by the frame pointer comes to the caller's caller, and is right from there on
    bool frame_pointer_set = false;  // the frame pointer leads to the caller's and to the return address, too
    std::string expressions;         // bytes of all expressions
};

}  // namespace flamewire::unwind
