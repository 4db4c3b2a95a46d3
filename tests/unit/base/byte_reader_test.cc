#include "base/byte_reader.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/varint.h"

using namespace flamewire;

namespace {

ByteReader reader_of(std::string_view text, std::endian order = std::endian::native) {
    return ByteReader(as_bytes_view(text), order);
}

}  // namespace

TEST_CASE("numbers in either byte order") {
    const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    for (const std::endian order : {std::endian::big, std::endian::little}) {
        const bool big = order == std::endian::big;
        CHECK(reader_of(bytes, order).u8() == 1);
        CHECK(reader_of(bytes, order).u16() == (big ? 0x0102 : 0x0201));
        CHECK(reader_of(bytes, order).u32() == (big ? 0x01020304U : 0x04030201U));
        CHECK(reader_of(bytes, order).u64() == (big ? 0x0102030405060708U : 0x0807060504030201U));
        CHECK(reader_of(bytes, order).number(3) == (big ? 0x010203U : 0x030201U));
        for (const std::size_t size : {1U, 2U, 4U, 8U}) {
            ByteReader by_size = reader_of(bytes, order), by_name = by_size;
            const std::uint64_t named = size == 1   ? by_name.u8()
                                        : size == 2 ? by_name.u16()
                                        : size == 4 ? by_name.u32()
                                                    : by_name.u64();
            CHECK(by_size.number(size) == named);
            CHECK(by_size.position() == size);
        }
        ByteReader in = reader_of(bytes, order);
        std::vector<std::uint64_t> words{7, 7, 7};
        in.words(1, words);
        CHECK(words == std::vector<std::uint64_t>{big ? 0x0102030405060708U : 0x0807060504030201U});
        CHECK((in.ok() && in.at_end()));
    }
}

TEST_CASE("LEB128 with the examples of DWARF 5, section 7.6") {
    ByteReader in = reader_of(std::string_view("\x02\x7f\x80\x01\x81\x01\x82\x01\xb9\x64", 10));
    for (const std::uint64_t value : {2U, 127U, 128U, 129U, 130U, 12857U}) CHECK(in.uleb() == value);
    CHECK((in.ok() && in.at_end()));
    ByteReader with_sign = reader_of(std::string_view("\x02\x7e\xff\x00\x81\x7f\x80\x01\x80\x7f\x81\x01\xff\x7e", 14));
    for (const std::int64_t value : {2, -2, 127, -127, 128, -128, 129, -129}) CHECK(with_sign.sleb() == value);
    CHECK((with_sign.ok() && with_sign.at_end()));
}

TEST_CASE("LEB128 drops bits beyond the 64th, and an unfinished number is an error") {
    const std::string long_one = std::string(9, '\xff') + "\x7f";
    CHECK(reader_of(long_one).uleb() == UINT64_MAX);
    CHECK(reader_of(long_one).sleb() == -1);
    CHECK(reader_of(std::string(20, '\x80') + std::string(1, '\x01')).uleb() == 0);
    for (const bool with_sign : {false, true}) {
        ByteReader in = reader_of("\xff\xff");
        CHECK((with_sign ? static_cast<std::uint64_t>(in.sleb()) : in.uleb()) == 0);
        CHECK_FALSE(in.ok());
    }
}

TEST_CASE("the first read beyond the end fails all later ones") {
    const std::string bytes("\x01\x02\x03\x04\x05", 5);
    ByteReader in = reader_of(bytes, std::endian::big);
    CHECK(in.u32() == 0x01020304U);
    CHECK(in.remaining() == 1);
    CHECK(in.ok());
    CHECK(in.u16() == 0);
    CHECK_FALSE(in.ok());
    // One byte was left.
    CHECK(in.u8() == 0);
    CHECK((in.remaining() == 0 && in.at_end() && in.position() == bytes.size()));
    CHECK(in.rest().empty());
    in.skip(0);
    CHECK_FALSE(in.ok());
}

TEST_CASE("a size larger than the rest fails without reading") {
    const std::string bytes("abcd");
    CHECK(reader_of(bytes).bytes(UINT64_MAX).empty());
    for (const std::uint64_t count : {std::uint64_t{1}, UINT64_MAX / 8, UINT64_MAX / 8 + 2, UINT64_MAX}) {
        ByteReader in = reader_of(bytes);
        std::vector<std::uint64_t> words{1};
        in.words(count, words);
        CHECK((words.empty() && !in.ok()));
    }
    ByteReader in = reader_of(bytes);
    in.skip(UINT64_MAX);
    CHECK_FALSE(in.ok());
}

TEST_CASE("a reader without bytes") {
    ByteReader in{Bytes{}};
    CHECK((in.ok() && in.at_end() && in.text().empty() && in.ok()));
    CHECK((in.c_string().empty() && !in.ok()));
}

TEST_CASE("seeking goes only forward") {
    ByteReader in = reader_of("abcd");
    in.seek(2);
    CHECK(in.u8() == 'c');
    in.seek(3);
    CHECK((in.ok() && in.position() == 3));
    in.seek(2);
    CHECK_FALSE(in.ok());
}

TEST_CASE("strings end at their NUL or fail") {
    ByteReader in = reader_of(std::string_view("abc\0de", 6));
    CHECK(in.c_string() == "abc");
    ByteReader padded = in;
    CHECK(in.c_string().empty());
    CHECK_FALSE(in.ok());
    CHECK(padded.text() == "de");
    CHECK((padded.ok() && padded.at_end()));
}

TEST_CASE("numbers of variable length are refused beyond 64 bits") {
    const std::string most = std::string(9, '\xff') + "\x01";
    ByteReader in = reader_of(most);
    CHECK(read_varint(in) == UINT64_MAX);
    ByteReader beyond = reader_of(std::string(9, '\xff') + "\x02");
    (void)read_varint(beyond);
    CHECK_FALSE(beyond.ok());
}
