// What Capstone says of an Arm instruction in the words of `objdump -d`: `mov` for its disguises, r9 for sb; and the
// atomic instructions of Armv8.1, which Capstone 4 does not know.
#pragma once

#include <capstone/capstone.h>
#include <cstdint>
#include <string>

namespace flamewire::symbol {

std::string aarch64_text(const cs_insn& decoded);
std::string arm_text(const cs_insn& decoded);

// cas, swp, ldadd and the like (DDI 0487, C4.1.94); empty when `word` is none of them.
std::string aarch64_atomic(std::uint32_t word);

}  // namespace flamewire::symbol
