// The map that GNU ld writes with -Map: names for a file that has no symbols left. A map lists global symbols one by one
// and everything else only as pieces of object files, so it names less, and less surely, than any symbol table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::symbol {

struct MapSymbol {
    std::uint64_t address = 0, size = 0;  // size: to the next symbol of its piece, or to the piece's end
    std::string name;                     // as in the map: ld demangles symbols there, but not names of sections
    bool text = false;                    // in an output section that is code by its name (.text, .init, .fini, .plt)
};

struct LinkerMap {
    std::string output;  // the file that was linked, as named on ld's command line; empty when the map does not say
    bool arm = false;    // 32-bit Arm: bit 0 of an address is the Thumb bit
    std::vector<MapSymbol> symbols;  // in the order of the file; those in sections of debug info are left out
};

// Names, from best to worst: a symbol; a local function that has a section of its own (.text.NAME, from
// -ffunction-sections); "[object.o]" or "[archive.a(member.o)]" for code of an object that nothing else names.
// invalid: no map of GNU ld. Lines that are not understood are skipped.
Result<LinkerMap> parse_linker_map(std::string_view text);

}  // namespace flamewire::symbol
