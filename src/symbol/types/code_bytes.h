// Machine code as bytes, with what is necessary to decode it.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace flamewire::symbol {

// The kind of bytes. 32-bit Arm has two instruction sets, and any Arm code may contain data.
enum class CodeKind : std::uint8_t { code, thumb, data };

// Applies from `address` to the next mark (AAELF32 4.5.5, AAELF64 4.5.4: $a and $x, $t, $d).
struct CodeMark {
    std::uint64_t address = 0;
    CodeKind kind = CodeKind::code;
};

struct CodeBytes {
    Bytes bytes;
    std::uint64_t address = 0;         // of the first byte, which starts an instruction
    std::uint16_t machine = 0;         // EM_…
    bool big_endian = false;           // of data; Arm programs have little-endian instructions (BE8)
    CodeKind begins = CodeKind::code;  // before the first mark
    std::span<const CodeMark> marks;   // by ascending address
};

}  // namespace flamewire::symbol
