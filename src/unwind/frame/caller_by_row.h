// Computes the caller's registers from a full row. The slow path, for rows that no compact rule can express.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/frame/expression.h"
#include "unwind/frame/frame_row.h"
#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// The caller's registers that the row defines or leaves unchanged; pc is the return address. nullopt if the return
// address is undefined, a needed register is unknown, or a required read failed. If the place of a saved register
// cannot be read, the register is unknown in the caller. For `bias` and `allowance` see evaluate().
std::optional<Registers> caller_by_row(const FrameRow& row, const Registers& registers, const MemoryReader& read,
                                       std::uint64_t bias, bool big_endian, std::uint32_t& allowance);

}  // namespace flamewire::unwind
