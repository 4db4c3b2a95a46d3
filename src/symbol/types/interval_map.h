// A flat, immutable map from address to owner, made from ranges that may nest or overlap: where several cover an
// address, the highest owner number wins. DIEs numbered in preorder thus give the innermost scope.
#pragma once

#include <cstdint>
#include <vector>

namespace flamewire::symbol {

struct Interval {
    std::uint64_t start = 0, end = 0;  // [start, end); an empty or reversed one is ignored
    std::uint32_t owner = 0;
};

class IntervalMap {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    IntervalMap() = default;
    explicit IntervalMap(std::vector<Interval> intervals);

    // The owner of `address`, or none.
    [[nodiscard]] std::uint32_t find(std::uint64_t address) const;
    // All that has an owner, as if `owner` had it.
    [[nodiscard]] std::vector<Interval> covered(std::uint32_t owner) const;
    [[nodiscard]] bool empty() const { return starts_.empty(); }

private:
    void append(std::uint64_t start, std::uint32_t owner);

    // Piece i covers starts_[i] up to starts_[i + 1]; gaps are pieces of `none`.
    std::vector<std::uint64_t> starts_;
    std::vector<std::uint32_t> owners_;
};

}  // namespace flamewire::symbol
