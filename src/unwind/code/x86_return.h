// Finds frames in x86-64 code without unwind tables by following the code (follow_code.h). Such code is usually
// hand-written assembly (video codecs, big numbers, JPEG). Source of the encodings: x86_instruction.h.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/frame/frame_row.h"
#include "unwind/frame/memory_reader.h"

namespace flamewire::unwind {

// row_by_following() on the code that `read` reads, in blocks.
std::optional<FrameRow> row_by_x86_64_code(const CodeReader& read, std::uint64_t pc, bool return_address);

// Whether a call instruction ends at `address`.
bool follows_x86_64_call(std::uint64_t address, const MemoryReader& read);

}  // namespace flamewire::unwind
