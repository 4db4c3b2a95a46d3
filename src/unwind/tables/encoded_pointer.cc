#include "unwind/tables/encoded_pointer.h"

#include "base/byte_reader.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint8_t format_mask = 0x0f, relation_mask = 0x70, indirect = 0x80;  // DW_EH_PE_indirect
constexpr std::uint8_t aligned = 0x50;                                             // DW_EH_PE_aligned

std::uint64_t sign_extended(std::uint64_t value, unsigned size) {
    const unsigned unused = 64 - 8 * size;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

// nullopt for an unknown format.
std::optional<std::uint64_t> read_value(ByteReader& cursor, std::uint8_t format, std::uint8_t address_size) {
    switch (format) {
        case 0x00:                                      // DW_EH_PE_absptr
        case 0x08: return cursor.number(address_size);  // DW_EH_PE_signed
        case 0x01: return cursor.uleb();
        case 0x02: return cursor.number(2);
        case 0x03: return cursor.number(4);
        case 0x04:
        case 0x0c: return cursor.number(8);
        case 0x09: return static_cast<std::uint64_t>(cursor.sleb());
        case 0x0a: return sign_extended(cursor.number(2), 2);
        case 0x0b: return sign_extended(cursor.number(4), 4);
        default: return std::nullopt;
    }
}

}  // namespace

std::optional<std::uint64_t> read_encoded_pointer(ByteReader& cursor, std::uint8_t encoding, std::uint64_t here,
                                                  const PointerBases& bases, std::uint8_t address_size) {
    if (encoding == pointer_omitted) return std::nullopt;
    if (encoding == aligned) {
        cursor.skip(-here & (address_size - 1u));
        const std::uint64_t value = cursor.number(address_size);
        return cursor.ok() ? std::optional(value) : std::nullopt;
    }
    const auto value = read_value(cursor, encoding & format_mask, address_size);
    if (!value || !cursor.ok() || (encoding & indirect) != 0) return std::nullopt;
    std::optional<std::uint64_t> base;
    switch (encoding & relation_mask) {
        case 0x00: base = 0; break;
        case 0x10: base = here; break;            // DW_EH_PE_pcrel
        case 0x20: base = bases.text; break;      // DW_EH_PE_textrel
        case 0x30: base = bases.data; break;      // DW_EH_PE_datarel
        case 0x40: base = bases.function; break;  // DW_EH_PE_funcrel
        default: break;
    }
    if (!base) return std::nullopt;
    return truncate_address(*base + *value, address_size);
}

}  // namespace flamewire::unwind
