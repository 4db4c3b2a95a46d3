// Code in the memory of a process: this one's own.
#include "agent/process/code_cache.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <algorithm>

#include "own_memory.h"

using namespace flamewire::agent;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

struct alignas(64) Memory {
    std::array<std::byte, 256> bytes{};
    [[nodiscard]] std::uint64_t at(std::size_t offset) const {
        return reinterpret_cast<std::uintptr_t>(bytes.data()) + offset;
    }
};

bool holds(std::span<const std::byte> bytes, std::byte value) {
    return std::ranges::all_of(bytes, [=](std::byte byte) { return byte == value; });
}

}  // namespace

TEST_CASE("code is read again after a second, and no longer once its process has ended") {
    NEEDS_OWN_ADDRESSES();
    Memory memory;
    CodeCache lines;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    std::array<std::byte, 56> out{};
    CHECK_FALSE(lines.read(1, 0, memory.at(40), second, out));
    memory.bytes.fill(std::byte{1});
    REQUIRE(lines.read(1, pid, memory.at(40), second, out));  // of two lines
    CHECK(holds(out, std::byte{1}));
    memory.bytes.fill(std::byte{2});
    REQUIRE(lines.read(1, pid, memory.at(40), 2 * second - 1, out));
    CHECK(holds(out, std::byte{1}));
    REQUIRE(lines.read(2, pid, memory.at(40), 2 * second - 1, out));  // another process
    CHECK(holds(out, std::byte{2}));
    REQUIRE(lines.read(1, 0, memory.at(40), 3 * second, out));
    CHECK(holds(out, std::byte{1}));
    REQUIRE(lines.read(1, pid, memory.at(40), 3 * second, out));
    CHECK(holds(out, std::byte{2}));
    CHECK_FALSE(lines.read(1, pid, 0x1000, 3 * second, out));
}

TEST_CASE("no more than 500 lines are read in a second") {
    NEEDS_OWN_ADDRESSES();
    CodeCache lines;
    Memory memory;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    std::array<std::byte, 8> out{};
    // None of these is there.
    for (std::uint64_t i = 0; i < 3000; ++i) (void)lines.read(1, pid, 64 * i, second, out);
    CHECK_FALSE(lines.read(1, pid, memory.at(0), second + second / 2, out));
    CHECK(lines.read(1, pid, memory.at(0), 2 * second, out));
}
