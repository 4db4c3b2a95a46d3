// Linked statically like the agent, with zstd_stubs.cc.
#include <catch2/catch.hpp>

#include <string>

#include "base/bytes.h"
#include "wire/frame.h"

using namespace flamewire;

TEST_CASE("the agent compresses inputs whose last block is short") {
    const std::size_t whole_blocks = GENERATE(0, 1, 2);
    const std::size_t rest = GENERATE(range(0, 16));
    constexpr std::size_t block_bytes = std::size_t{128} << 10;
    std::string bytes;
    for (std::size_t i = 0; i < whole_blocks * block_bytes + rest; ++i) bytes.push_back(static_cast<char>(i * i >> 7));
    const std::string compressed = wire::compress(bytes);
    const auto again = wire::decompress(as_bytes_view(compressed), bytes.size());
    REQUIRE(again);
    CHECK((*again == bytes));
}
