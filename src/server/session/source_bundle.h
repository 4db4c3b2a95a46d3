// The source bundle of a session: source files stored beside its stream, as values and as bytes. docs/kept.proto
// is the schema.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::server {

// Limits for the sources of one session; the bytes are those of the uncompressed message.
inline constexpr std::size_t max_source_bundle_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_source_bundle_files = 5'000;

struct BundledSource {
    std::string name;  // as in the debug info
    std::string path;  // where it was found
    std::string text;
};

// One zstd frame.
std::string encode_source_bundle(std::span<const BundledSource> files);
// invalid: not such a file. too_large: it unpacks to more than the limit.
Result<std::vector<BundledSource>> decode_source_bundle(Bytes bytes);

// Sources of the session whose stream is at `stream_path`. Empty if it has none; invalid if they cannot be read.
Result<std::vector<BundledSource>> read_source_bundle(const std::string& stream_path);
// The stored file of that name. Empty if it is not stored, or if the sources cannot be read.
std::optional<BundledSource> find_bundled_source(const std::string& stream_path, std::string_view name);

}  // namespace flamewire::server
