// Converts ARM's exception index to unwind rows. Source: "Exception Handling ABI for the Arm Architecture" (EHABI32),
// sections 6 (index table), 7 and 10 (personality routines and their instructions). Pure: reads bytes through a reader.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "unwind/frame/frame_row.h"

namespace flamewire::unwind {

// The word at an ELF virtual address, in the file's byte order. nullopt if it is not in the file.
using WordReader = std::function<std::optional<std::uint32_t>(std::uint64_t address)>;

// The row for `address` from the index table of `size` bytes at `table`. nullopt if the address is not covered, the
// table is damaged or has unknown instructions, or the function cannot be unwound (EXIDX_CANTUNWIND, "refuse to
// unwind"). The latter means that no exception passes it, not that it has no caller: the linker emits it for all code
// compiled without tables, which is four fifths of Debian's libc for armhf.
//
// The table has one description per function, which holds in its body. At the first instruction nothing has been pushed
// yet: if `address` is a function's start (never a return address - 1), the row is "CFA = sp, return through lr", and
// the description's row starts after it. At other even addresses (interrupted instructions; return addresses - 1 are
// odd) the code shows whether they are in the prologue or the epilogue (arm_prologue.h).
//
// Where EHABI restores registers in ways that DWARF cannot express, the row encodes it as follows: a restored pc takes
// precedence over lr (return_column is 15); a restored sp has its own rule; and if all of r0 to r15 are restored, as in
// a return-from-signal trampoline, the row is a signal frame.
std::optional<FrameRow> exidx_row(const WordReader& read, std::uint64_t table, std::uint64_t size,
                                  std::uint64_t address);

}  // namespace flamewire::unwind
