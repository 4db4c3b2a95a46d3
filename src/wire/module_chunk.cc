#include "wire/module_chunk.h"

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "base/json_writer.h"
#include "wire/control.h"
#include "wire/frame.h"

namespace flamewire::wire {
namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t max_head_bytes = std::size_t{64} << 10;

std::unexpected<Error> damaged(const char* what) {
    return fail(ErrorCode::invalid, std::string("a module chunk with ") + what);
}

Result<std::vector<FileRange>> ranges_of(const rapidjson::Value& head, std::uint64_t file_size, std::uint64_t total) {
    std::vector<FileRange> ranges;
    const auto list = head.FindMember("ranges");
    if (list == head.MemberEnd() || !list->value.IsArray() || list->value.Size() % 2 != 0 ||
        list->value.Size() > 2 * max_module_ranges)
        return damaged("no list of ranges");
    std::uint64_t end = 0, sum = 0;
    for (rapidjson::SizeType i = 0; i < list->value.Size(); i += 2) {
        const auto& offset = list->value[i];
        const auto& size = list->value[i + 1];
        if (!offset.IsUint64() || !size.IsUint64()) return damaged("ranges that are not numbers");
        const FileRange range{offset.GetUint64(), size.GetUint64()};
        if (range.size == 0 || range.offset < end || range.offset > file_size || range.size > file_size - range.offset)
            return damaged("ranges that overlap or leave the file");
        end = range.offset + range.size;
        sum += range.size;
        ranges.push_back(range);
    }
    if (sum != total) return damaged("ranges that do not add up");
    return ranges;
}

}  // namespace

std::string encode_module_chunk(const ModuleChunk& chunk) {
    std::string packed = chunk.bytes.empty() ? std::string() : compress(chunk.bytes);
    const bool compressed = !packed.empty() && packed.size() < chunk.bytes.size();
    JsonWriter json;
    json.object()
        .member("id", chunk.id)
        .member("file_size", chunk.file_size)
        .member("offset", chunk.offset)
        .member("total", chunk.total)
        .array("ranges");
    for (const FileRange& range : chunk.ranges) json.number(range.offset).number(range.size);
    json.end_array().member("encoding", compressed ? "zstd" : "raw");
    if (!chunk.hash.empty()) json.member("hash", chunk.hash);
    json.end_object();
    const std::string header = json.take();
    std::string payload;
    const auto length = static_cast<std::uint32_t>(header.size());
    for (unsigned shift = 32; shift != 0; shift -= 8) payload += static_cast<char>(length >> (shift - 8) & 0xFF);
    payload += header;
    payload += compressed ? packed : chunk.bytes;
    return payload;
}

Result<ModuleChunk> decode_module_chunk(std::string_view payload) {
    ByteReader in(as_bytes_view(payload), std::endian::big);
    const auto length = in.u32();
    if (!in.ok() || length > max_head_bytes) return damaged("a head that is too long");
    const Bytes head_bytes = in.bytes(length);
    if (!in.ok()) return damaged("a head that is cut");
    const rapidjson::Document head = TRY(parse_object(as_text(head_bytes)));
    ModuleChunk chunk;
    chunk.id = text_member(head, "id");
    chunk.file_size = number_member(head, "file_size");
    chunk.offset = number_member(head, "offset");
    chunk.total = number_member(head, "total");
    chunk.hash = text_member(head, "hash");
    chunk.ranges = TRY(ranges_of(head, chunk.file_size, chunk.total));
    const std::string_view rest = payload.substr(length_bytes + length);
    const std::string encoding = text_member(head, "encoding");
    if (encoding == "zstd")
        chunk.bytes = TRY(decompress(as_bytes_view(rest), max_module_chunk));
    else if (encoding == "raw" && rest.size() <= max_module_chunk)
        chunk.bytes = rest;
    else
        return damaged("bytes of an unknown kind, or too many");
    if (chunk.offset > chunk.total || chunk.bytes.size() > chunk.total - chunk.offset)
        return damaged("bytes outside of its stream");
    return chunk;
}

std::uint64_t content_hash(std::uint64_t before, std::string_view bytes) {
    for (const char byte : bytes) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return before;
}

}  // namespace flamewire::wire
