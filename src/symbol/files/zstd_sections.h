// Debug sections compressed with zstd (ELFCOMPRESS_ZSTD), which libelf 0.188 cannot read. Source: gABI, "Section
// Compression".
#pragma once

#include <libelf.h>

#include <string>

#include "base/result.h"

namespace flamewire::symbol {

// Whether any section of `elf` is compressed with zstd.
bool has_zstd_sections(Elf* elf);

// Decompresses those sections to the end of `image`, the bytes of an ELF file, and returns a handle in which they are
// uncompressed. The handle refers to `image`, which must not change. Call check_section_growth() first. invalid: a
// section states a wrong size.
Result<Elf*> open_decompressed(std::string& image);

}  // namespace flamewire::symbol
