// Finds Go's function table (gopclntab.h) in an ELF file. Position-independent programs that an external linker wrote have
// no section for it, and their text start is in a relocation. Source: src/cmd/link/internal/ld/data.go and pcln.go of Go.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/elf_file.h"
#include "elf/gopclntab.h"

namespace flamewire::elf {

struct GoPclntabPlace {
    std::uint64_t offset = 0, size = 0;  // in the file; the size may include what follows the table
    std::uint64_t address = 0;           // ELF virtual address of its first byte
    // As the loader sets it; nothing for tables before Go 1.18, which hold addresses, and where the file does not say it.
    std::optional<std::uint64_t> text_start;
};

// Nothing: not a Go program, or its table is damaged, of an unknown version, or (before 1.18) needs relocating.
std::optional<GoPclntabPlace> find_go_pclntab(const ByteSource& source, const Header& header,
                                              const std::vector<Section>& sections);

// The table at a place that find_go_pclntab() returned. Keeps a copy of `source`, so what it reads must outlive the table.
std::optional<GoPclntab> open_go_pclntab(ByteSource source, const Header& header, const GoPclntabPlace& place);

}  // namespace flamewire::elf
