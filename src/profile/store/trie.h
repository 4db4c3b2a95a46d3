// An append-only trie in columns. A node is (parent, label), and a path from the root to a node is a stack, outermost
// frame first. A parent's id is always smaller than its children's, so one pass by descending id adds up sums to the
// root. The store has two tries: labels are locations in one, functions in the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/id_index.h"

namespace flamewire::profile {

class Trie {
public:
    std::uint32_t child(std::uint32_t parent, std::uint32_t label) {
        const std::uint64_t hash = hash_of(parent, label);
        const auto equal = [&](std::uint32_t id) { return parents_[id] == parent && labels_[id] == label; };
        if (const std::uint32_t known = index_.find(hash, equal)) return known;
        const std::uint32_t id = narrow32(parents_.size());
        append_tight(parents_, parent);
        append_tight(labels_, label);
        index_.insert(hash, id, [this](std::uint32_t other) { return hash_of(parents_[other], labels_[other]); });
        return id;
    }

    // 0 if there is none.
    [[nodiscard]] std::uint32_t find(std::uint32_t parent, std::uint32_t label) const {
        return index_.find(hash_of(parent, label),
                           [&](std::uint32_t id) { return parents_[id] == parent && labels_[id] == label; });
    }

    void reserve(std::size_t size) {
        parents_.reserve(size);
        labels_.reserve(size);
    }
    [[nodiscard]] std::size_t size() const { return parents_.size(); }  // includes the root (0)
    [[nodiscard]] std::uint32_t parent(std::uint32_t id) const { return parents_[id]; }
    [[nodiscard]] std::uint32_t label(std::uint32_t id) const { return labels_[id]; }
    [[nodiscard]] std::span<const std::uint32_t> parents() const { return parents_; }
    [[nodiscard]] std::span<const std::uint32_t> labels() const { return labels_; }
    [[nodiscard]] std::size_t memory_bytes() const {
        return (parents_.capacity() + labels_.capacity()) * sizeof(std::uint32_t) + index_.memory_bytes();
    }

private:
    static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t label) {
        return hash_mix((static_cast<std::uint64_t>(parent) << 32) | label, hash_seed());
    }

    std::vector<std::uint32_t> parents_{0};
    std::vector<std::uint32_t> labels_{0};
    IdIndex index_;
};

}  // namespace flamewire::profile
