// Runs the line number program of a DWARF unit. libdw does this too, but builds 120 bytes for each row and the whole
// path of each file before a caller can limit either. Source: DWARF 5, section 6.2; DWARF 2 to 4 for their headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "symbol/dwarf/index_budget.h"

namespace flamewire::symbol {

struct LineSections {
    Bytes lines;         // .debug_line
    Bytes line_strings;  // .debug_line_str
    Bytes strings;       // .debug_str
    bool big_endian = false;
};

struct LineRow {
    static constexpr std::uint32_t end_of_sequence = ~std::uint32_t{0};  // a value of `file`: no code from here on

    std::uint64_t address = 0;
    std::uint32_t file = 0;  // index into the file table, which may be shorter
    std::uint32_t line = 0;  // 0: code that belongs to no line
};

// Texts extend from their first byte to the end of the section. Their end is only searched when they are used.
struct LineFile {
    Bytes name;
    std::uint64_t directory = 0;  // index into the directories
};

struct LineProgram {
    std::vector<Bytes> directories;  // the first is the compilation directory; empty before DWARF 5
    std::vector<LineFile> files;     // by the numbers in rows and DIEs; before DWARF 5 the first is unused
    std::vector<LineRow> rows;       // sorted by address; where sequences touch, the end comes first

    // As in the program; relative paths are appended to `compiled_in`. Empty: there is no such file, or its path is
    // longer than a path can be.
    [[nodiscard]] std::string path(std::uint32_t file, std::string_view compiled_in) const;
};

// Runs the program at `offset` of .debug_line. Empty if it is malformed or exceeds the budget. Texts point into the
// sections.
LineProgram run_line_program(const LineSections& sections, std::uint64_t offset, IndexBudget& budget);

}  // namespace flamewire::symbol
