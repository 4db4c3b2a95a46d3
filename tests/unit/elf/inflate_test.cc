// zlib streams that zlib made (by Python's zlib module), and damaged ones. The fuzz target compares with zlib itself.
#include "elf/inflate.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include "compressed_bytes.h"

using namespace flamewire;
using elf::bytes_of;
using elf::decompress_zlib;
using elf::text;

namespace {

// Letters of different frequency, a run of digits, and the first letters again, which are 1,000 bytes away.
std::string letters() {
    std::string letters;
    std::uint32_t state = 1;
    for (int i = 0; i < 700; ++i) {
        state = state * 1103515245 + 12345;
        letters += static_cast<char>('a' + std::min((state >> 16) % 40, (state >> 24) % 6));
    }
    const std::string first = letters.substr(0, 300);
    for (int i = 0; i < 30; ++i) letters += "0123456789";
    return letters + first;
}

// text() in one block with the fixed code, and in several, each of which ends at a byte
const std::string fixed = bytes_of(
    "78da0bc94855282ccd4cce56482aca2fcf5348cbaf50c82acd2d2856c82f4b2d5228014ae72456552aa4e4a7eb29848c2a26"
    "57b181a191b189a999b98525e92c748b92134b2016e9010006019702");
const std::string blocks = bytes_of(
    "78da0ac94855282ccd4cce56482aca2fcf5348cbaf50c82acd2d2856c82f4b2d5228014ae72456552aa4e4a7eb298490a718"
    "000000ffff4a2aca2fcf5348cbaf50c82acd2d2856c82f4b2d5228c94855c849acaa5448c94fd7530801f20a4b3393b31592"
    "c8530c000000ffffca2acd2d2856c82f4b2d5228c94855c849acaa5448c94fd7530801f20a4b3393b315928af2cbf314d2f2"
    "2b14b2c8530c000000ffff5228c94855c849acaa5448c94fd7530801f20a4b3393b315928af2cbf314d2f22b14b24a730b8a"
    "15f2cb528b1450151b181a199b989a995b58e26701000000ffff3230343236313533b7b03480b3423252150a4b3393b31592"
    "8af2cbf31492134b14b24a730b8af500000000ffff030006019702");
// 60 random bytes, not compressed
const std::string stored = bytes_of(
    "7801013c00c3ff82b70eee7f1a5039bef07ec2347f066ed08f5dc7512447e3404300026b6e545594a065685d64c4980bb8d4"
    "544a8721a99a01ad219eb59cf6a15ef6f138491c6e");
const std::string random_bytes = bytes_of(
    "82b70eee7f1a5039bef07ec2347f066ed08f5dc7512447e3404300026b6e545594a065685d64c4980bb8d4544a8721a99a01"
    "ad219eb59cf6a15ef6f1");
// letters(), with a code of its own
const std::string dynamic = bytes_of(
    "78daed93d9552e4108845372bb570d878222ff10fc8adf770dc033cbe981865ae8d99a9955ed58d6dae5dd69f7d47669bb49"
    "ec8c763d5db5ea2539329f44abb7345b5cdd794d9a88186b8b3d5cd492bcaeea56f178806aa98abba6c06a8a816027b084aa"
    "f324463d3872875342d9252979f8afe94d4ed021e409380c21054da995c201e19a93a382a5017224a3910a76c2d3e1844a40"
    "4b619ba7694f53a0cabc9167f28a3779824b0723c66176a5c89c20e26e9c0b7057ba3bb58364c2ae874578852fbce96dbe06"
    "8e8369a0c5ec238e532c08443ffd3c1903ee45c5b7df2067806841b81fb3cd6e40c34fd973b38ea01b8083c14d9609763ad2"
    "059d9b0160ef39067ee76ca41a60281e66a6e847fb8ded3025085486dafa3e39ba7cb83b93a2e5cd66182090e5202431313d"
    "e72a26df01c904c6273e283714981ecff6d3f3cbebdbbfffef1f9f7fab9f56fbf79ffffa3fff02ec8dc1bd");
// 2,000 times "a": what is copied overlaps with itself
const std::string run = bytes_of("78da4b4c1c05a360148c8251300a46c150070064c6f5ef");

std::optional<std::string> plain(const std::string& stream, std::size_t limit = 1 << 20) {
    return decompress_zlib(as_bytes_view(stream), limit);
}

// A stream of these bits behind a valid head, the lowest bit of each byte first.
std::string stream_of_bits(std::string_view bits) {
    std::string stream = bytes_of("7801");
    for (std::size_t at = 0; at < bits.size(); at += 8) {
        unsigned byte = 0;
        for (std::size_t i = at; i < std::min(at + 8, bits.size()); ++i)
            byte |= static_cast<unsigned>(bits[i] == '1') << (i - at);
        stream += static_cast<char>(byte);
    }
    return stream;
}

}  // namespace

TEST_CASE("zlib streams as zlib makes them") {
    CHECK(plain(fixed) == text());
    CHECK(plain(blocks) == text());
    CHECK(plain(stored) == random_bytes);
    CHECK(plain(dynamic) == letters());
    CHECK(plain(run) == std::string(2000, 'a'));
}

TEST_CASE("A zlib stream larger than the limit is refused") {
    for (const std::string* stream : {&fixed, &blocks, &stored, &dynamic, &run}) {
        const std::size_t size = plain(*stream)->size();
        CHECK(plain(*stream, size));
        CHECK_FALSE(plain(*stream, size - 1));
        CHECK_FALSE(plain(*stream, 0));
    }
}

TEST_CASE("A cut zlib stream is refused") {
    constexpr std::size_t checksum = 4;  // is not looked at
    for (const std::string* stream : {&fixed, &blocks, &stored, &dynamic, &run}) {
        for (std::size_t size = 0; size < stream->size() - checksum; ++size)
            CHECK_FALSE(plain(stream->substr(0, size)));
        CHECK(plain(stream->substr(0, stream->size() - checksum)));
    }
}

TEST_CASE("Damaged zlib streams are refused") {
    CHECK_FALSE(plain(bytes_of("7901") + fixed.substr(2)));  // another method
    CHECK_FALSE(plain(bytes_of("8801") + fixed.substr(2)));  // a window larger than allowed
    CHECK_FALSE(plain(bytes_of("7802") + fixed.substr(2)));  // the head's check bits
    CHECK_FALSE(plain(bytes_of("7820") + fixed.substr(2)));  // a preset dictionary
    CHECK_FALSE(plain(stream_of_bits("111")));               // a block of no kind
    CHECK_FALSE(plain(bytes_of("7801010100fdff61")));        // two sizes of a stored block that do not agree
    // A copy from before the beginning: the fixed code's length 3 (0000001) and distance 1 (00000).
    CHECK_FALSE(
        plain(stream_of_bits("110"
                             "0000001"
                             "00000"
                             "0000000")));
    CHECK(plain(stream_of_bits("110"
                               "10010001"
                               "0000001"
                               "00000"
                               "0000000")) == "aaaa");
    CHECK_FALSE(
        plain(stream_of_bits("110"
                             "11000110"
                             "0000000")));  // length 286 is none
    CHECK_FALSE(
        plain(stream_of_bits("110"
                             "10010001"
                             "0000001"
                             "11110"
                             "0000000")));  // distance 30 is none
}

TEST_CASE("Codes of a zlib stream that are none are refused") {
    // 257 literals, 1 distance; lengths of the first four code lengths (16, 17, 18, 0), the lowest bit first.
    const std::string head = std::string("101") + "00000" + "00000" + "0000";
    CHECK_FALSE(plain(stream_of_bits(head + "100"
                                            "100"
                                            "100"
                                            "000")));  // three codes of one bit
    CHECK_FALSE(plain(stream_of_bits(head + "010"
                                            "010"
                                            "010"
                                            "000"
                                            "00")));  // a quarter of all bits is not a code
    CHECK_FALSE(plain(stream_of_bits(head + "100"
                                            "000"
                                            "100"
                                            "000"
                                            "0")));  // the length before the first one again
    // All lengths are 0: the end of the block has no code.
    CHECK_FALSE(plain(stream_of_bits(head + "000"
                                            "000"
                                            "100"
                                            "100"
                                            "1"
                                            "1111111"
                                            "1"
                                            "1101101")));
}
