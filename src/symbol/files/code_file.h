// The ELF file with a module's code. Mappings give file offsets; the file's segments convert them into the ELF virtual
// addresses that symbols have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elf/elf_file.h"

namespace flamewire::symbol {

// Used if the file is missing: on x86, Arm and RISC-V, programs with a fixed address lie below, PIE and libraries above.
inline constexpr std::uint64_t fixed_programs_end = 0x1000'0000;

struct CodeFile {
    std::string path;    // on this machine
    bool fixed = false;  // ET_EXEC: addresses in memory are those of the file
    std::vector<elf::Segment> segments;

    // Nothing: no segment has that byte.
    [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset) const;
};

// Nothing: the path is empty, or not an ELF file that can be read.
std::optional<CodeFile> read_code_file(const std::string& path);

}  // namespace flamewire::symbol
