#include "agent/pipeline/stack_pages.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/system.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// A process whose memory ends at `end`.
class Memory final : public System {
public:
    std::uint64_t end = ~std::uint64_t{0};
    int error = 0;
    unsigned calls = 0;
    std::vector<std::uint64_t> read;

    std::ptrdiff_t read_memory(std::uint32_t, std::size_t word, std::span<const std::uint64_t> addresses,
                               std::span<std::byte>) override {
        ++calls;
        if (error != 0) return -error;
        read.assign(addresses.begin(), addresses.end());
        const auto there = std::ranges::count_if(addresses, [&](std::uint64_t address) { return address < end; });
        return there == 0 ? -EFAULT : there * static_cast<std::ptrdiff_t>(word);
    }
    std::uint64_t constant(Constant which) override {
        return which == Constant::page_bytes ? 4096 : System::constant(which);
    }
};

constexpr std::uint64_t stack = 0x7ffc'0000'0000, second_ns = 1'000'000'000;

}  // namespace

TEST_CASE("A word of each missing stack page is read") {
    Memory memory;
    const UseSystem used(&memory);
    StackPages pages;
    CHECK(pages.make_present(7, stack + 4096, 8192, second_ns));
    CHECK(memory.read == std::vector<std::uint64_t>{stack + 4096, stack + 8192});
    // The last copy ended within a page, which may be gone by now.
    CHECK(pages.make_present(7, stack + 4000, 200, second_ns));
    CHECK(memory.read == std::vector<std::uint64_t>{stack, stack + 4096});
    CHECK(pages.make_present(7, stack, 1 << 20, second_ns));
    CHECK(memory.read.size() == 17);
    CHECK_FALSE(pages.make_present(7, stack, 0, second_ns));
    CHECK(memory.calls == 3);
}

TEST_CASE("Pages after the end of a stack, and unreadable ones, are not present") {
    Memory memory;
    const UseSystem used(&memory);
    StackPages pages;
    memory.end = stack;
    CHECK_FALSE(pages.make_present(7, stack, 4096, second_ns));
    memory.end = stack + 1;
    CHECK(pages.make_present(7, stack, 8192, second_ns));
    memory.error = EPERM;
    CHECK_FALSE(pages.make_present(7, stack, 8192, second_ns));
}

TEST_CASE("Stack pages are read at most 500 times per second") {
    Memory memory;
    const UseSystem used(&memory);
    StackPages pages;
    for (int i = 0; i < 500; ++i) REQUIRE(pages.make_present(7, stack, 4096, second_ns + 1));
    CHECK_FALSE(pages.make_present(7, stack, 4096, 2 * second_ns));
    CHECK(memory.calls == 500);
    CHECK(pages.make_present(7, stack, 4096, 2 * second_ns + 1));
}
