// .ARM.exidx has one description of a function, which holds in its body. In the prologue and the epilogue the code tells
// what has been pushed so far, or is still there to be popped. Source: Arm Architecture Reference Manual (ARMv7-A),
// chapters A5, A6 and A8: the encodings that change sp.
#pragma once

#include <cstdint>

#include "unwind/frame/frame_row.h"
#include "unwind/tables/exidx.h"

namespace flamewire::unwind {

// `row` describes the body of the function that starts at `function`; `address` is the instruction that would run next.
// If that is in the prologue or the epilogue, `row` becomes what holds there. Only code that explains the row is trusted,
// and known to be ARM or Thumb code: what the function pushes first must be just what the row says. Otherwise, and in
// functions that save nothing, the row stays as it is.
void refine_at_edges(const WordReader& read, std::uint64_t function, std::uint64_t address, FrameRow& row);

}  // namespace flamewire::unwind
