// Reads what xz compressed, as it stands in .gnu_debugdata (the small ELF file of symbols, and on Android of .debug_frame,
// that distributions leave in stripped programs). An own reader: liblzma's is sixteen times its size, and the agent
// carries it to every board. Source: "The .xz File Format" 1.2.0; LZMA Specification (draft, in the LZMA SDK).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::elf {

// All that the stream's blocks hold, at most `limit` bytes. Nothing: damaged, larger, or with a filter other than LZMA2.
// Checksums are not verified: what is inside is checked by whoever reads it.
std::optional<std::string> decompress_xz(Bytes stream, std::size_t limit);

}  // namespace flamewire::elf
