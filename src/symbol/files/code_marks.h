// Where code and data begin in an Arm program, by its mapping symbols ($a, $t, $x, $d).
#pragma once

#include <libelf.h>

#include <cstdint>
#include <vector>

#include "symbol/types/code_bytes.h"

namespace flamewire::symbol {

// By ascending address. A 32-bit Arm file without mapping symbols is marked by its functions: the low bit of a Thumb
// function's address is set.
std::vector<CodeMark> code_marks_of(Elf* elf, std::uint16_t machine);

}  // namespace flamewire::symbol
