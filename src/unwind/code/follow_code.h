// Finds the frame of a function without an unwind table by following its code to a return. On the way, the code
// restores what its prologue saved. Compilers keep the stack balanced on every path, so this works from any
// instruction. Values are symbolic: an initial register value plus a constant, or a word of the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/code/code_effect.h"
#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

// Properties of an architecture. Register sets are bit masks by DWARF number.
struct CodeConvention {
    std::uint8_t sp, pc;
    std::uint8_t link;           // no_register: calls push the return address
    std::uint8_t return_column;  // column of the return address in a row
    std::uint8_t word_size;
    std::uint8_t alignment;            // of instructions
    std::uint32_t preserved;           // callee-saved registers
    std::uint32_t lost_by_call;        // caller-saved registers
    std::uint32_t known_when_stopped;  // registers besides pc that are known where a thread was interrupted
    std::uint32_t frame_pointers;      // registers that compilers use as frame pointers
    int most_instructions;             // limit for all paths together
};

// The instructions of one module.
class CodeView {
public:
    virtual ~CodeView() = default;
    // nullopt if `address` has no code, or no known instruction.
    [[nodiscard]] virtual std::optional<CodeEffect> effect_at(std::uint64_t address) const = 0;
};

// The row at `address`, the instruction that would run next. If `return_address`, a call ends there, so registers that
// a call may change are unknown. nullopt if no path reaches a return within most_instructions, or all of them leave the
// stack pointer or the return address unknown.
//
// The row is a guess: other code may follow a call that never returns. The caller must check that the return address
// follows a call.
std::optional<FrameRow> row_by_following(const CodeView& code, const CodeConvention& convention, std::uint64_t address,
                                         bool return_address);

}  // namespace flamewire::unwind
