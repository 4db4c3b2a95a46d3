// Arbitrary bytes as the sections of a .dwo or .dwp file: finds a unit, reads the name of each DIE, and reads ranges.
// The input is an id (8 bytes), six sizes (4 bytes each) and the sections: info, abbreviations, string offsets,
// strings, ranges, index.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/byte_reader.h"
#include "symbol/dwarf/split_ranges.h"
#include "symbol/dwarf/split_unit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    ByteReader in(Bytes(reinterpret_cast<const std::byte*>(data), size));
    const auto id = in.u64();
    std::uint32_t sizes[6] = {};
    for (std::uint32_t& one : sizes) one = in.u32() & 0xffff;
    symbol::SplitSections sections;
    Bytes index;
    Bytes* const parts[6] = {&sections.info,    &sections.abbreviations, &sections.string_offsets,
                             &sections.strings, &sections.range_lists,   &index};
    for (std::size_t i = 0; i < 6; ++i) *parts[i] = in.bytes(std::min<std::size_t>(sizes[i], in.remaining()));
    if (const auto cut = symbol::cut_of_package(sections, index, id)) {
        // A part cannot be larger than the whole.
        if (cut->info.size() > sections.info.size()) std::abort();
        (void)symbol::find_split_unit(*cut, id);
    }
    auto split = symbol::find_split_unit(sections, id);
    if (!split) return 0;
    for (std::uint64_t die = split->unit.die_offset; die < split->unit.end && die < 4096; ++die) (void)split->name(die);
    split->unit.ranges = sections.range_lists;
    for (std::uint64_t list = 0; list < 64; ++list)
        for (const bool by_index : {false, true})
            for (const symbol::AddressRange& range : symbol::split_ranges(split->unit, index, list, by_index))
                if (range.start >= range.end) std::abort();
    return 0;
}
