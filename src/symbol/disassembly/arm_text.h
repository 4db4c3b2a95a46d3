// Converts Capstone's text of an Arm instruction to the spelling of `objdump -d`: `mov` for its aliases, r9 for sb.
// Also the atomic instructions of Armv8.1, which Capstone 4 does not support.
#pragma once

#include <capstone/capstone.h>
#include <cstdint>
#include <string>

namespace flamewire::symbol {

std::string aarch64_text(const cs_insn& decoded);
std::string arm_text(const cs_insn& decoded);

// cas, swp, ldadd and similar (DDI 0487, C4.1.94); empty if `word` is none of them.
std::string aarch64_atomic(std::uint32_t word);

}  // namespace flamewire::symbol
