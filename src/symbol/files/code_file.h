// The ELF file with a module's code. Mappings give file offsets; the file's segments convert them into the ELF virtual
// addresses that symbols have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elf/elf_file.h"

namespace flamewire::symbol {

// Used if the file is missing. On x86, Arm and RISC-V, programs with a fixed address are below it, PIE and libraries
// above it.
inline constexpr std::uint64_t fixed_programs_end = 0x1000'0000;

struct CodeFile {
    std::string path;    // on this machine
    bool fixed = false;  // ET_EXEC: addresses in memory equal those in the file
    std::vector<elf::Segment> segments;

    // Nullopt: no segment contains that byte.
    [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset) const;
};

// Nullopt: the path is empty, or the file is not a readable ELF file.
std::optional<CodeFile> read_code_file(const std::string& path);

}  // namespace flamewire::symbol
