// Open-addressing table from a small key to an id. One flat array, linear probing, at most three quarters full;
// nothing is ever removed, clear() gives the memory back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flamewire::agent {

// Mixes `value` into `hash`; cheap on 32-bit machines too (no 128-bit product). The shift brings the well mixed high
// bits down to where tables look.
inline std::uint64_t mix_in(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
    return hash ^ (hash >> 32);
}

// Key: default-constructible, ==, and `std::uint64_t hash() const`. Value 0 marks a free place.
template <class Key>
class IdTable {
public:
    // The id of `key`, or 0.
    [[nodiscard]] std::uint32_t find(const Key& key) const {
        if (places_.empty()) return 0;
        return places_[place_of(key)].id;
    }

    // The id of `key`; `new_id` (not 0) becomes it when there was none.
    std::uint32_t find_or_add(const Key& key, std::uint32_t new_id) {
        if ((count_ + 1) * 4 > places_.size() * 3) grow();
        Place& place = places_[place_of(key)];
        if (place.id == 0) {
            place = {key, new_id};
            ++count_;
        }
        return place.id;
    }

    // Calls visit(key, id) for all, in no order.
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
        std::size_t index = static_cast<std::size_t>(key.hash()) & mask;
        while (places_[index].id != 0 && !(places_[index].key == key)) index = (index + 1) & mask;
        return index;
    }

    void grow() {
        std::vector<Place> old(places_.empty() ? 64 : places_.size() * 2);
        old.swap(places_);
        for (const Place& place : old)
            if (place.id != 0) places_[place_of(place.key)] = place;
    }

    std::vector<Place> places_;
    std::size_t count_ = 0;
};

}  // namespace flamewire::agent
