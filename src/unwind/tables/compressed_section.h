// Decompresses ELF sections: SHF_COMPRESSED with zlib or zstd, or the older form with a name that starts with ".zdebug"
// and contents that start with "ZLIB". Of the unwind tables only .debug_frame can be compressed. Source: gABI, "Section
// Compression"; for the older form binutils, gas/compress-debug.c.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::unwind {

// The section's contents, at most `limit` bytes. nullopt if it is damaged, larger, or compressed otherwise.
std::optional<std::string> decompress_section(Bytes section, bool is_64, bool big_endian, std::size_t limit);

// The .debug_frame of the ELF file in a .gnu_debugdata section, which may have at most `limit` bytes. Only Android's
// compilers put it there; other distributions store only symbols. nullopt if the file is damaged, larger, or has none.
std::optional<std::string> mini_debug_frame(Bytes section, std::size_t limit);

}  // namespace flamewire::unwind
