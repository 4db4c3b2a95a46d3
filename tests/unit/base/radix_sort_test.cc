#include "base/radix_sort.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

namespace flamewire {

TEST_CASE("radix sort is a stable sort, for keys of any width") {
    std::mt19937_64 random(7);
    for (const unsigned bits : {0U, 1U, 10U, 11U, 12U, 33U, 63U, 64U}) {
        std::vector<KeyedIndex> values, scratch;
        const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        // Few different keys, so that many are equal.
        for (std::uint32_t i = 0; i < 5000; ++i) values.push_back({(random() % 50 * 0x5bd1'e995'97f4'a7c1U) & mask, i});
        std::vector<KeyedIndex> expected = values;
        std::ranges::stable_sort(expected, {}, &KeyedIndex::key);
        radix_sort(values, scratch, bits);
        CHECK(std::ranges::equal(values, expected, [](const KeyedIndex& a, const KeyedIndex& b) {
            return a.key == b.key && a.index == b.index;
        }));
        values.clear();
        radix_sort(values, scratch, bits);
        CHECK(values.empty());
    }
}

}  // namespace flamewire
