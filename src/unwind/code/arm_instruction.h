// Decodes the effect of ARM and Thumb instructions on the stack pointer and on control flow. Covers the instructions
// that compilers emit. Source: Arm Architecture Reference Manual (ARMv7-A), chapters A5, A6 and A8.
#pragma once

#include <cstdint>

#include "unwind/code/code_effect.h"

namespace flamewire::unwind {

CodeEffect arm_effect(std::uint32_t word);
// Takes two halfwords. If the first is a 16-bit instruction, the second belongs to the next one.
CodeEffect thumb_effect(std::uint32_t first, std::uint32_t second);

}  // namespace flamewire::unwind
