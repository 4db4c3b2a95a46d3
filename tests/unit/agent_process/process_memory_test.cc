#include "agent/process/process_memory.h"

#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "own_memory.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

std::uint64_t address_of(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }
const auto self = static_cast<std::uint32_t>(::getpid());

}  // namespace

TEST_CASE("words of a process at any address, in the requested order") {
    NEEDS_OWN_ADDRESSES();
    const std::array<std::uint64_t, 3> there{0x1122334455667788, 2, 0xfffffffffffffffe};
    const std::array<std::uint64_t, 3> addresses{address_of(&there[2]), address_of(&there[0]), address_of(&there[1])};
    std::array<std::uint64_t, 3> values{};
    REQUIRE(read_words(self, 8, addresses, values).value() == 3);
    CHECK(values == std::array<std::uint64_t, 3>{0xfffffffffffffffe, 0x1122334455667788, 2});
    values = {};
    REQUIRE(read_words_of_file(self, 8, addresses, values).value() == 3);
    CHECK(values == std::array<std::uint64_t, 3>{0xfffffffffffffffe, 0x1122334455667788, 2});
}

TEST_CASE("words of 4 bytes do not include adjacent ones") {
    NEEDS_OWN_ADDRESSES();
    const std::array<std::uint32_t, 4> there{0xfffffff1, 0xfffffff2, 3, 4};
    const std::array<std::uint64_t, 3> addresses{address_of(&there[0]), address_of(&there[1]), address_of(&there[3])};
    std::array<std::uint64_t, 3> values{};
    REQUIRE(read_words(self, 4, addresses, values).value() == 3);
    CHECK(values == std::array<std::uint64_t, 3>{0xfffffff1, 0xfffffff2, 4});
    values = {};
    REQUIRE(read_words_of_file(self, 4, addresses, values).value() == 3);
    CHECK(values == std::array<std::uint64_t, 3>{0xfffffff1, 0xfffffff2, 4});
}

TEST_CASE("a missing page ends the answer, and an exited process is an error") {
    NEEDS_OWN_ADDRESSES();
    const std::uint64_t there = 7;
    const std::array<std::uint64_t, 3> addresses{address_of(&there), 8, address_of(&there)};
    std::array<std::uint64_t, 3> values{};
    CHECK(read_words(self, 8, addresses, values).value() == 1);
    CHECK(values[0] == 7);
    const auto gone = read_words(0x3fffffff, 8, addresses, values);
    REQUIRE_FALSE(gone);
    CHECK(gone.error().code == ErrorCode::not_found);
    CHECK(read_words_of_file(self, 8, addresses, values).value() == 1);
    const auto gone_too = read_words_of_file(0x3fffffff, 8, addresses, values);
    REQUIRE_FALSE(gone_too);
    CHECK(gone_too.error().code == ErrorCode::not_found);
    CHECK(read_words(self, 8, {}, {}).value_or(0) == 0);
}

TEST_CASE("the end of the mapping that contains an address") {
    const long page = ::sysconf(_SC_PAGESIZE);
    const auto size = static_cast<std::size_t>(3 * page);
    void* area = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area != MAP_FAILED);
    // Another protection, so that it is a separate mapping.
    REQUIRE(::mprotect(area, static_cast<std::size_t>(page), PROT_NONE) == 0);
    const std::uint64_t start = address_of(area);
    CHECK(end_of_area("/proc", self, start) == start + static_cast<std::uint64_t>(page));
    CHECK(end_of_area("/proc", self, start + static_cast<std::uint64_t>(page) - 1) ==
          start + static_cast<std::uint64_t>(page));
    CHECK(end_of_area("/proc", self, 8) == 0);
    ::munmap(area, size);
}
