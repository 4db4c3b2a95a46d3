// Address to inline frames by DWARF. When opened it knows which unit covers which addresses; lines, functions and
// inlined functions of a unit are read when an address of it is first asked for, names when a frame first shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "symbol/dwarf/index_budget.h"
#include "symbol/dwarf/line_table.h"
#include "symbol/dwarf/scope_tree.h"
#include "symbol/dwarf/split_dwarf.h"
#include "symbol/files/object_file.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

struct IndexedFrame {
    std::uint32_t function = 0, file = 0;  // in the string pool; 0 is unknown
    std::uint32_t line = 0;
    bool inlined = false;
};

enum class Names : std::uint8_t { readable, linkage };

class DwarfIndex {
public:
    // `file`, `strings` and `split` must outlive the index. Without usable DWARF it answers nothing.
    DwarfIndex(ObjectFile& file, StringPool& strings, Names names, const SplitDwarf& split);

    // Whether there is anything to answer from: units that hold code.
    [[nodiscard]] bool usable() const { return !units_.empty(); }

    // Appends the frames at `vaddr`, innermost first; none when no unit covers it. A covered address outside of any
    // function gives one frame without a name.
    void find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames);

    // Units whose functions are in files of their own (-gsplit-dwarf), and which of those are not here.
    struct Split {
        std::size_t units = 0, missing = 0;
        std::string first_missing;
    };
    [[nodiscard]] Split split() const;
    // Whether it was exceeded: then lines and inlined functions are missing.
    [[nodiscard]] const IndexBudget& budget() const { return budget_; }

private:
    struct IndexedUnit {
        Unit unit;
        std::optional<LineTable> lines;
        std::optional<ScopeTree> scopes;
        std::optional<SplitName> split_name;
        std::optional<SplitDwarf::Opened> split;                       // once scopes are there, if it was found
        std::unordered_map<std::uint64_t, std::uint32_t> split_names;  // as name_cache_, of DIEs of `split`
    };

    void read_units();
    void read_unit(Unit unit, std::vector<Interval>& ranges);
    LineTable& lines(IndexedUnit& unit);
    const ScopeTree& scopes(IndexedUnit& unit);
    void open_split(IndexedUnit& unit);
    std::uint32_t name_of(IndexedUnit& unit, DieRef die);

    ObjectFile& file_;
    StringPool& strings_;
    Names names_;
    const SplitDwarf& split_;
    Dwarf* dwarf_;
    DwarfSections sections_;
    LineSections line_sections_;
    IndexBudget budget_;
    std::vector<IndexedUnit> units_;
    IntervalMap units_by_address_;
    std::unordered_map<std::uint64_t, std::uint32_t> name_cache_;  // by DIE offset * 2 + alternate
    // Of the unit scanned last: units often share one table.
    Abbreviations abbreviations_;
    std::optional<std::uint64_t> abbreviations_offset_;
    UnitFormat abbreviations_format_;
};

}  // namespace flamewire::symbol
