#include "base/bytes.h"

#include <catch2/catch.hpp>

#include <string>

#include "base/hex.h"
#include "base/result.h"

using namespace flamewire;

TEST_CASE("a reader cannot run past its bytes") {
    const std::string bytes("\x01\x02\x03\x04\x05", 5);
    ByteReader reader(as_bytes_view(bytes));
    CHECK(reader.read_big_endian<std::uint32_t>() == 0x01020304U);
    CHECK(reader.remaining() == 1);
    CHECK(reader.ok());
    CHECK(reader.read<std::uint16_t>() == 0);
    CHECK_FALSE(reader.ok());
    // Failed once is failed for all, though one byte is left.
    CHECK(reader.read<std::uint8_t>() == 0);
    CHECK_FALSE(reader.ok());
}

TEST_CASE("strings end at their NUL or not at all") {
    const std::string bytes("abc\0de", 6);
    ByteReader reader(as_bytes_view(bytes));
    CHECK(reader.read_c_string() == "abc");
    CHECK(reader.read_c_string().empty());
    CHECK_FALSE(reader.ok());
}

TEST_CASE("a sub-span larger than what is left fails without reading") {
    const std::string bytes("abcd");
    ByteReader reader(as_bytes_view(bytes));
    CHECK(reader.read_bytes(SIZE_MAX).empty());
    CHECK_FALSE(reader.ok());
    std::uint32_t value = 0;
    CHECK_FALSE(read_at(as_bytes_view(bytes), UINT64_MAX, value));
    CHECK_FALSE(read_at(as_bytes_view(bytes), 1, value));
    CHECK(read_at(as_bytes_view(bytes), 0, value));
}

TEST_CASE("hex goes both ways and refuses what is none") {
    const std::string bytes("\x00\xff\x1a", 3);
    CHECK(to_hex(bytes) == "00ff1a");
    CHECK(from_hex("00FF1a") == bytes);
    CHECK_FALSE(from_hex("0").has_value());
    CHECK_FALSE(from_hex("0g").has_value());
}

static Result<int> half_of(int value) {
    if (value % 2 != 0) return fail(ErrorCode::invalid, "odd");
    return value / 2;
}

static Result<int> quarter_of(int value) {
    const int half = TRY(half_of(value));
    return TRY(half_of(half));
}

TEST_CASE("TRY returns the first error") {
    CHECK(quarter_of(12).value() == 3);
    REQUIRE_FALSE(quarter_of(6).has_value());
    CHECK(quarter_of(6).error().message == "odd");
}

TEST_CASE("errno becomes a code and words") {
    const Error error = fail_errno("open /nowhere", ENOENT).error();
    CHECK(error.code == ErrorCode::not_found);
    CHECK(error.message == "open /nowhere: No such file or directory");
    CHECK(fail_errno("x", EPERM).error().code == ErrorCode::permission);
    CHECK(fail_errno("x", 99999).error().message == "x: unknown error");
}
