// Refines .ARM.exidx rows in prologues and epilogues. The table has one description per function, which holds in its
// body. In the prologue and the epilogue, the code shows what has been pushed so far or must still be popped. Source:
// Arm Architecture Reference Manual (ARMv7-A), chapters A5, A6 and A8: the encodings that change sp.
#pragma once

#include <cstdint>

#include "unwind/frame/frame_row.h"
#include "unwind/tables/exidx.h"

namespace flamewire::unwind {

// `row` describes the body of the function that starts at `function`; `address` is the instruction that would run next.
// If that is in the prologue or the epilogue, `row` is changed to what holds there. Only done if the pushes at the
// start, decoded as ARM or Thumb code, exactly explain the row. Otherwise, or if nothing is saved, `row` is unchanged.
void refine_at_edges(const WordReader& read, std::uint64_t function, std::uint64_t address, FrameRow& row);

}  // namespace flamewire::unwind
