// Variable-length integers: unsigned LEB128 (DWARF 5, section 7.6), and the zigzag encoding of signed integers (Protocol
// Buffers).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/byte_reader.h"
#include "base/bytes.h"

namespace flamewire {

inline void append_varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
}

inline std::string varints(std::initializer_list<std::uint64_t> values) {
    std::string text;
    for (const std::uint64_t value : values) append_varint(text, value);
    return text;
}

// The reader fails if the number exceeds 64 bits or is cut off.
inline std::uint64_t read_varint(ByteReader& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const auto byte = in.u8();
        const std::uint64_t bits = byte & 0x7FU;
        if (shift == 63 && bits > 1) break;
        value |= bits << shift;
        if ((byte & 0x80U) == 0) return value;
    }
    in.fail();
    return 0;
}

inline std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t from_zigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace flamewire
