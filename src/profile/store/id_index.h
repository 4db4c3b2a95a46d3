// A hash index that stores only ids. The keys stay in the columns of the table that it indexes, so a slot takes four
// bytes. Id 0 marks a free slot; every table of the store reserves it. The hash is seeded per process, so an agent
// cannot choose keys that all collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace flamewire::profile {

// Tables have far fewer than 2^32 entries: each entry was at least a byte on the wire.
constexpr std::uint32_t narrow32(std::size_t value) { return static_cast<std::uint32_t>(value); }

// push_back for the big columns. Grows by a quarter instead of doubling, so at most a fifth of a column is unused.
template <class T>
void append_tight(std::vector<T>& column, const T& value) {
    if (column.size() == column.capacity()) {
        // It may be in this column. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
        const T copy = value;
        column.reserve(column.size() + column.size() / 4 + 16);
        column.push_back(copy);
    } else {
        column.push_back(value);
    }
}

// Random in each process, and different from each other.
struct HashSecrets {
    std::uint64_t seed = 0, first = 0, second = 0;
};
extern const HashSecrets hash_secrets;

inline std::uint64_t hash_seed() { return hash_secrets.seed; }
std::uint64_t hash_text(std::string_view text);

// The two halves of a 128-bit product, XORed, so that every input bit affects every bit of the hash. The factors contain
// secrets: with known constants, an input that makes one of them 0 would erase the other.
inline std::uint64_t hash_mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a ^ hash_secrets.first) * (b ^ hash_secrets.second);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

class IdIndex {
public:
    // The id whose entry satisfies `equal(id)`, or 0.
    template <class Equal>
    [[nodiscard]] std::uint32_t find(std::uint64_t hash, Equal equal) const {
        if (slots_.empty()) return 0;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
            const std::uint32_t id = slots_[slot];
            if (id == 0 || equal(id)) return id;
        }
    }

    // Adds an id that find() did not find. `hash_of(id)` must return the hash of any id that was inserted before.
    template <class HashOf>
    void insert(std::uint64_t hash, std::uint32_t id, HashOf hash_of) {
        if ((used_ + 1) * 4 > slots_.size() * 3) grow(hash_of);
        place(hash, id);
        ++used_;
    }

    void clear() {
        slots_ = {};
        used_ = 0;
    }
    [[nodiscard]] std::size_t memory_bytes() const { return slots_.capacity() * sizeof(std::uint32_t); }

private:
    template <class HashOf>
    void grow(HashOf hash_of) {
        std::vector<std::uint32_t> old(slots_.empty() ? 16 : slots_.size() * 2);
        old.swap(slots_);
        for (const std::uint32_t id : old)
            if (id != 0) place(hash_of(id), id);
    }

    void place(std::uint64_t hash, std::uint32_t id) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = hash & mask;
        while (slots_[slot] != 0) slot = (slot + 1) & mask;
        slots_[slot] = id;
    }

    std::vector<std::uint32_t> slots_;  // a power of two, at most three quarters full
    std::size_t used_ = 0;
};

}  // namespace flamewire::profile
