// Trampolines that programs copy into anonymous memory, recognized by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/arch.h"
#include "unwind/rule.h"

namespace flamewire::unwind {

// As many bytes in front of an address and from it on are enough to recognize each known trampoline.
inline constexpr std::size_t trampoline_before = 24, trampoline_after = 32;

// The compact rule of the frame at code[at]; nothing: that is no instruction of a known trampoline, or a return address
// that does not follow its call.
std::optional<Rule> trampoline_rule(std::span<const std::byte> code, std::size_t at, bool return_address,
                                    const ArchInfo& arch);

}  // namespace flamewire::unwind
