// Converts addresses to inline frames with DWARF. The constructor reads only which unit covers which addresses. Lines,
// functions and inlined functions of a unit are read at the first lookup of an address in it, and names at the first
// frame that needs them.
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
    // `file`, `strings` and `split` must outlive the index. Without usable DWARF, find() adds no frames.
    DwarfIndex(ObjectFile& file, StringPool& strings, Names names, const SplitDwarf& split);

    // Whether there are units that contain code.
    [[nodiscard]] bool usable() const { return !units_.empty(); }

    // Appends the frames at `vaddr`, innermost first; none if no unit covers it. A covered address outside of any
    // function gives one frame without a name.
    void find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames);

    // Units whose functions are in separate files (-gsplit-dwarf), and how many of those files are missing.
    struct Split {
        std::size_t units = 0, missing = 0;
        std::string first_missing;
    };
    [[nodiscard]] Split split() const;
    // If the budget was exceeded, lines and inlined functions are missing.
    [[nodiscard]] const IndexBudget& budget() const { return budget_; }

private:
    struct IndexedUnit {
        Unit unit;
        std::optional<LineTable> lines;
        std::optional<ScopeTree> scopes;
        std::optional<SplitName> split_name;
        std::optional<SplitDwarf::Opened> split;                       // set with `scopes` if the split unit was found
        std::unordered_map<std::uint64_t, std::uint32_t> split_names;  // like name_cache_, for DIEs of `split`
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
    // Of the unit scanned last. Units often share one table.
    Abbreviations abbreviations_;
    std::optional<std::uint64_t> abbreviations_offset_;
    UnitFormat abbreviations_format_;
};

}  // namespace flamewire::symbol
