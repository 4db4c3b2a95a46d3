// Reads what zlib compressed, as it stands in ELF sections with SHF_COMPRESSED or with a name that begins with ".zdebug".
// An own reader, as zlib's is 42 KB and the agent carries it to every board. Source: RFC 1950, RFC 1951.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::elf {

// All that the stream holds, at most `limit` bytes. Nothing: damaged, larger, or with a preset dictionary. The checksum
// is not verified: what is inside is checked by whoever reads it.
std::optional<std::string> decompress_zlib(Bytes stream, std::size_t limit);

}  // namespace flamewire::elf
