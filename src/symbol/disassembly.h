// Machine code as instructions, in the spelling of `objdump -d` (AT&T for x86-64). Pure: bytes in, values out. Capstone
// decodes; what it does not know of x86-64 still has its length (x86_length.h), so that what follows is not guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::symbol {

// What bytes are: of 32-bit Arm two instruction sets, and data among the code of any Arm.
enum class CodeKind : std::uint8_t { code, thumb, data };

// From `address` on, up to the next mark (AAELF32 4.5.5, AAELF64 4.5.4: $a and $x, $t, $d).
struct CodeMark {
    std::uint64_t address = 0;
    CodeKind kind = CodeKind::code;
};

struct CodeBytes {
    Bytes bytes;
    std::uint64_t address = 0;         // of the first byte, which begins an instruction
    std::uint16_t machine = 0;         // EM_…
    bool big_endian = false;           // of data; instructions of Arm are little-endian in programs (BE8)
    CodeKind begins = CodeKind::code;  // before the first mark
    std::span<const CodeMark> marks;   // by ascending address
};

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
