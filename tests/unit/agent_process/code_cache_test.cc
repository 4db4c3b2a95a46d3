// Code in the memory of a process, in this case of the test itself.
#include "agent/process/code_cache.h"

#include <catch2/catch.hpp>
#include <sys/wait.h>
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

TEST_CASE("code is read again after one second, and no longer after its process has ended") {
    NEEDS_OWN_ADDRESSES();
    Memory memory;
    CodeCache cache;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    std::array<std::byte, 56> out{};
    CHECK_FALSE(cache.read(1, 0, memory.at(40), second, out));
    memory.bytes.fill(std::byte{1});
    REQUIRE(cache.read(1, pid, memory.at(40), second, out));  // spans two lines
    CHECK(holds(out, std::byte{1}));
    memory.bytes.fill(std::byte{2});
    REQUIRE(cache.read(1, pid, memory.at(40), 2 * second - 1, out));
    CHECK(holds(out, std::byte{1}));
    REQUIRE(cache.read(2, pid, memory.at(40), 2 * second - 1, out));  // another process
    CHECK(holds(out, std::byte{2}));
    REQUIRE(cache.read(1, 0, memory.at(40), 3 * second, out));
    CHECK(holds(out, std::byte{1}));
    REQUIRE(cache.read(1, pid, memory.at(40), 3 * second, out));
    CHECK(holds(out, std::byte{2}));
    CHECK_FALSE(cache.read(1, pid, 0x1000, 3 * second, out));
}

TEST_CASE("at most 500 lines are read per second") {
    NEEDS_OWN_ADDRESSES();
    CodeCache cache;
    Memory memory;
    memory.bytes.fill(std::byte{1});
    const auto pid = static_cast<std::uint32_t>(::getpid());
    std::array<std::byte, 8> out{};
    // None of these lines is readable.
    for (std::uint64_t i = 0; i < 499; ++i) CHECK_FALSE(cache.read(1, pid, 64 * i, second, out));
    CHECK(cache.read(1, pid, memory.at(0), second, out));
    CHECK_FALSE(cache.read(1, pid, memory.at(64), second + second / 2, out));
    CHECK(cache.read(1, pid, memory.at(64), 2 * second, out));
    // A known line is returned even if the limit prevents another read.
    for (std::uint64_t i = 0; i < 499; ++i) (void)cache.read(1, pid, 64 * i, 2 * second, out);
    CHECK(cache.read(1, pid, memory.at(0), 3 * second - 1, out));
    CHECK(holds(out, std::byte{1}));
}

TEST_CASE("a known line remains when its process has just ended") {
    NEEDS_OWN_ADDRESSES();
    CodeCache cache;
    Memory memory;
    memory.bytes.fill(std::byte{3});
    const auto pid = static_cast<std::uint32_t>(::getpid());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    std::array<std::byte, 8> out{};
    REQUIRE(cache.read(1, pid, memory.at(0), second, out));
    CHECK(cache.read(1, static_cast<std::uint32_t>(child), memory.at(0), 3 * second, out));
    CHECK(holds(out, std::byte{3}));
    CHECK_FALSE(cache.read(1, static_cast<std::uint32_t>(child), memory.at(64), 3 * second, out));
}
