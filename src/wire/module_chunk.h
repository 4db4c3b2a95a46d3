// Flag 7: a part of a module file of the target, requested by the server. See docs/wire/module-files.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::wire {

// Most uncompressed bytes of a chunk, and thus of one request by a server.
inline constexpr std::size_t max_module_chunk = std::size_t{256} << 10;
inline constexpr std::size_t max_module_ranges = 1024;

struct FileRange {
    std::uint64_t offset = 0, size = 0;
    bool operator==(const FileRange&) const = default;
};

// The stream is the concatenated bytes of the ranges. The rest of the file stays a hole.
struct ModuleChunk {
    std::string id;               // of the command that it answers
    std::uint64_t file_size = 0;  // of the whole file
    std::uint64_t offset = 0;     // in the stream
    std::uint64_t total = 0;      // of the stream: the sum of the ranges
    std::vector<FileRange> ranges;
    std::string hash;   // content_hash() of the whole stream; only in an empty chunk at the end of the stream
    std::string bytes;  // at most max_module_chunk
    bool operator==(const ModuleChunk&) const = default;
};

// Returns the payload of the frame. Compresses the bytes if that makes them smaller.
std::string encode_module_chunk(const ModuleChunk& chunk);
// invalid: damaged, ranges that overlap, exceed the file or do not add up to `total`, or bytes outside the stream.
Result<ModuleChunk> decode_module_chunk(std::string_view payload);

// 64-bit FNV-1a, computed in pieces. Start with content_hash_begin.
inline constexpr std::uint64_t content_hash_begin = 0xcbf29ce484222325;
std::uint64_t content_hash(std::uint64_t before, std::string_view bytes);

}  // namespace flamewire::wire
