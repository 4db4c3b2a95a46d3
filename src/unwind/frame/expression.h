// DWARF expressions as call frame information uses them. Pure, bounded: 64 stack entries and an allowance of operations. Source:
// DWARF 5, section 2.5; operations that make no sense in a frame (objects, TLS, calls) are refused.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "unwind/frame/memory_reader.h"
#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// Operations that one expression may take. Compilers write up to a dozen; a walk shares an allowance among its frames.
inline constexpr std::uint32_t most_operations = 1000;

// The value on top of the stack when the expression ends. `initial`: pushed first (the CFA, for register rules).
// `bias` is added to DW_OP_addr. `allowance`, if not null, is how many operations may be taken at all; it is lowered by
// those that were. Nothing: damaged, too long, an unknown register or operation, unreadable memory.
std::optional<std::uint64_t> evaluate(Bytes expression, const Registers& registers, const MemoryReader& read,
                                      std::optional<std::uint64_t> initial, std::uint64_t bias, bool big_endian,
                                      std::uint32_t* allowance = nullptr);

}  // namespace flamewire::unwind
