// Open-addressing hash table from a small key to an id. One flat array, linear probing, at most three quarters full.
// Entries are never removed; clear() frees the memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flamewire {

// Mixes `value` into `hash`. Cheap on 32-bit machines, too (no 128-bit product). The shift copies the well-mixed high
// bits to the low bits, which tables use.
inline std::uint64_t mix_in(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
    return hash ^ (hash >> 32);
}

// Key must be default-constructible and have == and `std::uint64_t hash(std::uint64_t seed) const`. Id 0 marks a free
// slot. The high bits of the hash choose the slot, because all bits of the key and of the seed reach them: with a secret
// seed, nobody can prepare keys that all collide.
template <class Key>
class IdTable {
public:
    explicit IdTable(std::uint64_t seed = 0) : seed_(seed) {}

    // The id of `key`, or 0.
    [[nodiscard]] std::uint32_t find(const Key& key) const {
        if (places_.empty()) return 0;
        return places_[place_of(key)].id;
    }

    // The id of `key`. A new key gets `new_id`, which must not be 0.
    std::uint32_t find_or_add(const Key& key, std::uint32_t new_id) {
        if ((count_ + 1) * 4 > places_.size() * 3) grow();
        Place& place = places_[place_of(key)];
        if (place.id == 0) {
            place = {key, new_id};
            ++count_;
        }
        return place.id;
    }

    // Calls visit(key, id) for all entries, in unspecified order.
    template <class Visit>
    void each(const Visit& visit) const {
        for (const Place& place : places_)
            if (place.id != 0) visit(place.key, place.id);
    }

    [[nodiscard]] std::size_t size() const { return count_; }
    [[nodiscard]] std::size_t bytes() const { return places_.size() * sizeof(Place); }

    void clear() {
        places_ = {};
        count_ = 0;
    }

private:
    struct Place {
        Key key{};
        std::uint32_t id = 0;
    };

    std::size_t place_of(const Key& key) const {
        const std::size_t mask = places_.size() - 1;
        auto index = static_cast<std::size_t>(key.hash(seed_) >> std::countl_zero(std::uint64_t{mask}));
        while (places_[index].id != 0 && !(places_[index].key == key)) index = (index + 1) & mask;
        return index;
    }

    void grow() {
        std::vector<Place> old(places_.empty() ? 64 : places_.size() * 2);
        old.swap(places_);
        for (const Place& place : old)
            if (place.id != 0) places_[place_of(place.key)] = place;
    }

    std::uint64_t seed_;
    std::vector<Place> places_;
    std::size_t count_ = 0;
};

}  // namespace flamewire
