// The address ranges of a split unit. libdw reads such lists only for units whose other half it found itself. Sources:
// DWARF 5, sections 2.17.3 and 7.28; DWARF 4, section 2.17.3.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbol/dwarf/scope_tree.h"

namespace flamewire::symbol {

struct AddressRange {
    std::uint64_t start = 0, end = 0;  // [start, end), never empty
};

// Entry `index` of the unit's part of .debug_addr.
std::optional<std::uint64_t> indexed_address(const Unit& unit, Bytes addresses, std::uint64_t index);

// The list at offset `where` of unit.ranges or, with `by_index`, list number `where`. Stops at the first malformed
// byte.
std::vector<AddressRange> split_ranges(const Unit& unit, Bytes addresses, std::uint64_t where, bool by_index);

}  // namespace flamewire::symbol
