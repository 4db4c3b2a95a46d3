// ARM's exception index as unwind rows. Source: "Exception Handling ABI for the Arm Architecture" (EHABI32), sections
// 6 (index table), 7 and 10 (personality routines and their instructions). Pure: bytes come through a reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "unwind/frame_row.h"

namespace flamewire::unwind {

// Little- or big-endian word at an ELF virtual address; nothing when it is not in the file.
using WordReader = std::function<std::optional<std::uint32_t>(std::uint64_t address)>;

// The row for `address` by the index table of `size` bytes at `table`. A function that cannot be unwound
// (EXIDX_CANTUNWIND) gives a row whose return address is undefined. Nothing: not covered, or damaged, or a personality
// routine whose data nobody can read.
std::optional<FrameRow> exidx_row(const WordReader& read, std::uint64_t table, std::uint64_t size, std::uint64_t address);

}  // namespace flamewire::unwind
