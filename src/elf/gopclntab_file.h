// Finds Go's function table (gopclntab.h) in an ELF file. Position-independent programs from an external linker have no
// section for it, and their text start is in a relocation. Source: data.go, pcln.go and symtab.go in Go's
// src/cmd/link/internal/ld.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/elf_file.h"
#include "elf/gopclntab.h"

namespace flamewire::elf {

struct GoPclntabPlace {
    std::uint64_t offset = 0, size = 0;  // in the file; the size may include bytes after the table
    std::uint64_t address = 0;           // ELF virtual address of its first byte
    // The value that the loader sets. nullopt if the file does not contain it, or before Go 1.18 (absolute addresses).
    std::optional<std::uint64_t> text_start;
};

// nullopt if this is not a Go program, or its table is damaged, of an unknown version, or (before 1.18) needs
// relocation.
std::optional<GoPclntabPlace> find_go_pclntab(const ByteSource& source, const Header& header,
                                              const std::vector<Section>& sections);

// The fields of runtime.firstmoduledata, the runtime's description of the program.
struct GoModule {
    std::uint64_t text_start = 0;
    std::uint64_t function_data = 0;  // address of go:func.*, the base of FUNCDATA offsets
};
// Only for programs of Go 1.18 and later. Layout: moduledata in Go's src/runtime/symtab.go, 1.18 to 1.26.
std::optional<GoModule> find_go_module(const ByteSource& source, const Header& header,
                                       const std::vector<Section>& sections, const GoPclntabPlace& place);

// Opens the table that find_go_pclntab() found. Keeps a copy of `source`; the data behind it must outlive the table.
std::optional<GoPclntab> open_go_pclntab(ByteSource source, const Header& header, const GoPclntabPlace& place);
// The same, with a reader of the whole file.
std::optional<GoPclntab> open_go_pclntab(GoPclntab::Reader file, bool big_endian, const GoPclntabPlace& place);

}  // namespace flamewire::elf
