// Decodes machine code to instructions, in the spelling of `objdump -d` (AT&T for x86-64). Pure: bytes in, values out.
// Capstone decodes. x86_length.h measures x86-64 instructions that Capstone does not support, so that decoding
// continues at the right byte.
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
    bool known = true;                    // false: data or invalid bytes; the text is then a directive (.word, .byte …)
    std::optional<std::uint64_t> target;  // of a direct jump or call; for Thumb code without the low bit
    std::optional<std::uint64_t> reference;  // the address of an operand relative to the instruction pointer
    std::string text;                        // mnemonic, a space, operands
};

// Whether disassemble() supports the machine: x86-64, AArch64, 32-bit Arm.
[[nodiscard]] bool can_disassemble(std::uint16_t machine);

// Every byte is in exactly one instruction. Stops at the first instruction boundary at or after `most` instructions.
// invalid: the machine is not supported.
Result<std::vector<Instruction>> disassemble(const CodeBytes& code, std::size_t most);

}  // namespace flamewire::symbol
