// Finds frames in 32-bit ARM code without unwind tables (C code without -funwind-tables; four fifths of Debian's libc)
// by following the code (follow_code.h). Source of the encodings: arm_instruction.h.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/frame/frame_row.h"
#include "unwind/frame/memory_reader.h"

namespace flamewire::unwind {

// row_by_following() on the code that `read` reads, in blocks. The bit patterns decide between ARM and Thumb code.
std::optional<FrameRow> row_by_arm_code(const CodeReader& read, std::uint64_t pc, bool return_address);

}  // namespace flamewire::unwind
