#include "base/bytes.h"

#include <catch2/catch.hpp>

#include <string>

#include "base/hex.h"
#include "base/result.h"

using namespace flamewire;

TEST_CASE("a value is read only if all its bytes exist") {
    const std::string bytes("abcd");
    std::uint32_t value = 0;
    CHECK_FALSE(read_at(as_bytes_view(bytes), UINT64_MAX, value));
    CHECK_FALSE(read_at(as_bytes_view(bytes), 1, value));
    CHECK(read_at(as_bytes_view(bytes), 0, value));
}

TEST_CASE("hex is encoded and decoded, and invalid text is refused") {
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

TEST_CASE("errno becomes a code and a message") {
    const Error error = fail_errno("open /nowhere", ENOENT).error();
    CHECK(error.code == ErrorCode::not_found);
    CHECK(error.message == "open /nowhere: No such file or directory");
    CHECK(fail_errno("x", EPERM).error().code == ErrorCode::permission);
    CHECK(fail_errno("x", 99999).error().message == "x: unknown error");
}
