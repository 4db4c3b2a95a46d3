// Cache of the locations of recent addresses. Most frames of a stack were also in the previous stack, and finding their
// mappings and modules again costs more than unwinding the frames by cached rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/id_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

class LocatedFrames {
public:
    static constexpr std::uint64_t kernel = ~std::uint64_t{0};  // the generation of kernel addresses
    struct Key {
        std::uint64_t generation = 0, address = 0;  // of the address space's content (ProcessTable::generation)
        std::uint32_t flags = 0;                    // wire::location_flag
        bool operator==(const Key&) const = default;
    };

    struct Located {
        wire::Id location = 0;     // of this epoch; 0: not cached
        bool unnamed_jit = false;  // JIT code of an unknown function
    };
    [[nodiscard]] Located find(const Key& key) const {
        const Place& place = places_[place_of(key)];
        return place.key == key ? place.located : Located{};
    }
    void put(const Key& key, Located located) { places_[place_of(key)] = {key, located}; }
    void clear() { places_ = {}; }

private:
    struct Place {
        Key key;
        Located located;
    };
    static std::size_t place_of(const Key& key) {
        const std::uint64_t hash = mix_in(key.generation << 8 ^ key.flags, key.address);
        return static_cast<std::size_t>(hash) % count;
    }
    static constexpr std::size_t count = 1024;

    std::array<Place, count> places_{};
};

}  // namespace flamewire::agent
