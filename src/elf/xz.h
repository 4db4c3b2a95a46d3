// Decompresses xz streams, which .gnu_debugdata sections contain: a small ELF file that distributions leave in stripped
// programs, with symbols and, on Android, .debug_frame. The code is our own because liblzma's is sixteen times its size
// and every deployed agent would carry it. Source: "The .xz File Format" 1.2.0; LZMA Specification (draft, LZMA SDK).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::elf {

// Decompresses all blocks of the stream, at most `limit` bytes. nullopt if it is damaged, larger, or has a filter other
// than LZMA2. Does not verify checksums: the caller validates the contents.
std::optional<std::string> decompress_xz(Bytes stream, std::size_t limit);

}  // namespace flamewire::elf
