// Locates the unwind tables of an ELF file: by its segments and, more precisely, by its section headers. Those are at
// the end of the file, where nothing else is read. Source: gABI, chapters 4 and 5; LSB 5.0 Core, section 10.6.2; ELF
// for the Arm Architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/elf_file.h"
#include "unwind/tables/encoded_pointer.h"
#include "unwind/tables/module_file.h"

namespace flamewire::unwind {

struct TableLayout {
    std::optional<FileRange> search_table;  // PT_GNU_EH_FRAME
    std::optional<FileRange> eh_frame;      // only from section headers
    std::optional<FileRange> debug_frame;
    bool debug_compressed = false;
    std::optional<FileRange> mini_debug;  // .gnu_debugdata: a small compressed ELF file that can have a .debug_frame
    std::optional<FileRange> exidx;
    PointerBases bases;  // of pointers in .eh_frame

    struct CodeRange {
        std::uint64_t start = 0, end = 0;
    };
    std::vector<CodeRange> code;  // empty: unknown
    // Code that the linker discarded leaves entries whose start is 0 or another value that linkers use instead.
    [[nodiscard]] bool is_code(std::uint64_t address) const;
};

// `sections` may be empty.
TableLayout table_layout(const elf::Header& header, const std::vector<elf::Section>& sections);

}  // namespace flamewire::unwind
