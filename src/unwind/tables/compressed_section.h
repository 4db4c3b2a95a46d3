// Sections that a linker compressed: with SHF_COMPRESSED, by zlib or zstd, or in the older form whose name begins with
// ".zdebug" and whose contents begin with "ZLIB". Of unwind tables only .debug_frame can be. Source: gABI, "Section
// Compression"; binutils, gas/compress-debug.c for the older form.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace flamewire::unwind {

// Contents of a compressed section of at most `limit` bytes. Nothing: damaged, larger, or compressed otherwise.
std::optional<std::string> decompress_section(Bytes section, bool is_64, bool big_endian, std::size_t limit);

// The .debug_frame of the ELF file that a .gnu_debugdata section holds, which may be of at most `limit` bytes. Android's
// compilers leave it there; other distributions have only symbols in it. Nothing: damaged, larger, or without one.
std::optional<std::string> mini_debug_frame(Bytes section, std::size_t limit);

}  // namespace flamewire::unwind
