// Sorting of many small integers with a number beside each, by counting (least significant digit first): some passes over
// the values instead of a comparison sort's log n, which is most of what large batches of rows cost otherwise. Stable.
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

// By key, of which only the lowest `bits` may be set. `scratch` becomes as large as `values`; what is in it is of no use.
inline void radix_sort(std::vector<KeyedIndex>& values, std::vector<KeyedIndex>& scratch, unsigned bits) {
    constexpr unsigned digit_bits = 11;  // counters of a pass fit into the first cache
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
