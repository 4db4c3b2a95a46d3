#include "symbol/files/symbol_table.h"

#include <catch2/catch.hpp>

#include <sstream>

#include "../fixture.h"
#include "symbol/files/plt.h"

namespace flamewire::symbol {
namespace {

std::string name_at(const SymbolTable& table, std::uint64_t address) {
    const std::uint32_t symbol = table.find(address);
    return symbol == SymbolTable::none ? "-" : std::string(table.name(symbol));
}

TEST_CASE("sizes, gaps, aliases and symbols without size") {
    SymbolTable table;
    table.begin_file("a.c");
    table.add(0x100, 0x10, 0x1000, "first", true);
    table.add(0x200, 0x10, 0x1000, "small");
    table.add(0x200, 0x20, 0x1000, "large");
    table.add(0x200, 0x20, 0x1000, "large_again");
    table.add(0x200, 0, 0x1000, "label");
    table.add(0x300, 0, 0x320, "assembly");
    table.add(0x310, 4, 0x320, "inside");
    table.begin_file("b.c");
    table.add(~std::uint64_t{0} - 1, 100, 0, "wraps", true);
    table.sort();
    CHECK(name_at(table, 0xff) == "-");
    CHECK(name_at(table, 0x100) == "first");
    CHECK(name_at(table, 0x10f) == "first");
    CHECK(name_at(table, 0x110) == "-");
    CHECK(name_at(table, 0x200) == "large_again");
    CHECK(name_at(table, 0x21f) == "large_again");
    CHECK(name_at(table, 0x220) == "-");
    CHECK(name_at(table, 0x30f) == "assembly");
    CHECK(name_at(table, 0x310) == "inside");
    CHECK(name_at(table, 0x314) == "-");
    CHECK(name_at(table, ~std::uint64_t{0} - 1) == "wraps");
    CHECK(table.file(table.find(0x100)) == "a.c");
    CHECK(table.file(table.find(0x200)).empty());
    CHECK(table.file(table.find(~std::uint64_t{0} - 1)) == "b.c");
}

TEST_CASE("a symbol without size ends with its section") {
    SymbolTable table;
    table.add(0x100, 0, 0x180, "_init");
    table.sort();
    CHECK(name_at(table, 0x17f) == "_init");
    CHECK(name_at(table, 0x180) == "-");
    CHECK(name_at(SymbolTable(), 0) == "-");
}

TEST_CASE("the symbols of a real file") {
    auto full = ObjectFile::open(fixture("full"));
    auto stripped = ObjectFile::open(fixture("stripped"));
    REQUIRE(full);
    REQUIRE(stripped);
    CHECK(full->quality() == Quality::debug_info);
    CHECK(stripped->quality() == Quality::dynamic_symbols);
    const SymbolTable table = SymbolTable::of_elf(full->elf(), full->header().machine);
    const auto addresses = addresses_of(fixture("full"));
    CHECK(name_at(table, addresses.at("plain") - 1) == "_ZN4shop3payEi");
    CHECK(name_at(table, addresses.at("c-function") - 1) == "c_function");
    CHECK_FALSE(table.kernel_text());
}

// clang has one call through a stub less.
#ifdef __clang__
constexpr std::size_t wanted_stubs = 1;
#else
constexpr std::size_t wanted_stubs = 2;
#endif

TEST_CASE("call stubs have the disassembler's names, also in a stripped file") {
    const std::string listing =
        output_of("objdump -d --no-show-raw-insn -j .plt -j .plt.sec -j .plt.got " + fixture("full") + " 2>/dev/null");
    for (const std::string build : {"full", "stripped"}) {
        auto file = ObjectFile::open(fixture(build));
        REQUIRE(file);
        SymbolTable table;
        add_plt_symbols(file->elf(), file->header().machine, table);
        table.sort();
        std::istringstream lines(listing);
        std::size_t stubs = 0;
        for (std::string line; std::getline(lines, line);) {  // "0000000000401040 <printf@plt>:"
            const std::size_t open = line.find(" <"), close = line.find("@plt>:");
            if (open == std::string::npos || close == std::string::npos) continue;
            const std::string name = line.substr(open + 2, close - open - 2) + "@plt";
            const std::uint64_t address = std::stoull(line, nullptr, 16);
            if (name.starts_with("*ABS*")) continue;
            CHECK(name_at(table, address) == name);
            CHECK(name_at(table, address + 5) == name);
            ++stubs;
        }
        CHECK(stubs >= wanted_stubs);
        CHECK(table.size() == stubs);
    }
}

}  // namespace
}  // namespace flamewire::symbol
