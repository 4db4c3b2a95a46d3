// A header feature of Flamewire's own in exported perf.data files: data about names that perf has no field for. perf
// and other readers ignore it. Flamewire's importer restores the exported names from it.
//
//   u32 version; events, one per attribute: u32 count, then name, unit; functions: u32 count, then u64 address, name,
//   module, u32 count of places, then file, u32 line, u64 address in the module, u32 flags, u8 kind. A text: u32 size,
//   bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "profile/store/model.h"

namespace flamewire::profile::perf_data {

struct EmbeddedPlace {
    std::string file;
    std::uint32_t line = 0;
    // For frames without a name: the address in the module, and its wire::location_flag.
    std::uint64_t module_address = 0;
    std::uint32_t flags = 0;
    FrameKind kind = FrameKind::user;
};

// The addresses from `address` on, one per place, belong to this function.
struct EmbeddedFunction {
    std::uint64_t address = 0;
    std::string name, module;  // module: without directories
    std::vector<EmbeddedPlace> places;
};

struct EmbeddedSymbols {
    struct Event {
        std::string name, unit;
    };
    std::vector<Event> events;                // by attribute
    std::vector<EmbeddedFunction> functions;  // by address

    // The function at `address`, and the index of its place; {nullptr, 0}: none.
    [[nodiscard]] std::pair<const EmbeddedFunction*, std::size_t> find(std::uint64_t address) const;
};

std::string encode_embedded_symbols(const EmbeddedSymbols& names);
// False: the content is damaged. `names` has what precedes the damage.
bool decode_embedded_symbols(Bytes content, std::endian order, EmbeddedSymbols& names);

}  // namespace flamewire::profile::perf_data
