// Encoded pointers of .eh_frame and .eh_frame_hdr. Source: Linux Standard Base 5.0 Core, section 10.5.1 (DWARF
// exception header encoding).
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace flamewire::unwind {

inline constexpr std::uint8_t pointer_absolute = 0x00;  // DW_EH_PE_absptr
inline constexpr std::uint8_t pointer_omitted = 0xff;   // DW_EH_PE_omit

// Bases of the relative encodings. If a base is nullopt, pointers that need it are refused.
struct PointerBases {
    std::optional<std::uint64_t> text{}, data{}, function{};
};

// Reads the pointer at the cursor, whose next byte has the virtual address `here`. nullopt if the bytes end, the
// encoding or the base is unknown, or the pointer is indirect (its target is only relocated at startup). If the size is
// known, the cursor still moves past the pointer.
std::optional<std::uint64_t> read_encoded_pointer(ByteReader& cursor, std::uint8_t encoding, std::uint64_t here,
                                                  const PointerBases& bases, std::uint8_t address_size);

inline std::uint64_t truncate_address(std::uint64_t address, std::uint8_t address_size) {
    return address_size >= 8 ? address : address & ((std::uint64_t{1} << (8 * address_size)) - 1);
}

}  // namespace flamewire::unwind
