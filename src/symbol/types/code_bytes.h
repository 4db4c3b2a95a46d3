// Machine code as bytes, with what it takes to decode them.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

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

}  // namespace flamewire::symbol
