// 32-bit ARM code without unwind tables (C code without -funwind-tables; four fifths of Debian's libc): its frames are
// found by following the code to where it returns. On the way there it takes back what its prologue saved, wherever in
// the function it is now, and compilers keep the stack balanced on every way. Source of the encodings: arm_instruction.h.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/arch.h"
#include "unwind/frame_row.h"

namespace flamewire::unwind {

// The row at `pc`, the instruction that would run next; `return_address`: a call ends there, so lr and the registers
// that a call may change are not what they were. Nothing where no way leads to a return within a few hundred
// instructions, or only ways that leave the stack pointer or the return address unknown. The code is read in blocks.
//
// A guess, if a good one: a call that never returns may be followed by other code. Who uses the row checks that the
// return address follows a call.
std::optional<FrameRow> row_by_arm_code(const CodeReader& read, std::uint64_t pc, bool return_address);

}  // namespace flamewire::unwind
