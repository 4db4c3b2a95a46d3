// The count of a thread's heap memory.
#include "server/session/heap_use.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace flamewire::server {
namespace {

constexpr std::int64_t mib = 1 << 20;

TEST_CASE("heap use is what a thread has allocated and not freed") {
    const HeapUse use;
    CHECK(use.bytes() == 0);
    {
        const std::vector<char> large(static_cast<std::size_t>(3 * mib));
        CHECK(use.bytes() >= 3 * mib);
        CHECK(use.bytes() < 4 * mib);
        std::thread([] { const std::vector<char> of_another_thread(static_cast<std::size_t>(9 * mib)); }).join();
        CHECK(use.bytes() < 4 * mib);
    }
    CHECK(use.bytes() < mib);
    CHECK(use.peak_bytes() >= 3 * mib);
    CHECK(use.peak_bytes() < 4 * mib);
}

TEST_CASE("heap use counts every form of new, with small sizes rounded up") {
    const HeapUse use;
    std::vector<std::unique_ptr<char[]>> pieces;
    pieces.reserve(10'000);
    const std::int64_t before = use.bytes();
    for (int i = 0; i < 10'000; ++i) pieces.emplace_back(new char[20]);
    CHECK(use.bytes() - before >= 10'000 * 20);
    pieces.clear();
    CHECK(use.bytes() == before);
    std::unique_ptr<char> one(new (std::nothrow) char);
    CHECK(use.bytes() > before);
}

TEST_CASE("heap use begins at 0 each time, and becomes negative when earlier memory is freed") {
    auto before = std::make_unique<std::vector<char>>(static_cast<std::size_t>(mib));
    const HeapUse use;
    before.reset();
    CHECK(use.bytes() <= -mib);
    CHECK(use.peak_bytes() == 0);
}

}  // namespace
}  // namespace flamewire::server
