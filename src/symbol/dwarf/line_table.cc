#include "symbol/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>

namespace flamewire::symbol {
namespace {

// The compilation directory, the base of relative file names. Empty if the unit does not state it.
std::string_view compilation_directory(Dwarf_Die& unit) {
    Dwarf_Attribute attribute;
    const char* text = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    return text == nullptr ? std::string_view{} : text;
}

}  // namespace

LineTable::LineTable(Dwarf_Die unit, const LineSections& sections, StringPool& strings, IndexBudget& budget)
    : strings_(&strings) {
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    if (dwarf_formudata(dwarf_attr(&unit, DW_AT_stmt_list, &attribute), &offset) != 0) return;
    program_ = run_line_program(sections, offset, budget);
    directory_ = compilation_directory(unit);
    if (budget.take(program_.files.size() * sizeof paths_[0])) paths_.resize(program_.files.size());
}

std::uint32_t LineTable::file(std::uint32_t index) {
    if (index >= paths_.size()) return 0;
    if (!paths_[index]) paths_[index] = strings_->intern(program_.path(index, directory_));
    return *paths_[index];
}

std::optional<SourceLine> LineTable::find(std::uint64_t address) {
    const auto after = std::ranges::upper_bound(program_.rows, address, {}, &LineRow::address);
    if (after == program_.rows.begin()) return std::nullopt;
    const LineRow& row = *std::prev(after);
    if (row.file == LineRow::end_of_sequence) return std::nullopt;
    return SourceLine{file(row.file), row.line};
}

}  // namespace flamewire::symbol
