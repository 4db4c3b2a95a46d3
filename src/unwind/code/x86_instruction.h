// x86-64 instructions: how long they are, and what they do to the stack pointer and to saved registers. Sources: Intel 64
// and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A; AMD64 Architecture
// Programmer's Manual, volume 3 (3DNow!, SSE4a) and volume 6 (XOP).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "unwind/code/code_effect.h"

namespace flamewire::unwind {

inline constexpr std::size_t longest_x86_instruction = 15;

// The first instruction of `code`. Nothing: it is not there as a whole, or 64-bit mode has no such instruction.
// Registers have DWARF's numbers. What instructions of other kinds write into general registers is not followed, but
// where compilers and assemblers move addresses about: mov, lea, add, sub.
std::optional<CodeEffect> x86_64_effect(std::span<const std::byte> code);

}  // namespace flamewire::unwind
