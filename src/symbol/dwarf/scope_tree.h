// The functions of one DWARF unit and the functions that were inlined into them, as flat arrays: which scope covers an
// address, and into which scope it was inlined. One linear pass over the unit's bytes; only range lists come from
// libdw.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "symbol/dwarf/abbreviations.h"
#include "symbol/dwarf/index_budget.h"
#include "symbol/files/object_file.h"
#include "symbol/types/interval_map.h"

namespace flamewire::symbol {

// The position of a unit in .debug_info. Its DIE is libdw's handle to it.
struct Unit {
    Dwarf_Die die{};
    std::uint64_t offset = 0;      // of the unit header in .debug_info
    std::uint64_t die_offset = 0;  // of its first DIE
    std::uint64_t end = 0;         // one past its last byte
    std::uint64_t abbreviations_offset = 0;
    UnitFormat format;
    Bytes dies;                      // from its first DIE to its end
    std::uint64_t address_base = 0;  // start of its part of .debug_addr
    // Only for a split unit (DWARF 5: .debug_rnglists.dwo; before: the program's .debug_ranges from the unit's base
    // on), because libdw cannot read such ranges without the unit's other half.
    bool split = false;
    Bytes ranges;
    std::uint64_t low_pc = 0;  // base of the offsets in `ranges`
};

// The offset of a DIE in .debug_info, or, with `alternate`, in the file into which dwz moved shared DIEs.
struct DieRef {
    std::uint64_t offset = 0;
    bool alternate = false;

    bool operator==(const DieRef&) const = default;
};

struct Scope {
    DieRef named_by;                             // the DIE at which the search for the name starts
    std::uint32_t parent = 0;                    // the enclosing scope; IntervalMap::none for a function
    std::uint32_t call_file = 0, call_line = 0;  // of an inlined call; the file is an index into the unit's file table
    bool inlined = false;
};

struct ScopeTree {
    std::vector<Scope> scopes;  // in preorder
    IntervalMap by_address;     // maps to indexes of `scopes`
};

// Sections that scanning needs in addition to .debug_info.
struct DwarfSections {
    Bytes abbreviations;  // .debug_abbrev
    Bytes addresses;      // .debug_addr
};

// Stops at the first malformed byte, or if the budget is exceeded, and returns what was found. `abbreviations` must be
// those of the unit.
ScopeTree scan_scopes(const ObjectFile& file, const DwarfSections& sections, const Unit& unit,
                      const Abbreviations& abbreviations, IndexBudget& budget);

}  // namespace flamewire::symbol
