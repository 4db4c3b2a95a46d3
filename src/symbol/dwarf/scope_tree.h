// The functions of one DWARF unit and what was inlined into them, as flat arrays: which scope covers an address, and
// into which scope it was inlined. One linear pass over the unit's bytes; libdw is asked only for range lists.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "symbol/dwarf/abbreviations.h"
#include "symbol/dwarf/index_budget.h"
#include "symbol/files/object_file.h"
#include "symbol/types/interval_map.h"

namespace flamewire::symbol {

// Where a unit stands in .debug_info. Its DIE is libdw's handle to it.
struct Unit {
    Dwarf_Die die{};
    std::uint64_t offset = 0;      // of the unit header in .debug_info
    std::uint64_t die_offset = 0;  // of its first DIE
    std::uint64_t end = 0;         // behind its last byte
    std::uint64_t abbreviations_offset = 0;
    UnitFormat format;
    Bytes dies;                      // from its first DIE to its end
    std::uint64_t address_base = 0;  // of its part of .debug_addr
    // Of a unit that was split off (DWARF 5: .debug_rnglists.dwo; before: the program's .debug_ranges from the unit's
    // base on), as libdw knows no such ranges without the unit's other half.
    bool split = false;
    Bytes ranges;
    std::uint64_t low_pc = 0;  // what offsets in them are relative to
};

// A DIE of .debug_info (or, with `alternate`, of the file that dwz shared DIEs into), by its offset.
struct DieRef {
    std::uint64_t offset = 0;
    bool alternate = false;

    bool operator==(const DieRef&) const = default;
};

struct Scope {
    DieRef named_by;                             // the DIE at which the search for the name starts
    std::uint32_t parent = 0;                    // the scope around it; IntervalMap::none for a function
    std::uint32_t call_file = 0, call_line = 0;  // of an inlined one; the file is an index into the unit's file table
    bool inlined = false;
};

struct ScopeTree {
    std::vector<Scope> scopes;  // in preorder
    IntervalMap by_address;     // to indexes of `scopes`
};

// Bytes of the sections that scanning needs beside .debug_info.
struct DwarfSections {
    Bytes abbreviations;  // .debug_abbrev
    Bytes addresses;      // .debug_addr
};

// What is found up to the first malformed byte, or to the end of the budget. `abbreviations` must be those of the unit.
ScopeTree scan_scopes(const ObjectFile& file, const DwarfSections& sections, const Unit& unit,
                      const Abbreviations& abbreviations, IndexBudget& budget);

}  // namespace flamewire::symbol
