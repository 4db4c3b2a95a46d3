// Debug sections compressed with zstd (ELFCOMPRESS_ZSTD), which libelf 0.188 cannot read. Source: gABI, "Section
// Compression".
#pragma once

#include <libelf.h>

#include <string>

#include "base/result.h"

namespace flamewire::symbol {

// Whether any section of `elf` is compressed so.
bool has_zstd_sections(Elf* elf);

// Decompresses those sections behind the end of `image`, the bytes of an ELF file, and returns a handle on it in which
// they are plain. The handle refers to `image`, which must stay as it is. Call check_section_growth() first. invalid: a
// section that lies about its size.
Result<Elf*> open_decompressed(std::string& image);

}  // namespace flamewire::symbol
