#include "base/id_table.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

namespace flamewire {
namespace {

struct Key {
    std::uint32_t value = 0;
    bool operator==(const Key&) const = default;
    // Few different hashes, so that most keys collide.
    [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mix_in(seed, value % 50); }
};

}  // namespace

TEST_CASE("an id table finds every key that was added, and no other") {
    IdTable<Key> table(7);
    CHECK(table.find({1}) == 0);
    std::map<std::uint32_t, std::uint32_t> expected;
    std::mt19937 random(1);
    for (std::uint32_t id = 1; id <= 3000; ++id) {
        const std::uint32_t value = random() % 2000;
        const auto [entry, added] = expected.try_emplace(value, id);
        REQUIRE(table.find_or_add({value}, id) == entry->second);
    }
    CHECK(table.size() == expected.size());
    for (std::uint32_t value = 0; value < 2000; ++value)
        REQUIRE(table.find({value}) == (expected.contains(value) ? expected[value] : 0));
    std::map<std::uint32_t, std::uint32_t> visited;
    table.each([&](const Key& key, std::uint32_t id) { visited[key.value] = id; });
    CHECK(visited == expected);
    table.clear();
    CHECK(table.bytes() == 0);
    CHECK(table.find({expected.begin()->first}) == 0);
}

}  // namespace flamewire
