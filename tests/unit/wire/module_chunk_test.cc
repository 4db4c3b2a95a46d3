// Parts of module files: every part is decoded as it was encoded, and invalid ones are refused.
#include "wire/module_chunk.h"

#include <catch2/catch.hpp>

#include "wire/frame.h"

namespace flamewire::wire {
namespace {

ModuleChunk example() {
    ModuleChunk chunk;
    chunk.id = "7f";
    chunk.file_size = 1000;
    chunk.offset = 40;
    chunk.total = 96;
    chunk.ranges = {{0, 64}, {900, 32}};
    chunk.bytes = "the bytes";
    return chunk;
}

std::string payload_of(std::string_view head, std::string_view bytes = "") {
    std::string payload(4, '\0');
    payload[2] = static_cast<char>(head.size() >> 8);
    payload[3] = static_cast<char>(head.size() & 0xFF);
    payload += head;
    payload += bytes;
    return payload;
}

TEST_CASE("a module chunk is decoded unchanged, and compressed if that is shorter") {
    CHECK(decode_module_chunk(encode_module_chunk(example())).value() == example());
    ModuleChunk large = example();
    large.total = large.file_size = max_module_chunk + 40;
    large.ranges = {{0, large.total}};
    large.bytes.assign(max_module_chunk, 'x');
    const std::string payload = encode_module_chunk(large);
    CHECK(payload.size() < 1000);
    CHECK(decode_module_chunk(payload).value() == large);
    ModuleChunk last = example();
    last.offset = last.total;
    last.bytes.clear();
    last.hash = "cbf29ce484222325";
    CHECK(decode_module_chunk(encode_module_chunk(last)).value() == last);
}

TEST_CASE("the head of a chunk is JSON after its length") {
    const std::string payload = payload_of(
        R"({"id":"7f","file_size":1000,"offset":40,"total":96,"ranges":[0,64,900,32],"encoding":"raw"})", "the bytes");
    CHECK(encode_module_chunk(example()) == payload);
    CHECK(decode_module_chunk(payload).value() == example());
}

TEST_CASE("an invalid chunk is refused") {
    const auto refused = [](std::string_view payload) {
        const auto chunk = decode_module_chunk(payload);
        return !chunk && !chunk.error().message.empty();
    };
    const auto with = [](std::string_view ranges, std::string_view total, std::string_view offset = "0",
                         std::string_view encoding = "raw") {
        return payload_of(R"({"id":"1","file_size":100,"offset":)" + std::string(offset) + R"(,"total":)" +
                              std::string(total) + R"(,"ranges":)" + std::string(ranges) + R"(,"encoding":")" +
                              std::string(encoding) + "\"}",
                          "abc");
    };
    CHECK_FALSE(refused(with("[0,10]", "10")));
    CHECK_FALSE(refused(with("[0,10,10,90]", "100")));
    const std::string whole = with("[0,10]", "10");
    for (std::size_t size = 0; size + 3 < whole.size(); ++size) CHECK(refused(whole.substr(0, size)));
    for (const char* ranges : {"[]", "[0]", "[0,10,5,5]", "[5,5,0,10]", "[0,10,10]", "[0,0]", "[0,101]", "[101,1]",
                               "[18446744073709551615,10]", "[10,18446744073709551615]", "[-1,10]", "[\"0\",10]", "{}",
                               "7", "[0,9]", "[0,11]"})
        CHECK(refused(with(ranges, "10")));
    CHECK(refused(with("[0,10]", "10", "8")));   // three bytes from 8 on exceed the stream
    CHECK(refused(with("[0,10]", "10", "11")));  // the offset exceeds the stream, too
    CHECK(refused(with("[0,10]", "10", "0", "zstd")));
    CHECK(refused(with("[0,10]", "10", "0", "other")));
    CHECK(refused(std::string("\xff\xff\xff\xff", 4) + whole.substr(4)));
    // More bytes than the limit of one part, also if they are compressed.
    ModuleChunk large = example();
    large.total = large.file_size = std::uint64_t{8} << 20;
    large.ranges = {{0, large.total}};
    large.bytes.assign(max_module_chunk + 1, 'x');
    large.offset = 0;
    CHECK(refused(encode_module_chunk(large)));
    large.bytes.pop_back();
    CHECK_FALSE(refused(encode_module_chunk(large)));
}

TEST_CASE("a chunk has 1,024 ranges") {
    // One byte each, with one byte between them.
    const auto chunk_of_ranges = [](std::size_t count) {
        ModuleChunk chunk = example();
        chunk.file_size = 10'000;
        chunk.ranges.clear();
        for (std::size_t i = 0; i < count; ++i) chunk.ranges.push_back({2 * i, 1});
        chunk.total = count;
        return decode_module_chunk(encode_module_chunk(chunk));
    };
    REQUIRE(chunk_of_ranges(1024));
    CHECK(chunk_of_ranges(1024)->ranges.size() == 1024);
    CHECK_FALSE(chunk_of_ranges(1025));
}

TEST_CASE("the hash of content is FNV-1a, however it is split") {
    CHECK(content_hash(content_hash_begin, "") == 0xcbf29ce484222325);
    CHECK(content_hash(content_hash_begin, "a") == 0xaf63dc4c8601ec8c);       // from the authors' page
    CHECK(content_hash(content_hash_begin, "foobar") == 0x85944171f73967e8);  // the same
    CHECK(content_hash(content_hash(content_hash_begin, "foo"), "bar") == 0x85944171f73967e8);
}

}  // namespace
}  // namespace flamewire::wire
