// The functions of one unit that -gsplit-dwarf keeps out of a program: in a .dwo file, or in a part of a .dwp.
// Everything is read from bytes; only addresses and lines stay in the program. Sources: DWARF 5, sections 7.3.2 and
// 7.3.5; for DWARF 4 the "DebugFission" pages of GCC's wiki.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "symbol/dwarf/abbreviations.h"
#include "symbol/dwarf/scope_tree.h"

namespace flamewire::symbol {

// Sections of a .dwo, or the parts of a .dwp's sections for one unit.
struct SplitSections {
    Bytes info;            // .debug_info.dwo
    Bytes abbreviations;   // .debug_abbrev.dwo
    Bytes string_offsets;  // .debug_str_offsets.dwo
    Bytes strings;         // .debug_str.dwo
    Bytes range_lists;     // .debug_rnglists.dwo (DWARF 5)
    bool big_endian = false;
};

struct SplitUnit {
    SplitSections sections;
    Unit unit;
    Abbreviations abbreviations;

    // The linkage name of a DIE or of its abstract origin, else its plain name; empty if there is none.
    [[nodiscard]] std::string name(std::uint64_t die_offset) const;
};

// The unit with that id. The caller must still add the ranges and the address base from the program.
std::optional<SplitUnit> find_split_unit(const SplitSections& sections, std::uint64_t id);

// The parts of a .dwp's sections for one unit. Nullopt: the index is damaged, or does not contain the id.
std::optional<SplitSections> cut_of_package(SplitSections whole, Bytes cu_index, std::uint64_t id);

}  // namespace flamewire::symbol
