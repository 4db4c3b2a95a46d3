// Converts Capstone's text of an x86-64 instruction to the spelling of `objdump -d`: no suffix if a register implies
// the size, hexadecimal numbers, no spaces between operands.
#pragma once

#include <capstone/capstone.h>
#include <string>

namespace flamewire::symbol {

// `decoded` must come from an engine with AT&T syntax and details.
std::string x86_text(csh engine, const cs_insn& decoded);

}  // namespace flamewire::symbol
