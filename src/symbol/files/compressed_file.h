// Files that are compressed as a whole with gzip, xz or zstd. Distributions and boards store kernel modules like this
// (.ko.gz, .ko.xz, .ko.zst). The first bytes determine the format (RFC 1952; "The .xz File Format" 1.2.0; RFC 8878),
// not the name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::symbol {

// Kernel modules with debug info have up to about 100 MiB.
inline constexpr std::size_t max_unpacked_file_bytes = std::size_t{1} << 30;

// The file itself, or its unpacked contents as a file in memory. io: it cannot be read. invalid: it is damaged, or its
// contents exceed what growth.h allows (at most 1 GiB).
Result<UniqueFd> open_uncompressed(const std::string& path);

// Removes the compressor's suffix: "foo.ko" for "foo.ko.xz".
std::string_view without_compression_suffix(std::string_view path);

}  // namespace flamewire::symbol
