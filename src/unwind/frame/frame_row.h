// How to unwind a frame at one address: one row of the table that call frame information or ARM's EXIDX describes. This
// is the full form; most rows fit a compact Rule (rule.h). Source: DWARF 5, section 6.4.1; "Exception Handling ABI for
// the Arm Architecture" (EHABI32), section 9.
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
        same,           // unchanged in the caller (the ABIs' default without a rule)
        undefined,      // not recoverable; for the return address: this is the outermost frame
        at_cfa,         // stored at CFA + offset
        cfa_plus,       // is CFA + offset
        in_register,    // is in `reg`
        at_expression,  // stored at the address that the expression computes
        is_expression,  // is the value that the expression computes
    };
    Kind kind = Kind::same;
    std::uint8_t reg = 0;
    std::int64_t offset = 0;
    ExpressionRange expression{};
    bool operator==(const RegisterRule&) const = default;
};

struct FrameRow {
    // ELF virtual addresses for which this row holds, including the address that was looked up.
    std::uint64_t start = 0, end = 0;

    bool cfa_is_expression = false;
    std::uint8_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    ExpressionRange cfa_expression{};

    // By DWARF number. `same` for sp means the CFA, which is the caller's sp by definition. pc's rule is not used: the
    // return address is the value of return_column in the caller.
    std::array<RegisterRule, max_registers> registers{};
    std::uint8_t return_column = 0;
    bool signal_frame = false;       // the caller was interrupted at its pc; it did not make a call
    bool return_signed = false;      // aarch64: the return address has pointer authentication bits
    bool other_stack = false;        // the caller is on another stack, to which the frame pointer leads
    bool skips_caller = false;       // a frame-pointer step leads to the caller's caller; correct from there on
    bool frame_pointer_set = false;  // the frame pointer also leads to the caller's one and to the return address
    std::string expressions;         // bytes of all expressions
};

}  // namespace flamewire::unwind
