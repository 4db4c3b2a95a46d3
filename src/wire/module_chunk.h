// Flag 7: a part of a module file of the target, which the server asked for. docs/wire.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::wire {

// Of an uncompressed chunk: what a server can ask for at a time.
inline constexpr std::size_t max_module_chunk = std::size_t{256} << 10;
inline constexpr std::size_t max_module_ranges = 1024;

struct FileRange {
    std::uint64_t offset = 0, size = 0;
    bool operator==(const FileRange&) const = default;
};

// The stream is the bytes of the ranges, one after the other; the rest of the file stays a hole.
struct ModuleChunk {
    std::string id;               // of the command that it answers
    std::uint64_t file_size = 0;  // of the whole file
    std::uint64_t offset = 0;     // in the stream
    std::uint64_t total = 0;      // of the stream: the sum of the ranges
    std::vector<FileRange> ranges;
    std::string hash;   // content_hash() of the whole stream; only of a chunk without bytes at its end
    std::string bytes;  // at most max_module_chunk
    bool operator==(const ModuleChunk&) const = default;
};

// The payload of the frame; the bytes compressed where that makes them fewer.
std::string encode_module_chunk(const ModuleChunk& chunk);
// invalid: damaged, ranges that overlap, leave the file or do not add up, or bytes outside of the stream.
Result<ModuleChunk> decode_module_chunk(std::string_view payload);

// FNV-1a of 64 bits, in pieces: begin with content_hash_begin.
inline constexpr std::uint64_t content_hash_begin = 0xcbf29ce484222325;
std::uint64_t content_hash(std::uint64_t before, std::string_view bytes);

}  // namespace flamewire::wire
