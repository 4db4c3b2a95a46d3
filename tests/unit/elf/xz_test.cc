// xz streams that the xz tool made, and damaged ones.
#include "elf/xz.h"

#include <catch2/catch.hpp>

#include <string>

#include "compressed_bytes.h"

using namespace flamewire;
using elf::bytes_of;
using elf::decompress_xz;
using elf::text;

namespace {

// xz -9 --check=crc32
const std::string one_block = bytes_of(
    "fd377a585a0000016922de36020021011c00000010cf58cce001bd00495d002a1a08a2032566f14b78c5a205ff2ee6d9d220"
    "1aad34f8e21de84136fadc0669bb3ce410342709ebb366e3ed3798ed925f468532918c29b4a77737fe992c767f8c87e3ccad"
    "258c568000000000878e7a00000161be03000000b911bfbd3e300d8b020000000001595a");
// xz --block-size=100 --check=none --lzma2=lc=0,lp=2,pb=1
const std::string five_blocks = bytes_of(
    "fd377a585a000000ff12d9410200210116000000742fe5a3e0006300343f002a1a0907249edbdc6a0de0855907d5dc21b603"
    "f50b77f3d9aee79ab01b1ea243234d7377821dd5383ac772f7736aa14ebb4a0000000200210116000000742fe5a3e0006300"
    "343f00311c8a56ecd7739bd9de14222a9db276d77aa62a6acd53037f12b40b1765f9811aadd7d1afe2c99b1ecd06a91c615e"
    "a5f87fa000000200210116000000742fe5a3e0006300343f00351d4a1475ec0204bec82f52b56ed851e913349a5d90423d16"
    "7c40225359bcd8edea6094752799a9c7abbe0012eee4780a16f000000200210116000000742fe5a3e0006300403f00101d09"
    "6eb7c05b0611b4e43c6c26d15586d270f8a0c403190deeb418d0ff45a2154331327aa8a51cc8b60c1b220fe3ab2dc3490393"
    "18bb6a592e745e609d9c00000200210116000000742fe5a3e0002d002c3f00180c427565bbe0c92d22dd9a1bb7a387858687"
    "f23d099d4f5c6e4138b3128deb66280a2afd32db30c06a5c000000054864486448645464402e30ac46ab0dd3563703000000"
    "0000595a");
// xz --check=sha256 of 60 random bytes: not compressed
const std::string stored = bytes_of(
    "fd377a585a00000ae1fb0ca10200210116000000742fe5a301003b82b70eee7f1a5039bef07ec2347f066ed08f5dc7512447"
    "e3404300026b6e545594a065685d64c4980bb8d4544a8721a99a01ad219eb59cf6a15ef6f1003947f72630e62e48caac187e"
    "0ccdfffc64181ec9ece808fe826c8ca02822235600016c3c07eda1c6189b4b9a01000000000a595a");
const std::string random_bytes = bytes_of(
    "82b70eee7f1a5039bef07ec2347f066ed08f5dc7512447e3404300026b6e545594a065685d64c4980bb8d4544a8721a99a01"
    "ad219eb59cf6a15ef6f1");
// xz --check=crc32 of 145 random bytes and the first 60 of them again. The distance 145 is the last symbol, and its last
// bit that is 1 has no probability of its own: the decoder's code then equals its range.
const std::string code_equals_range = bytes_of(
    "fd377a585a0000016922de360200210116000000742fe5a3e000cc00a25d003c26c28ca7e690740a457847db905f6a5b527b"
    "3a4baf202924b16fc7ce4d3be633c9624e0d4c19921a1d988900bc3a9cc35106e1174e5acd51761f79384a44ec3b9eded28d"
    "e0f6d3e49f008c4b99cff0ba62c578b96b56973e287c6ea6895b216410eb47d7829b9f702a26b8b9a7e0702af1f13343386f"
    "6a2fcba3007f36edc41d14ea02a02586dcefb442fb44dde0fef2b7a6d954d13bd1c294aad0f58949800000000000ce9027fa"
    "0001ba01cd010000929181c03e300d8b020000000001595a");
const std::string repeated_bytes = bytes_of(
    "789b34caf54f2e220acd941e71b88d5836866d0d858b63549e94be2cacc67f5b7ef28f2d9903959f63d3d893dce752779c84"
    "162917ec8ff1af4a6422d367e18d5eb6dfa465a5331f758e793ea95a94eb0d15b62a92a709a593a44ed2279662e3954580c3"
    "51a904ba16e856bab99431e06ad96a3a1e1f1c564c14fb7fa4123e95d166f4677be0d2fb1270d7e37fdb6eff60");

std::optional<std::string> plain(const std::string& stream, std::size_t limit = 1000) {
    return decompress_xz(as_bytes_view(stream), limit);
}

}  // namespace

TEST_CASE("xz: streams of the xz tool") {
    CHECK(plain(one_block) == text());
    CHECK(plain(five_blocks) == text());
    CHECK(plain(stored) == random_bytes);
    CHECK(plain(code_equals_range) == repeated_bytes + repeated_bytes.substr(0, 60));
    // No block at all.
    CHECK(plain(bytes_of("fd377a585a000004e6d6b446000000001cdf44211fb6f37d010000000004595a")) == "");
}

TEST_CASE("xz: no more than the limit") {
    CHECK(plain(one_block, text().size()) == text());
    CHECK_FALSE(plain(one_block, text().size() - 1));
    CHECK_FALSE(plain(five_blocks, text().size() - 1));
    CHECK_FALSE(plain(stored, random_bytes.size() - 1));
    CHECK_FALSE(plain(one_block, 0));
}

TEST_CASE("xz: what is cut off is refused") {
    // The index and the footer at the end are not needed.
    for (const std::string* stream : {&one_block, &five_blocks, &stored}) {
        std::size_t enough = stream->size();
        while (enough > 0 && plain(stream->substr(0, enough))) --enough;
        CHECK(enough > stream->size() / 2);
        for (std::size_t size = 0; size < enough; ++size) CHECK_FALSE(plain(stream->substr(0, size)));
    }
}

TEST_CASE("xz: damage is refused or gives other bytes, and never more than the limit") {
    for (const std::string* stream : {&one_block, &five_blocks, &stored})
        for (std::size_t at = 0; at < stream->size(); ++at)
            for (const int flip : {0x01, 0x80, 0xff}) {
                std::string damaged = *stream;
                damaged[at] = static_cast<char>(damaged[at] ^ flip);
                const auto got = plain(damaged);
                CHECK((!got || got->size() <= 1000));
            }
    std::string damaged = one_block;
    damaged[0] = 'x';
    CHECK_FALSE(plain(damaged));
    damaged = one_block;
    damaged[14] = 0x03;  // the filter: delta
    CHECK_FALSE(plain(damaged));
    damaged = one_block;
    damaged[24] = static_cast<char>(0x80);  // the first chunk goes on with a dictionary that there is not
    CHECK_FALSE(plain(damaged));
}
