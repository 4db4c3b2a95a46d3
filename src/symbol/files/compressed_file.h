// Files that gzip, xz or zstd compressed as a whole, as distributions and boards keep their kernel modules (.ko.gz, .ko.xz,
// .ko.zst). Which one it is say the first bytes (RFC 1952; "The .xz File Format" 1.2.0; RFC 8878), not the name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::symbol {

// Kernel modules with debug info have up to some 100 MiB.
inline constexpr std::size_t max_unpacked_file_bytes = std::size_t{1} << 30;

// The file to read from: itself, or what is inside as a file in memory. io: it cannot be read; invalid: it is damaged, or
// has more inside than growth.h allows, and 1 GiB at most.
Result<UniqueFd> open_uncompressed(const std::string& path);

// "foo.ko.xz" without what the compressor added: "foo.ko".
std::string_view without_compression_suffix(std::string_view path);

}  // namespace flamewire::symbol
