#include "wire/frame.h"

#include <catch2/catch.hpp>
#include <zstd.h>

#include <utility>

#include "base/hex.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

std::string bytes_of(const std::string& hex) { return *from_hex(hex); }

std::string zeros_compressed(std::size_t size, bool with_size) {
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size ? 1 : 0);
    const std::string zeros(size, '\0');
    std::string out(ZSTD_compressBound(size), '\0');
    out.resize(ZSTD_compress2(context, out.data(), out.size(), zeros.data(), zeros.size()));
    ZSTD_freeCCtx(context);
    return out;
}

}  // namespace

TEST_CASE("a frame is length, flag, payload") {
    CHECK(to_hex(encode_frame(Flag::reply, "{}")) == "00000002037b7d");
    CHECK(to_hex(encode_frame(Flag::batch_zstd, std::string(258, 'a')).substr(0, 6)) == "000001020661");
    const std::string header = bytes_of("00010203ff");
    const FrameHeader decoded = decode_header(as_bytes_view(header).first<header_bytes>());
    CHECK(decoded.payload_bytes == 0x10203);
    CHECK(static_cast<int>(decoded.flag) == 255);
}

TEST_CASE("frames are complete however the bytes arrived") {
    const std::string stream = bytes_of(
        "0000000003"
        "0000000108"
        "61"
        "00000003c8"
        "626364");
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        FrameDecoder decoder(3);
        std::string seen;
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            decoder.feed(as_bytes_view(std::string_view(stream).substr(at, piece)));
            for (auto frame = decoder.next(); *frame; frame = decoder.next())
                seen += std::to_string(static_cast<int>((*frame)->flag)) + "=" + (*frame)->payload + ";";
        }
        CHECK(seen == "3=;8=a;200=bcd;");
    }
}

TEST_CASE("a frame that is too large fails the stream permanently, but not the frames before it") {
    FrameDecoder decoder(3);
    decoder.feed(
        as_bytes_view(bytes_of("0000000103"
                               "61"
                               "0000000403")));
    auto first = decoder.next();
    REQUIRE(first);
    CHECK((*first)->payload == "a");
    for (int i = 0; i < 3; ++i) {
        const auto failed = decoder.next();
        REQUIRE_FALSE(failed);
        CHECK(failed.error().code == ErrorCode::too_large);
        decoder.feed(as_bytes_view(bytes_of("0000000003")));
    }
}

TEST_CASE("zstd: a round trip, with a checksum even if compression gains nothing") {
    const std::string text(5000, 'x');
    const Frame packed = batch_frame(text);
    CHECK(packed.flag == Flag::batch_zstd);
    CHECK(packed.payload.size() < 100);
    CHECK(*batch_bytes(packed) == text);
    CHECK(*decompress(as_bytes_view(compress(text)), 5000) == text);

    Frame small = batch_frame("\x01\x02");
    CHECK(small.flag == Flag::batch_zstd);
    CHECK(*batch_bytes(small) == "\x01\x02");
    CHECK(*batch_bytes({Flag::batch, "\x01\x02"}) == "\x01\x02");
    // Bytes that compression leaves unchanged are protected only by the checksum.
    for (char& byte : small.payload) {
        const char right = std::exchange(byte, static_cast<char>(byte ^ 0x10));
        const auto damaged = batch_bytes(small);
        CHECK((!damaged || *damaged == "\x01\x02"));
        byte = right;
    }
    CHECK_FALSE(batch_bytes(Frame{Flag::reply, "{}"}));
}

TEST_CASE("zstd: a round trip of every small size") {
    for (std::size_t size = 0; size < 200; ++size) {
        const std::string bytes(size, 'x');
        CAPTURE(size);
        CHECK(decompress(as_bytes_view(compress(bytes))).value() == bytes);
    }
}

TEST_CASE("zstd: bombs, damage and trailing bytes are refused") {
    // 2 GiB of zeros would compress to 64 KiB. This is 65 MiB in a few KiB, above the limit of 64 MiB.
    const std::string bomb = zeros_compressed(std::size_t{65} << 20, true);
    REQUIRE(bomb.size() < 10'000);
    CHECK(decompress(as_bytes_view(bomb)).error().code == ErrorCode::too_large);
    CHECK(batch_bytes(Frame{Flag::batch_zstd, bomb}).error().code == ErrorCode::too_large);

    CHECK(decompress(as_bytes_view(zeros_compressed(1000, false))).error().code == ErrorCode::invalid);
    CHECK(decompress({}).error().code == ErrorCode::invalid);
    CHECK(decompress(as_bytes_view("hello, no zstd here")).error().code == ErrorCode::invalid);

    const std::string good = compress("some text that is long enough to be compressed, long enough to be compressed");
    CHECK(decompress(as_bytes_view(good + "x")).error().code == ErrorCode::invalid);
    CHECK_FALSE(decompress(as_bytes_view(good + good)));
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK_FALSE(decompress(as_bytes_view(std::string_view(good).substr(0, size))));
    // A header that claims 60 MiB, followed by too few bytes.
    CHECK_FALSE(
        decompress(as_bytes_view(bytes_of("28b52ffda0"
                                          "0000c003"
                                          "010000"))));
}

TEST_CASE("zstd: 64 MiB are decompressed, one byte more is not") {
    REQUIRE(max_payload_from_agent == 64U << 20);
    const auto most = decompress(as_bytes_view(zeros_compressed(max_payload_from_agent, true)));
    REQUIRE(most);
    CHECK(most->size() == max_payload_from_agent);
    CHECK(decompress(as_bytes_view(zeros_compressed(max_payload_from_agent + 1, true))).error().code ==
          ErrorCode::too_large);
}
