// What ARM and Thumb instructions do to the stack pointer, and where they go: those that compilers use. Source:
// Arm Architecture Reference Manual (ARMv7-A), chapters A5, A6 and A8.
#pragma once

#include <cstdint>

#include "unwind/code/code_effect.h"

namespace flamewire::unwind {

CodeEffect arm_effect(std::uint32_t word);
// By its halfwords; the second is of the next instruction when the first is a whole one.
CodeEffect thumb_effect(std::uint32_t first, std::uint32_t second);

}  // namespace flamewire::unwind
