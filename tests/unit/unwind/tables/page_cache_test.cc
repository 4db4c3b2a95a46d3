// The page cache over a source that counts its reads.
#include "unwind/tables/page_cache.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace flamewire::unwind {
namespace {

constexpr std::size_t page = PageCache::page_size;

// A file of `size` bytes in which the byte at n is n / page_size + `salt`.
struct File {
    std::size_t size = 0;
    unsigned salt = 0;
    std::vector<std::uint64_t> reads{};
    bool broken = false;

    elf::ByteSource source() {
        return [this](std::uint64_t offset, std::size_t count) -> Result<std::string> {
            reads.push_back(offset);
            if (broken) return fail(ErrorCode::io, "broken");
            std::string bytes;
            for (std::uint64_t at = offset; at < size && bytes.size() < count; ++at)
                bytes.push_back(static_cast<char>(at / page + salt));
            return bytes;
        };
    }
};

TEST_CASE("a page is read once and has the file's bytes") {
    File file{3 * page + 100};
    const elf::ByteSource source = file.source();
    PageCache cache(1 << 20);
    for (int round = 0; round < 2; ++round) {
        CHECK(as_text(cache.page(1, source, 2)) == std::string(page, '\2'));
        CHECK(as_text(cache.page(1, source, 0)) == std::string(page, '\0'));
        CHECK(as_text(cache.page(1, source, 3)) == std::string(100, '\3'));
        CHECK(cache.page(1, source, 4).empty());
    }
    CHECK(file.reads == std::vector<std::uint64_t>{2 * page, 0, 3 * page, 4 * page});
}

TEST_CASE("modules do not share pages") {
    File one{page, 10}, two{page, 20};
    const elf::ByteSource first = one.source(), second = two.source();
    PageCache cache(1 << 20);
    CHECK(as_text(cache.page(1, first, 0)).front() == 10);
    CHECK(as_text(cache.page(2, second, 0)).front() == 20);
    CHECK(as_text(cache.page(1, first, 0)).front() == 10);
    cache.forget(1);
    cache.page(2, second, 0);
    CHECK(two.reads.size() == 1);
    cache.page(1, first, 0);
    CHECK(one.reads.size() == 2);
}

TEST_CASE("a page that cannot be read is not read again and again") {
    File file{page};
    file.broken = true;
    const elf::ByteSource source = file.source();
    PageCache cache(1 << 20);
    CHECK(cache.page(1, source, 0).empty());
    CHECK(cache.page(1, source, 0).empty());
    CHECK(file.reads.size() == 1);
    // A page whose offset no file can have is not read at all.
    CHECK(cache.page(1, source, ~std::uint64_t{0}).empty());
    CHECK(file.reads.size() == 1);
}

TEST_CASE("the least recently used page is evicted, and the limit holds") {
    File file{1000 * page};
    const elf::ByteSource source = file.source();
    constexpr std::size_t limit = 100 * page;
    PageCache cache(limit);
    std::size_t highest = 0;
    for (std::uint64_t number = 0; number < 1000; ++number) {
        cache.page(1, source, number);
        cache.page(1, source, 0);  // always in use
        highest = std::max(highest, cache.memory_bytes());
    }
    CHECK(highest <= limit + limit / 50);  // a vector grows in steps
    CHECK(highest > limit / 2);
    CHECK(file.reads.size() == 1000);  // page 0 only once
    cache.page(1, source, 999);
    cache.page(1, source, 950);
    CHECK(file.reads.size() == 1000);
    cache.page(1, source, 800);
    CHECK(file.reads.size() == 1001);
}

TEST_CASE("a smaller limit frees pages, and one page stays even without any room") {
    File file{100 * page};
    const elf::ByteSource source = file.source();
    PageCache cache(1 << 20);
    for (std::uint64_t number = 0; number < 100; ++number) cache.page(1, source, number);
    CHECK(cache.memory_bytes() > 100 * page);
    cache.set_limit(10 * page);
    CHECK(cache.memory_bytes() < 20 * page);
    cache.set_limit(0);
    CHECK(as_text(cache.page(1, source, 5)) == std::string(page, '\5'));
    CHECK(as_text(cache.page(1, source, 6)) == std::string(page, '\6'));
    CHECK(file.reads.size() == 102);
}

TEST_CASE("many empty pages are bounded, too") {
    File file{0};
    const elf::ByteSource source = file.source();
    PageCache cache(64 << 10);
    for (std::uint64_t number = 0; number < 100'000; ++number) cache.page(1, source, number);
    CHECK(cache.memory_bytes() < 128 << 10);
}

}  // namespace
}  // namespace flamewire::unwind
