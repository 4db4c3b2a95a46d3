// A header feature of our own in the perf.data files that we write: what the names in them belong to, which perf has no
// place for. perf and other readers pass over it; our importer makes of it what was exported.
//
//   u32 version; events, one an attribute: u32 count, then name, unit; functions: u32 count, then u64 address, name,
//   module, u32 count of places, then file, u32 line, u64 address in the module, u32 flags, u8 kind. A text: u32 size, bytes.
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

struct ToldPlace {
    std::string file;
    std::uint32_t line = 0;
    // Of what has no name: where it stands in its module, and wire::location_flag.
    std::uint64_t module_address = 0;
    std::uint32_t flags = 0;
    FrameKind kind = FrameKind::user;
};

// The addresses from `address` on, one a place, are of this function.
struct ToldFunction {
    std::uint64_t address = 0;
    std::string name, module;  // module: without directories
    std::vector<ToldPlace> places;
};

struct ToldNames {
    struct Event {
        std::string name, unit;
    };
    std::vector<Event> events;            // by attribute
    std::vector<ToldFunction> functions;  // by address

    // The function that has `address`, and which of its places that is; {nullptr, 0}: none.
    [[nodiscard]] std::pair<const ToldFunction*, std::size_t> find(std::uint64_t address) const;
};

std::string encode_told_names(const ToldNames& names);
// False: damaged; what is whole before that is in `names`.
bool decode_told_names(Bytes content, std::endian order, ToldNames& names);

}  // namespace flamewire::profile::perf_data
