// The map file that GNU ld writes with -Map, as a source of names for a file without symbols. A map lists global
// symbols one by one and everything else only as pieces of object files. It has fewer names, and less certain ones,
// than a symbol table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::symbol {

struct MapSymbol {
    std::uint64_t address = 0, size = 0;  // size: up to the next symbol of its piece, or to the piece's end
    std::string name;                     // as in the map: ld demangles symbols there, but not section names
    bool text = false;                    // in an output section whose name means code (.text, .init, .fini, .plt)
};

struct LinkerMap {
    std::string output;  // the file that was linked, as on ld's command line; empty if the map does not state it
    bool arm = false;    // 32-bit Arm: bit 0 of an address is the Thumb bit
    std::vector<MapSymbol> symbols;  // in the order of the file; without those in sections of debug info
};

// Names, from best to worst: a symbol; a local function in a section of its own (.text.NAME, from -ffunction-sections);
// "[object.o]" or "[archive.a(member.o)]" for code of an object without better names. invalid: not a map of GNU ld.
// Unknown lines are skipped.
Result<LinkerMap> parse_linker_map(std::string_view text);

}  // namespace flamewire::symbol
