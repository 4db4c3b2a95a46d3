// The line table of one DWARF unit as sorted arrays: address to (file, line) by one binary search.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "symbol/string_pool.h"

namespace flamewire::symbol {

struct SourceLine {
    std::uint32_t file = 0;  // in the string pool: an absolute path, or as the compiler said it
    std::uint32_t line = 0;  // 0: code that belongs to no line
};

class LineTable {
public:
    LineTable() = default;
    // Empty when the unit has no usable line table.
    LineTable(Dwarf_Die unit, StringPool& strings);

    // The row that covers `address`; nothing between sequences.
    [[nodiscard]] std::optional<SourceLine> find(std::uint64_t address) const;
    // By index of the unit's file table, as DW_AT_call_file has it; 0 when there is no such file.
    [[nodiscard]] std::uint32_t file(std::uint32_t index) const { return index < files_.size() ? files_[index] : 0; }

private:
    static constexpr std::uint32_t gap = ~std::uint32_t{0};  // as a row's file: a sequence ended here

    std::vector<std::uint64_t> addresses_;
    std::vector<SourceLine> rows_;
    std::vector<std::uint32_t> files_;
};

}  // namespace flamewire::symbol
