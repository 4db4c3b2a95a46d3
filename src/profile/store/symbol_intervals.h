// Names that the batches contain for addresses of one module (kernel, vDSO): disjoint intervals, sorted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/model.h"

namespace flamewire::profile {

struct SymbolInterval {
    std::uint64_t start = 0, size = 0;  // size 0: up to the next symbol
    StringId name = 0;
    bool operator==(const SymbolInterval&) const = default;
};

class SymbolIntervals {
public:
    // Merges `added` in. If two symbols have the same start, the later one wins. Returns whether any answer of find()
    // may have changed.
    bool add(std::span<const SymbolInterval> added);
    // The name that covers `address`, or 0.
    [[nodiscard]] StringId find(std::uint64_t address) const;
    [[nodiscard]] bool empty() const { return intervals_.empty(); }
    [[nodiscard]] std::size_t memory_bytes() const { return intervals_.capacity() * sizeof(SymbolInterval); }

private:
    std::vector<SymbolInterval> intervals_;  // sorted by start, which is unique
};

}  // namespace flamewire::profile
