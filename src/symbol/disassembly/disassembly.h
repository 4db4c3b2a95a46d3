// Machine code as instructions, in the spelling of `objdump -d` (AT&T for x86-64). Pure: bytes in, values out. Capstone
// decodes; what it does not know of x86-64 still has its length (x86_length.h), so that what follows is not guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbol/types/code_bytes.h"

namespace flamewire::symbol {

enum class Flow : std::uint8_t { next, jump, branch, call, leave };  // branch: a conditional jump; leave: a return

struct Instruction {
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    Flow flow = Flow::next;
    bool known = true;  // false: data, or bytes that are no instruction; then the text is a directive (.word, .byte …)
    std::optional<std::uint64_t> target;     // of a direct jump or call; of Thumb code without the low bit
    std::optional<std::uint64_t> reference;  // what an operand relative to the instruction pointer means
    std::string text;                        // mnemonic, a space, operands
};

// Whether disassemble() knows the machine: x86-64, AArch64, 32-bit Arm.
[[nodiscard]] bool can_disassemble(std::uint16_t machine);

// Every byte is in exactly one instruction. Ends at the first instruction boundary at or behind `most` instructions.
// invalid: a machine that it does not know.
Result<std::vector<Instruction>> disassemble(const CodeBytes& code, std::size_t most);

}  // namespace flamewire::symbol
