// Locations of the addresses seen last. Most frames of a stack were in the stack before it too, and finding the mapping
// and the module of each again costs more than finding the frame by a rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/pipeline/id_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

class LocatedFrames {
public:
    static constexpr std::uint64_t kernel = ~std::uint64_t{0};  // the generation of its addresses
    struct Key {
        std::uint64_t generation = 0, address = 0;  // of the address space's content (ProcessTable::generation)
        std::uint32_t flags = 0;                    // wire::location_flag
        bool operator==(const Key&) const = default;
    };

    // Of this epoch; 0: not here.
    [[nodiscard]] wire::Id find(const Key& key) const {
        const Place& place = places_[place_of(key)];
        return place.key == key ? place.location : 0;
    }
    void put(const Key& key, wire::Id location) { places_[place_of(key)] = {key, location}; }
    void clear() { places_ = {}; }

private:
    struct Place {
        Key key;
        wire::Id location = 0;
    };
    static std::size_t place_of(const Key& key) {
        const std::uint64_t hash = mix_in(key.generation << 8 ^ key.flags, key.address);
        return static_cast<std::size_t>(hash) % count;
    }
    static constexpr std::size_t count = 1024;

    std::array<Place, count> places_{};
};

}  // namespace flamewire::agent
