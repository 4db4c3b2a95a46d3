// What Capstone says of an x86-64 instruction in the words of `objdump -d`: no suffix where a register tells the size,
// hexadecimal numbers, no spaces between operands.
#pragma once

#include <capstone/capstone.h>
#include <string>

namespace flamewire::symbol {

// `decoded` is of an engine with AT&T syntax and details.
std::string x86_text(csh engine, const cs_insn& decoded);

}  // namespace flamewire::symbol
