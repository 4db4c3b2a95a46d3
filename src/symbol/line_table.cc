#include "symbol/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace flamewire::symbol {
namespace {

// Where the compiler ran: what relative file names are relative to. Empty when the unit does not say.
std::string_view compilation_directory(Dwarf_Die& unit) {
    Dwarf_Attribute attribute;
    const char* text = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    return text == nullptr ? std::string_view{} : text;
}

// libdw leaves the names of files given relatively to the compiler as they are.
std::string absolute(std::string_view directory, std::string_view path) {
    if (path.starts_with('/') || directory.empty()) return std::string(path);
    std::string joined(directory);
    if (!joined.ends_with('/')) joined += '/';
    return joined.append(path);
}

}  // namespace

LineTable::LineTable(Dwarf_Die unit, StringPool& strings) {
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &file_count) != 0) return;
    files_.reserve(file_count);
    const std::string_view directory = compilation_directory(unit);
    for (std::size_t i = 0; i < file_count; ++i) {
        const char* path = dwarf_filesrc(files, i, nullptr, nullptr);
        files_.push_back(path == nullptr ? 0 : strings.intern(absolute(directory, path)));
    }
    Dwarf_Lines* lines = nullptr;
    std::size_t line_count = 0;
    if (dwarf_getsrclines(&unit, &lines, &line_count) != 0) return;
    addresses_.reserve(line_count);
    rows_.reserve(line_count);
    for (std::size_t i = 0; i < line_count; ++i) {  // sorted by address; where sequences touch, the end comes first
        Dwarf_Line* row = dwarf_onesrcline(lines, i);
        Dwarf_Addr address = 0;
        int line = 0;
        bool end = false;
        std::size_t index = 0;
        dwarf_lineaddr(row, &address);
        dwarf_lineno(row, &line);
        dwarf_lineendsequence(row, &end);
        if (dwarf_line_file(row, &files, &index) != 0) index = file_count;
        addresses_.push_back(address);
        rows_.push_back(end ? SourceLine{gap, 0}
                            : SourceLine{file(static_cast<std::uint32_t>(index)), static_cast<std::uint32_t>(line)});
    }
}

std::optional<SourceLine> LineTable::find(std::uint64_t address) const {
    const auto after = std::upper_bound(addresses_.begin(), addresses_.end(), address);
    if (after == addresses_.begin()) return std::nullopt;
    const SourceLine row = rows_[static_cast<std::size_t>(after - addresses_.begin()) - 1];
    if (row.file == gap) return std::nullopt;
    return row;
}

}  // namespace flamewire::symbol
