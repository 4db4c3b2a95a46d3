// Where code and data begin in an Arm program, from its mapping symbols ($a, $t, $x, $d).
#pragma once

#include <libelf.h>

#include <cstdint>
#include <vector>

#include "symbol/types/code_bytes.h"

namespace flamewire::symbol {

// By ascending address. If a 32-bit Arm file has no mapping symbols, its functions provide the marks: a Thumb
// function's address has the low bit set.
std::vector<CodeMark> code_marks_of(Elf* elf, std::uint16_t machine);

}  // namespace flamewire::symbol
