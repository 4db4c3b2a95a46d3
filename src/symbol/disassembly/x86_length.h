// Where an x86-64 instruction ends, by its prefixes, opcode map and ModRM alone (Intel SDM 2, chapter 2 and appendix A).
// For instructions that the disassembler library is too old for.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace flamewire::symbol {

// Bytes of the instruction at the front; 0 when it is cut, too long (over 15), or no opcode of 64-bit code.
std::size_t x86_length(Bytes code);

}  // namespace flamewire::symbol
