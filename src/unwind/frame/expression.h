// Evaluates DWARF expressions in call frame information. Pure. Bounded by 64 stack entries and an allowance of
// operations. Source: DWARF 5, section 2.5. Operations that do not apply to frames (objects, TLS, calls) are refused.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "unwind/frame/memory_reader.h"
#include "unwind/frame/registers.h"

namespace flamewire::unwind {

// Limit of operations for one expression. Compilers emit up to a dozen. The frames of a walk share an allowance.
inline constexpr std::uint32_t most_operations = 1000;

// Returns the top of the stack at the end of the expression. `initial` is pushed first (the CFA, for register rules).
// `bias` is added to DW_OP_addr. `allowance`, if not null, limits the operations and is reduced by those executed.
// nullopt: damaged, too long, an unknown register or operation, or unreadable memory.
std::optional<std::uint64_t> evaluate(Bytes expression, const Registers& registers, const MemoryReader& read,
                                      std::optional<std::uint64_t> initial, std::uint64_t bias, bool big_endian,
                                      std::uint32_t* allowance = nullptr);

}  // namespace flamewire::unwind
