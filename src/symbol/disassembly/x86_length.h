// Finds the end of an x86-64 instruction from its prefixes, opcode map and ModRM (Intel SDM 2, chapter 2 and appendix
// A). For instructions that are newer than the disassembler library.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace flamewire::symbol {

// Length in bytes of the first instruction; 0 if it is truncated, too long (over 15), or not an opcode of 64-bit code.
std::size_t x86_length(Bytes code);

}  // namespace flamewire::symbol
