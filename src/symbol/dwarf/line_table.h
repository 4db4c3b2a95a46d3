// The line table of one DWARF unit: address to (file, line) by one binary search.
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
    std::uint32_t file = 0;  // in the string pool: an absolute path, or as the compiler said it
    std::uint32_t line = 0;  // 0: code that belongs to no line
};

class LineTable {
public:
    LineTable() = default;
    // Empty when the unit has no usable line table, or one that the budget has no room for. All must outlive the table.
    LineTable(Dwarf_Die unit, const LineSections& sections, StringPool& strings, IndexBudget& budget);

    // The row that covers `address`; nothing between sequences.
    [[nodiscard]] std::optional<SourceLine> find(std::uint64_t address);
    // By index of the unit's file table, as DW_AT_call_file has it; 0 when there is no such file.
    [[nodiscard]] std::uint32_t file(std::uint32_t index);

private:
    LineProgram program_;
    std::string_view directory_;  // where the compiler ran
    StringPool* strings_ = nullptr;
    std::vector<std::optional<std::uint32_t>> paths_;  // by file: its path in the string pool, once asked for
};

}  // namespace flamewire::symbol
