// A flat, immutable map from address to owner, built from ranges that may nest or overlap. If several ranges cover an
// address, the highest owner number wins. With DIEs numbered in preorder, this is the innermost scope.
#pragma once

#include <cstdint>
#include <vector>

namespace flamewire::symbol {

struct Interval {
    std::uint64_t start = 0, end = 0;  // [start, end); empty or reversed ones are ignored
    std::uint32_t owner = 0;
};

class IntervalMap {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    IntervalMap() = default;
    explicit IntervalMap(std::vector<Interval> intervals);

    // The owner of `address`, or `none`.
    [[nodiscard]] std::uint32_t find(std::uint64_t address) const;
    // All ranges that have an owner, returned with `owner` as their owner.
    [[nodiscard]] std::vector<Interval> covered(std::uint32_t owner) const;
    [[nodiscard]] bool empty() const { return starts_.empty(); }

private:
    void append(std::uint64_t start, std::uint32_t owner);

    // Piece i covers starts_[i] up to starts_[i + 1]. Gaps are pieces with owner `none`.
    std::vector<std::uint64_t> starts_;
    std::vector<std::uint32_t> owners_;
};

}  // namespace flamewire::symbol
