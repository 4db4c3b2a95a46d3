// Checks from the headers how much the compressed sections of an ELF file unpack to. libelf and libdw decompress on
// their own, without any limit. Source: gABI, "Section Compression"; binutils, gas/compress-debug.c for ".zdebug".
#pragma once

#include <libelf.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "elf/elf_file.h"

namespace flamewire::symbol {

// For all sections of one file together. Chromium's debug info, the largest known, has about 5 GiB.
inline constexpr std::uint64_t max_unpacked_section_bytes = std::uint64_t{8} << 30;

// Call it before anything reads a section of `elf`. `source` has the same bytes, `file_bytes` of them. `path` is for
// the error message. too_large: the compressed sections, zlib or zstd, would unpack to more than growth_limit() allows.
Result<bool> check_section_growth(Elf* elf, const elf::Header& header, const elf::ByteSource& source,
                                  std::uint64_t file_bytes, const std::string& path);

}  // namespace flamewire::symbol
