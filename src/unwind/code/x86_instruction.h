// Decodes the length of x86-64 instructions and their effect on the stack pointer and on saved registers. Sources:
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A; AMD64 Architecture
// Programmer's Manual, volume 3 (3DNow!, SSE4a) and volume 6 (XOP).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "unwind/code/code_effect.h"

namespace flamewire::unwind {

inline constexpr std::size_t longest_x86_instruction = 15;

// Decodes the first instruction of `code`. nullopt if it is incomplete or invalid in 64-bit mode. Registers have DWARF
// numbers. Writes to general registers are tracked only for the instructions that compilers and assemblers use to
// compute addresses: mov, lea, add, sub.
std::optional<CodeEffect> x86_64_effect(std::span<const std::byte> code);

}  // namespace flamewire::unwind
