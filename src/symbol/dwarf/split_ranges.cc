#include "symbol/dwarf/split_ranges.h"

#include <dwarf.h>

#include "base/byte_reader.h"

namespace flamewire::symbol {
namespace {

// Per DIE. Many DIEs can refer to the same list.
constexpr std::size_t max_ranges = 1u << 16;

// Pairs of offsets to a base. A pair whose first value is the highest address sets a new base. Two zeros end the list.
std::vector<AddressRange> pairs(const Unit& unit, ByteReader in) {
    std::vector<AddressRange> found;
    const std::size_t size = unit.format.address_size;
    const std::uint64_t highest = size == 8 ? ~std::uint64_t{0} : 0xffffffff;
    std::uint64_t base = unit.low_pc;
    while (found.size() < max_ranges) {
        const std::uint64_t first = in.number(size), second = in.number(size);
        if (!in.ok() || (first == 0 && second == 0)) break;
        if (first == highest)
            base = second;
        else if (base + first < base + second)  // either may wrap
            found.push_back({base + first, base + second});
    }
    return found;
}

}  // namespace

std::optional<std::uint64_t> indexed_address(const Unit& unit, Bytes addresses, std::uint64_t index) {
    const std::size_t size = unit.format.address_size;
    if (unit.address_base > addresses.size() || index >= (addresses.size() - unit.address_base) / size)
        return std::nullopt;
    ByteReader in(addresses.subspan(static_cast<std::size_t>(unit.address_base + index * size)),
                  byte_order(unit.format.big_endian));
    return in.number(size);
}

std::vector<AddressRange> split_ranges(const Unit& unit, Bytes addresses, std::uint64_t where, bool by_index) {
    const std::size_t offset_size = unit.format.offset_size, size = unit.format.address_size;
    ByteReader in(unit.ranges, byte_order(unit.format.big_endian));
    if (by_index) {
        // The offsets follow the header of the only table: length, version, sizes, number of offsets.
        const std::uint64_t base = offset_size == 8 ? 20 : 12;
        if (where > unit.ranges.size()) return {};
        ByteReader offsets(unit.ranges, byte_order(unit.format.big_endian));
        offsets.skip(base + where * offset_size);
        where = base + offsets.number(offset_size);
        if (!offsets.ok()) return {};
    }
    in.skip(where);
    if (unit.format.version < 5) return pairs(unit, in);
    std::vector<AddressRange> found;
    std::uint64_t base = unit.low_pc;
    while (found.size() < max_ranges) {
        std::optional<std::uint64_t> start = 0, end = 0;
        switch (in.number(1)) {
            case DW_RLE_base_addressx: base = indexed_address(unit, addresses, in.uleb()).value_or(0); continue;
            case DW_RLE_base_address: base = in.number(size); continue;
            case DW_RLE_startx_endx:
                start = indexed_address(unit, addresses, in.uleb());
                end = indexed_address(unit, addresses, in.uleb());
                break;
            case DW_RLE_startx_length:
                start = indexed_address(unit, addresses, in.uleb());
                end = start.value_or(0) + in.uleb();
                break;
            case DW_RLE_offset_pair:
                start = base + in.uleb();
                end = base + in.uleb();
                break;
            case DW_RLE_start_end:
                start = in.number(size);
                end = in.number(size);
                break;
            case DW_RLE_start_length:
                start = in.number(size);
                end = *start + in.uleb();
                break;
            default:  // the end of the list, or an invalid entry
                return found;
        }
        if (!in.ok()) return found;
        if (start && end && *start < *end) found.push_back({*start, *end});
    }
    return found;
}

}  // namespace flamewire::symbol
