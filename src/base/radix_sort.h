// Stable radix sort (least significant digit first) of many small integers that carry an index. It takes a few passes
// over the values. The log n passes of a comparison sort would dominate the cost of large batches of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flamewire {

struct KeyedIndex {
    std::uint64_t key = 0;
    std::uint32_t index = 0;
};

// Sorts by key. Only the lowest `bits` bits of a key may be set. `scratch` grows to the size of `values`; its contents
// are garbage afterwards.
inline void radix_sort(std::vector<KeyedIndex>& values, std::vector<KeyedIndex>& scratch, unsigned bits) {
    constexpr unsigned digit_bits = 11;  // the counters of one pass fit into the L1 cache
    constexpr std::uint64_t mask = (std::uint64_t{1} << digit_bits) - 1;
    scratch.resize(values.size());
    for (unsigned shift = 0; shift < bits; shift += digit_bits) {
        std::array<std::uint32_t, mask + 1> starts{};
        for (const KeyedIndex& value : values) ++starts[value.key >> shift & mask];
        std::uint32_t sum = 0;
        for (std::uint32_t& start : starts) start = std::exchange(sum, sum + start);
        for (const KeyedIndex& value : values) scratch[starts[value.key >> shift & mask]++] = value;
        values.swap(scratch);
    }
}

}  // namespace flamewire
