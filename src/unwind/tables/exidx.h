// ARM's exception index as unwind rows. Source: "Exception Handling ABI for the Arm Architecture" (EHABI32), sections
// 6 (index table), 7 and 10 (personality routines and their instructions). Pure: bytes come through a reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

// Little- or big-endian word at an ELF virtual address; nothing when it is not in the file.
using WordReader = std::function<std::optional<std::uint32_t>(std::uint64_t address)>;

// The row for `address` by the index table of `size` bytes at `table`. Nothing: not covered, damaged, or instructions
// that nobody knows; or a function that cannot be unwound (EXIDX_CANTUNWIND, "refuse to unwind"). That says that no
// exception passes it, not that nobody called it: the linker puts it over all code that was compiled without tables, and
// four fifths of Debian's libc for armhf are such code.
//
// The table has one description of a function, which holds in its body. At the very first instruction nothing has been
// pushed: an `address` that is a function's start (which no return address - 1 ever is) gives the row "CFA = sp, return
// through lr", and the description's row starts behind it. At other even addresses (instructions that were interrupted;
// return addresses - 1 are odd) the code tells whether they are in the prologue or the epilogue (arm_prologue.h).
//
// Registers are rules of the row even where EHABI restores them in ways that DWARF has no word for: a restored pc wins
// over lr (return_column is 15 then); a restored sp has its own rule, and where all of r0 to r15 are restored, as in a
// return-from-signal trampoline, it is a signal frame.
std::optional<FrameRow> exidx_row(const WordReader& read, std::uint64_t table, std::uint64_t size,
                                  std::uint64_t address);

}  // namespace flamewire::unwind
