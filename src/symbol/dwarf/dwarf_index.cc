#include "symbol/dwarf/dwarf_index.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "symbol/demangle.h"

namespace flamewire::symbol {
namespace {

// Far more than compilers inline. Bounds the walk if parents form a long chain.
constexpr std::size_t max_inline_depth = 4096;

// Memory that libdw keeps for a unit after its first read.
constexpr std::size_t libdw_unit_bytes = 256;

// Several units may describe the same code: the linker keeps one copy of an inline function, and the debug info of all
// units refers to it. The first unit wins, as in llvm-symbolizer, so it must have the highest number in the
// IntervalMap. This function is its own inverse.
std::uint32_t owner_of(std::size_t unit) { return IntervalMap::none - 1 - static_cast<std::uint32_t>(unit); }

bool may_hold_code(Dwarf_Die& die) {
    const int tag = dwarf_tag(&die);
    return tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit;
}

std::string linkage_name(Dwarf_Die die) {
    Dwarf_Attribute attribute;
    for (const unsigned name : std::array<unsigned, 3>{DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name})
        if (dwarf_attr_integrate(&die, name, &attribute) != nullptr)
            if (const char* text = dwarf_formstring(&attribute); text != nullptr) return text;
    return {};
}

std::uint64_t number_of(Dwarf_Die die, std::initializer_list<unsigned> names) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    for (const unsigned name : names)
        if (dwarf_attr(&die, name, &attribute) != nullptr && dwarf_formudata(&attribute, &value) == 0) return value;
    return 0;
}

std::string text_of(Dwarf_Die die, std::initializer_list<unsigned> names) {
    Dwarf_Attribute attribute;
    for (const unsigned name : names)
        if (const char* text = dwarf_formstring(dwarf_attr(&die, name, &attribute)); text != nullptr) return text;
    return {};
}

// What a unit states about its split unit.
std::optional<SplitName> split_name(Dwarf_Die& die) {
    SplitName name{0, text_of(die, {DW_AT_dwo_name, DW_AT_GNU_dwo_name}), text_of(die, {DW_AT_comp_dir})};
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    if (name.name.empty() ||
        dwarf_cu_info(die.cu, &version, &type, nullptr, nullptr, &name.id, nullptr, nullptr) != 0 ||
        type != DW_UT_skeleton)
        return std::nullopt;
    return name;
}

}  // namespace

DwarfIndex::DwarfIndex(ObjectFile& file, StringPool& strings, Names names, const SplitDwarf& split)
    : file_(file), strings_(strings), names_(names), split_(split), dwarf_(file.dwarf()), budget_(file.file_bytes()) {
    if (dwarf_ == nullptr) return;
    sections_ = {file.section(".debug_abbrev"), file.section(".debug_addr")};
    const Bytes lines = file.section(".debug_line");
    line_sections_ = {lines.empty() ? file.section(".zdebug_line") : lines, file.section(".debug_line_str"),
                      file.section(".debug_str"), file.header().big_endian};
    read_units();
}

void DwarfIndex::read_units() {
    std::vector<Interval> ranges;
    Dwarf_Off offset = 0, next = 0;
    std::size_t header_size = 0;
    Dwarf_Half version = 0;
    Dwarf_Off abbreviations = 0;
    std::uint8_t address_size = 0, offset_size = 0;
    while (dwarf_next_unit(dwarf_, offset, &next, &header_size, &version, &abbreviations, &address_size, &offset_size,
                           nullptr, nullptr) == 0 &&
           next > offset) {
        Unit unit;
        unit.offset = offset;
        unit.die_offset = offset + header_size;
        unit.end = next;
        unit.abbreviations_offset = abbreviations;
        unit.format = {version, address_size, offset_size, file_.header().big_endian};
        offset = next;
        if (unit.die_offset >= unit.end || (address_size != 4 && address_size != 8)) continue;
        if (!budget_.take(sizeof(IndexedUnit) + libdw_unit_bytes)) break;
        if (dwarf_offdie(dwarf_, unit.die_offset, &unit.die) == nullptr || !may_hold_code(unit.die)) continue;
        unit.dies =
            Bytes(static_cast<const std::byte*>(unit.die.addr), static_cast<std::size_t>(unit.end - unit.die_offset));
        unit.address_base = number_of(unit.die, {DW_AT_addr_base, DW_AT_GNU_addr_base});
        read_unit(unit, ranges);
    }
    units_by_address_ = IntervalMap(std::move(ranges));
}

// Reads the ranges of the unit's own DIE, or those of its functions if it has none.
void DwarfIndex::read_unit(Unit unit, std::vector<Interval>& ranges) {
    const std::uint32_t owner = owner_of(units_.size());
    IndexedUnit& indexed = units_.emplace_back();
    indexed.unit = unit;
    indexed.split_name = split_name(indexed.unit.die);
    Dwarf_Addr base = 0, start = 0, end = 0;
    std::ptrdiff_t position = 0;
    bool stated = false;
    while ((position = dwarf_ranges(&unit.die, position, &base, &start, &end)) > 0) {
        stated = true;
        if (start >= end || !file_.is_code(start)) continue;
        if (!budget_.take(sizeof(Interval))) return;
        ranges.push_back({start, end, owner});
    }
    if (stated) return;
    for (const Interval& range : scopes(indexed).by_address.covered(owner)) ranges.push_back(range);
}

LineTable& DwarfIndex::lines(IndexedUnit& unit) {
    if (!unit.lines) unit.lines.emplace(unit.unit.die, line_sections_, strings_, budget_);
    return *unit.lines;
}

const ScopeTree& DwarfIndex::scopes(IndexedUnit& unit) {
    if (unit.scopes) return *unit.scopes;
    if (unit.split_name) open_split(unit);
    if (unit.split) {
        const SplitUnit& split = unit.split->unit;
        unit.scopes = scan_scopes(file_, sections_, split.unit, split.abbreviations, budget_);
        return *unit.scopes;
    }
    const Unit& where = unit.unit;
    if (abbreviations_offset_ != where.abbreviations_offset || abbreviations_format_ != where.format) {
        const auto offset = static_cast<std::size_t>(
            std::min<std::uint64_t>(where.abbreviations_offset, sections_.abbreviations.size()));
        abbreviations_ = Abbreviations(sections_.abbreviations.subspan(offset), where.format);
        abbreviations_offset_ = where.abbreviations_offset;
        abbreviations_format_ = where.format;
    }
    unit.scopes = scan_scopes(file_, sections_, where, abbreviations_, budget_);
    return *unit.scopes;
}

// The skeleton unit provides addresses and ranges for the split unit.
void DwarfIndex::open_split(IndexedUnit& indexed) {
    indexed.split = split_.open(*indexed.split_name);
    if (!indexed.split) return;
    Unit& half = indexed.split->unit.unit;
    half.split = true;
    half.address_base = indexed.unit.address_base;
    Dwarf_Addr low = 0;
    if (dwarf_lowpc(&indexed.unit.die, &low) == 0) half.low_pc = low;
    if (half.format.version >= 5) {
        half.ranges = indexed.split->unit.sections.range_lists;
        return;
    }
    const Bytes ranges = file_.section(".debug_ranges");
    const std::uint64_t base = number_of(indexed.unit.die, {DW_AT_GNU_ranges_base});
    if (base <= ranges.size()) half.ranges = ranges.subspan(static_cast<std::size_t>(base));
}

DwarfIndex::Split DwarfIndex::split() const {
    // Only opening a file shows whether it is of another build. Opening all of them would take too long.
    constexpr std::size_t opened = 16;
    Split split;
    for (const IndexedUnit& unit : units_) {
        if (!unit.split_name) continue;
        const bool there =
            ++split.units <= opened ? split_.open(*unit.split_name).has_value() : split_.is_there(*unit.split_name);
        if (there) continue;
        if (split.missing++ == 0) split.first_missing = unit.split_name->name;
    }
    return split;
}

std::uint32_t DwarfIndex::name_of(IndexedUnit& unit, DieRef ref) {
    if (unit.split) {
        const auto [known, fresh] = unit.split_names.try_emplace(ref.offset, 0);
        if (!fresh) return known->second;
        const std::string text = unit.split->unit.name(ref.offset);
        return known->second = strings_.intern(names_ == Names::readable ? demangle(text) : text);
    }
    const std::uint64_t key = ref.offset * 2 + (ref.alternate ? 1 : 0);
    if (const auto found = name_cache_.find(key); found != name_cache_.end()) return found->second;
    Dwarf_Die die;
    std::uint32_t name = 0;
    Dwarf* holder = ref.alternate ? dwarf_getalt(dwarf_) : dwarf_;
    if (holder != nullptr && dwarf_offdie(holder, ref.offset, &die) != nullptr) {
        const std::string text = linkage_name(die);
        name = strings_.intern(names_ == Names::readable ? demangle(text) : text);
    }
    name_cache_.emplace(key, name);
    return name;
}

void DwarfIndex::find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames) {
    const std::uint32_t owner = units_by_address_.find(vaddr);
    if (owner == IntervalMap::none) return;
    IndexedUnit& unit = units_[owner_of(owner)];
    LineTable& table = lines(unit);
    const ScopeTree& tree = scopes(unit);
    SourceLine line = table.find(vaddr).value_or(SourceLine{});
    std::uint32_t scope = tree.by_address.find(vaddr);
    if (scope == IntervalMap::none) {
        frames.push_back({0, line.file, line.line, false});
        return;
    }
    for (std::size_t depth = 0; scope != IntervalMap::none && depth < max_inline_depth; ++depth) {
        const Scope& here = tree.scopes[scope];
        frames.push_back(
            {name_of(unit, here.named_by), line.file, line.line, here.inlined && here.parent != IntervalMap::none});
        line = {table.file(here.call_file), here.call_line};
        scope = here.parent;
    }
}

}  // namespace flamewire::symbol
