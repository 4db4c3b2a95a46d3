#include "process/kernel_symbols.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using process::KernelSymbols;

namespace {

constexpr std::uint64_t begin = 0xffff'ffff'c000'1000;

perf::KsymbolRecord loaded(std::uint64_t address, std::uint32_t size) {
    perf::KsymbolRecord record;
    record.address = address;
    record.size = size;
    return record;
}

perf::KsymbolRecord removed(std::uint64_t address) {
    perf::KsymbolRecord record = loaded(address, 0);
    record.gone = true;
    return record;
}

}  // namespace

TEST_CASE("loaded code has its name until it is removed or replaced") {
    KernelSymbols symbols(100);
    CHECK(symbols.name_at(begin).empty());
    CHECK(symbols.follow(loaded(begin, 0x80), "one"));
    CHECK(symbols.follow(loaded(begin + 0x100, 0x80), "two"));
    CHECK(symbols.name_at(begin - 1).empty());
    CHECK(symbols.name_at(begin) == "one");
    CHECK(symbols.name_at(begin + 0x7f) == "one");
    CHECK(symbols.name_at(begin + 0x80).empty());
    CHECK(symbols.name_at(begin + 0x100) == "two");
    CHECK(symbols.follow(loaded(begin, 0x10), "three"));
    CHECK(symbols.name_at(begin + 0xf) == "three");
    CHECK(symbols.name_at(begin + 0x10).empty());
    CHECK(symbols.follow(removed(begin), ""));
    CHECK(symbols.name_at(begin).empty());
    CHECK(symbols.name_at(begin + 0x100) == "two");
}

TEST_CASE("code that was loaded before the recording is reported when it is removed") {
    KernelSymbols symbols(100);
    CHECK(symbols.follow(loaded(begin, 0x80), "one"));
    CHECK_FALSE(symbols.follow(removed(begin + 8), ""));
    CHECK_FALSE(symbols.follow(removed(begin - 8), ""));
    CHECK(symbols.name_at(begin + 8) == "one");
}

TEST_CASE("code at the last addresses") {
    KernelSymbols symbols(100);
    CHECK(symbols.follow(loaded(~std::uint64_t{0xf}, 0x10), "last"));
    CHECK(symbols.name_at(~std::uint64_t{0}) == "last");
}

TEST_CASE("symbols are bounded") {
    KernelSymbols symbols(2);
    for (std::uint64_t i = 0; i < 3; ++i) CHECK(symbols.follow(loaded(begin + 0x100 * i, 0x80), "one"));
    CHECK(symbols.name_at(begin + 0x100) == "one");
    CHECK(symbols.name_at(begin + 0x200).empty());
}
