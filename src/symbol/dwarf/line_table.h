// The line table of one DWARF unit: maps an address to (file, line) with one binary search.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "symbol/dwarf/line_program.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

struct SourceLine {
    std::uint32_t file = 0;  // in the string pool: an absolute path, or the path from the compiler
    std::uint32_t line = 0;  // 0: code that belongs to no line
};

class LineTable {
public:
    LineTable() = default;
    // Empty if the unit has no usable line table, or if the table exceeds the budget. All arguments must outlive the
    // table.
    LineTable(Dwarf_Die unit, const LineSections& sections, StringPool& strings, IndexBudget& budget);

    // The row that covers `address`; nullopt between sequences.
    [[nodiscard]] std::optional<SourceLine> find(std::uint64_t address);
    // The path of an entry of the unit's file table, as in DW_AT_call_file; 0 if there is no such file.
    [[nodiscard]] std::uint32_t file(std::uint32_t index);

private:
    LineProgram program_;
    std::string_view directory_;  // the compilation directory
    StringPool* strings_ = nullptr;
    std::vector<std::optional<std::uint32_t>> paths_;  // by file: its path in the string pool, filled on demand
};

}  // namespace flamewire::symbol
