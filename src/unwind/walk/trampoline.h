// Trampolines that programs copy into anonymous memory, recognized by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {

// At least ArchInfo::trampoline_before + trampoline_after of every architecture.
inline constexpr std::size_t max_trampoline_window = 48;

// The compact rule for the frame at code[at]. nullopt if it is not in a known trampoline, or is a return address that
// does not follow the trampoline's call.
std::optional<Rule> trampoline_rule(std::span<const std::byte> code, std::size_t at, bool return_address,
                                    const ArchInfo& arch);

}  // namespace flamewire::unwind
