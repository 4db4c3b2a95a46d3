// Finds the frame of a function that has no unwind table by following its code to where it returns. On the way, the code
// restores what its prologue saved, and compilers keep the stack balanced on every way, so any instruction will do as a
// start. Values are symbolic: a register at the start plus a constant, or a word of the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/code/code_effect.h"
#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

// Properties of an architecture. Sets of registers are bits by DWARF number.
struct CodeConvention {
    std::uint8_t sp, pc;
    std::uint8_t link;           // no_register: a call pushes the return address
    std::uint8_t return_column;  // where a row has the return address
    std::uint8_t word_size;
    std::uint8_t alignment;            // of instructions
    std::uint32_t preserved;           // registers that a function gives back to its caller as they were
    std::uint32_t lost_by_call;        // registers that a call changes
    std::uint32_t known_when_stopped;  // registers with a value where a thread was interrupted, beside pc
    std::uint32_t frame_pointers;      // registers that compilers use as such
    int most_instructions;             // on all ways together
};

// The instructions of one module.
class CodeView {
public:
    virtual ~CodeView() = default;
    // Nothing: there is no code at `address`, or none that is known.
    [[nodiscard]] virtual std::optional<CodeEffect> effect_at(std::uint64_t address) const = 0;
};

// The row at `address`, the instruction that would run next; `return_address`: a call ends there, so the registers that
// a call may change are not what they were. Nothing where no way leads to a return within most_instructions, or only
// ways that leave the stack pointer or the return address unknown.
//
// The row is a guess: a call that never returns may be followed by other code. The caller must check that the return
// address follows a call.
std::optional<FrameRow> row_by_following(const CodeView& code, const CodeConvention& convention, std::uint64_t address,
                                         bool return_address);

}  // namespace flamewire::unwind
