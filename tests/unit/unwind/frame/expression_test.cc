// DWARF expressions. Expected values are computed by hand from DWARF 5, section 2.5.
#include "unwind/frame/expression.h"

#include <catch2/catch.hpp>

#include <string>

using namespace flamewire;
using namespace flamewire::unwind;
using namespace std::string_literals;

namespace {

// Memory in which the value at an address is the address + 1. Nothing below 0x100 is readable.
std::optional<std::uint64_t> address_plus_one(std::uint64_t address, std::uint8_t size) {
    if (address < 0x100) return std::nullopt;
    const std::uint64_t value = address + 1;
    return size == 8 ? value : value & ((std::uint64_t{1} << 8 * size) - 1);
}

struct Given {
    Arch arch = Arch::x86_64;
    std::optional<std::uint64_t> initial = std::nullopt;
    std::uint64_t bias = 0;
    bool big_endian = false;
};

std::optional<std::uint64_t> value_of(const std::string& code, const Given& given = {}) {
    Registers registers(given.arch);
    registers.set(register_names(given.arch).sp, 0x1000);
    registers.set(register_names(given.arch).pc, 0x401026);
    registers.set(2, 0x22);
    return evaluate(as_bytes_view(code), registers, address_plus_one, given.initial, given.bias, given.big_endian);
}

}  // namespace

TEST_CASE("Constants") {
    CHECK(value_of("\x30"s) == 0u);
    CHECK(value_of("\x4f"s) == 31u);
    CHECK(value_of("\x08\xff"s) == 0xffu);
    CHECK(value_of("\x09\xff"s) == ~std::uint64_t{0});
    CHECK(value_of("\x0a\x34\x12"s) == 0x1234u);
    CHECK(value_of("\x0a\x12\x34"s, {.big_endian = true}) == 0x1234u);
    CHECK(value_of("\x0b\xfe\xff"s) == ~std::uint64_t{1});
    CHECK(value_of("\x0c\x78\x56\x34\x92"s) == 0x92345678u);
    CHECK(value_of("\x0d\x78\x56\x34\x92"s) == 0xffffffff92345678u);
    CHECK(value_of("\x0e\x01\x02\x03\x04\x05\x06\x07\x08"s) == 0x0807060504030201u);
    CHECK(value_of("\x10\xe5\x8e\x26"s) == 624485u);
    CHECK(value_of("\x11\x9b\xf1\x59"s) == static_cast<std::uint64_t>(-624485));
    CHECK(value_of("\x03\x10\x00\x00\x00\x00\x00\x00\x00"s, {.bias = 0x4000}) == 0x4010u);
    CHECK(value_of("\x03\x10\x00\x00\x00"s, {.arch = Arch::arm, .bias = 0x4000}) == 0x4010u);
}

TEST_CASE("Registers and memory") {
    CHECK(value_of("\x77\x08"s) == 0x1008u);
    CHECK(value_of("\x77\x78"s) == 0xff8u);
    CHECK(value_of("\x92\x07\x08"s) == 0x1008u);
    CHECK(value_of("\x77\x00\x06"s) == 0x1001u);
    CHECK(value_of("\x77\x00\x94\x01"s) == 0x01u);
    CHECK(value_of("\x7d\x04"s, {.arch = Arch::arm}) == 0x1004u);
    CHECK_FALSE(value_of("\x70\x00"s));          // the value of rax is unknown
    CHECK_FALSE(value_of("\x92\x80\x01\x00"s));  // register 128
    CHECK_FALSE(value_of("\x31\x06"s));          // address 1 cannot be read
    CHECK_FALSE(value_of("\x77\x00\x94\x09"s));  // 9 bytes
    CHECK_FALSE(value_of("\x77\x00\x94\x00"s));
    CHECK_FALSE(value_of("\x7d\x00\x94\x08"s, {.arch = Arch::arm}));  // wider than an address
}

TEST_CASE("The stack") {
    CHECK(value_of("\x35\x12\x22"s) == 10u);             // dup plus
    CHECK(value_of("\x35\x36\x13"s) == 5u);              // drop
    CHECK(value_of("\x35\x36\x14\x1c"s) == 1u);          // over minus: 6 - 5
    CHECK(value_of("\x35\x36\x37\x15\x02"s) == 5u);      // pick 2
    CHECK(value_of("\x35\x36\x16\x1c"s) == 1u);          // swap: 6 - 5
    CHECK(value_of("\x31\x32\x33\x17"s) == 2u);          // rot: the second becomes the top
    CHECK(value_of("\x31\x32\x33\x17\x13"s) == 1u);      // then the former third
    CHECK(value_of("\x31\x32\x33\x17\x13\x13"s) == 3u);  // and the former top is now third
    CHECK(value_of(""s, {.initial = 77}) == 77u);
    CHECK(value_of("\x23\x09"s, {.initial = 77}) == 86u);
    CHECK_FALSE(value_of(""s));
    CHECK_FALSE(value_of("\x13"s));
    CHECK_FALSE(value_of("\x35\x22"s));
    CHECK_FALSE(value_of("\x35\x15\x01"s));
    CHECK(value_of(std::string(64, '\x31')) == 1u);
    CHECK_FALSE(value_of(std::string(65, '\x31')));
}

TEST_CASE("Arithmetic") {
    CHECK(value_of("\x09\xf6\x19"s) == 10u);  // abs(-10)
    CHECK(value_of("\x3a\x19"s) == 10u);
    CHECK(value_of("\x3f\x3a\x1a"s) == 10u);                                 // 15 & 10
    CHECK(value_of("\x09\xf6\x33\x1b"s) == static_cast<std::uint64_t>(-3));  // -10 / 3
    CHECK_FALSE(value_of("\x35\x30\x1b"s));
    CHECK_FALSE(value_of("\x35\x30\x1d"s));
    CHECK(value_of("\x0e\x00\x00\x00\x00\x00\x00\x00\x80\x09\xff\x1b"s) == 0x8000000000000000u);
    CHECK(value_of("\x3f\x34\x1d"s) == 3u);
    CHECK(value_of("\x35\x36\x1e"s) == 30u);
    CHECK(value_of("\x35\x1f"s) == static_cast<std::uint64_t>(-5));
    CHECK(value_of("\x30\x20"s) == ~std::uint64_t{0});
    CHECK(value_of("\x38\x37\x21"s) == 15u);
    CHECK(value_of("\x3f\x3a\x27"s) == 5u);
    CHECK(value_of("\x31\x08\x3f\x24"s) == 0x8000000000000000u);
    CHECK(value_of("\x31\x08\x40\x24"s) == 0u);  // by 64
    CHECK(value_of("\x09\xf0\x34\x25"s) == 0x0fffffffffffffffu);
    CHECK(value_of("\x09\xf0\x34\x26"s) == ~std::uint64_t{0});
    CHECK(value_of("\x09\xf0\x08\xff\x26"s) == ~std::uint64_t{0});
}

TEST_CASE("Numbers have the width of the target's addresses") {
    const Given arm{.arch = Arch::arm};
    CHECK(value_of("\x30\x20"s, arm) == 0xffffffffu);
    CHECK(value_of("\x09\xf0\x34\x26"s, arm) == 0xffffffffu);
    CHECK(value_of("\x09\xf0\x34\x25"s, arm) == 0x0fffffffu);
    CHECK(value_of("\x31\x08\x20\x24"s, arm) == 0u);  // by 32
    CHECK(value_of("\x09\xff\x30\x2d"s, arm) == 1u);  // -1 < 0
    CHECK(value_of("\x7d\x00\x06"s, arm) == 0x1001u);
}

TEST_CASE("Comparisons are signed, and branches") {
    CHECK(value_of("\x35\x35\x29"s) == 1u);
    CHECK(value_of("\x35\x36\x2e"s) == 1u);
    CHECK(value_of("\x09\xff\x30\x2a"s) == 0u);  // -1 >= 0
    CHECK(value_of("\x35\x35\x2a"s) == 1u);
    CHECK(value_of("\x36\x35\x2b"s) == 1u);
    CHECK(value_of("\x35\x35\x2b"s) == 0u);
    CHECK(value_of("\x35\x35\x2c"s) == 1u);
    CHECK(value_of("\x35\x35\x2d"s) == 0u);
    CHECK(value_of("\x2f\x01\x00\x31\x32"s) == 2u);          // skip over lit1
    CHECK(value_of("\x35\x31\x28\x01\x00\x31\x96"s) == 5u);  // taken
    CHECK(value_of("\x35\x30\x28\x01\x00\x31\x96"s) == 1u);  // not taken
    CHECK(value_of("\x35\x2f\x00\x00"s) == 5u);              // to the end
    CHECK_FALSE(value_of("\x35\x2f\x01\x00"s));              // after the end
    CHECK_FALSE(value_of("\x35\x2f\xf0\xff"s));              // before the beginning
    CHECK_FALSE(value_of("\x35\x2f\xfd\xff"s));              // endless loop
}

TEST_CASE("The expression that linkers write for x86-64's PLT") {
    // rsp + 8 + (((rip & 15) >= 11) << 3): the second instruction of an entry has already pushed a word.
    const std::string plt = "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"s;
    CHECK(value_of(plt) == 0x1008u);  // rip ends in 6
    Registers registers;
    registers.set(7, 0x1000);
    registers.set(16, 0x40102b);
    CHECK(evaluate(as_bytes_view(plt), registers, address_plus_one, std::nullopt, 0, false) == 0x1010u);
}

TEST_CASE("Damaged and unsupported expressions give nothing") {
    for (const char* code : {"\x08", "\x0a\x01", "\x10\x80", "\x77", "\x92\x07", "\x03\x01", "\x2f\x01", "\x15"})
        CHECK_FALSE(value_of(std::string("\x35") + code));
    // A register's location, the frame base, a call, TLS, pieces, the CFA inside a CFA, vendor extensions.
    for (const char* code : {"\x50", "\x91\x01", "\x98\x01\x01", "\x9b", "\x93\x08", "\x9c", "\xe0", "\xf3", "\x01"})
        CHECK_FALSE(value_of(std::string("\x35\x35") + code));
}

TEST_CASE("Operations are counted") {
    Registers registers;
    std::uint32_t allowance = 100;
    const std::string three = "\x35\x36\x22"s, endless = "\x35\x2f\xfd\xff"s;
    CHECK(evaluate(as_bytes_view(three), registers, address_plus_one, std::nullopt, 0, false, &allowance) == 11u);
    CHECK(allowance == 97);
    CHECK_FALSE(evaluate(as_bytes_view(endless), registers, address_plus_one, std::nullopt, 0, false, &allowance));
    CHECK(allowance == 0);
    CHECK_FALSE(evaluate(as_bytes_view(three), registers, address_plus_one, std::nullopt, 0, false, &allowance));
    // One expression may take 1,000 operations: 999 nops and a literal.
    CHECK(value_of("\x35"s + std::string(999, '\x96')) == 5u);
    CHECK_FALSE(value_of("\x35"s + std::string(1000, '\x96')));
}
