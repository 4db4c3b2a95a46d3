// Pointers as .eh_frame and .eh_frame_hdr store them. Source: Linux Standard Base 5.0 Core, section 10.5.1 (DWARF
// exception header encoding).
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace flamewire::unwind {

inline constexpr std::uint8_t pointer_absolute = 0x00;  // DW_EH_PE_absptr
inline constexpr std::uint8_t pointer_omitted = 0xff;   // DW_EH_PE_omit

// What the relative encodings are relative to; nothing: unknown, and a pointer that needs it is refused.
struct PointerBases {
    std::optional<std::uint64_t> text{}, data{}, function{};
};

// The pointer at the cursor, whose next byte has the virtual address `here`. Nothing: the bytes end, an encoding nobody
// knows, an unknown base, or an indirect pointer (its target is relocated when the program starts, the file does not
// have it); the cursor stands behind the pointer then too, where its size is known.
std::optional<std::uint64_t> read_encoded_pointer(ByteReader& cursor, std::uint8_t encoding, std::uint64_t here,
                                                  const PointerBases& bases, std::uint8_t address_size);

inline std::uint64_t truncate_address(std::uint64_t address, std::uint8_t address_size) {
    return address_size >= 8 ? address : address & ((std::uint64_t{1} << (8 * address_size)) - 1);
}

}  // namespace flamewire::unwind
