// What a whole row says of the caller: the long way, for rows that no compact rule can express.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/frame/expression.h"
#include "unwind/frame/frame_row.h"
#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// The caller's registers, all that the row says or leaves alone; pc is the return address. Nothing: the row's return
// address is undefined, or a register that it needs is not known, or `read` failed where it must not. A register whose
// own place cannot be read is not known in the caller. `bias` and `allowance` as in evaluate().
std::optional<Registers> caller_by_row(const FrameRow& row, const Registers& registers, const MemoryReader& read,
                                       std::uint64_t bias, bool big_endian, std::uint32_t& allowance);

}  // namespace flamewire::unwind
