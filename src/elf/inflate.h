// Decompresses zlib streams, which ELF sections with SHF_COMPRESSED or a ".zdebug" name contain. The code is our own
// because zlib's is 42 KB and every deployed agent would carry it. Source: RFC 1950, RFC 1951.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::elf {

// Decompresses the whole stream, at most `limit` bytes. nullopt if it is damaged, larger, or needs a preset dictionary.
// Does not verify the checksum: the caller validates the contents.
std::optional<std::string> decompress_zlib(Bytes stream, std::size_t limit);

}  // namespace flamewire::elf
