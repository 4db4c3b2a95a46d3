#include "symbol/dwarf/scope_tree.h"

#include <dwarf.h>

#include <limits>
#include <optional>

#include "base/byte_reader.h"
#include "symbol/dwarf/split_ranges.h"

namespace flamewire::symbol {
namespace {

// Deeper than compilers nest. Bounds memory.
constexpr std::size_t max_depth = 1u << 16;

// An attribute value, of one of the kinds that scopes need.
struct Value {
    enum Kind : std::uint8_t {
        absent,
        address,
        address_index,
        constant,
        unit_reference,
        reference,
        alternate,
        other
    } kind = absent;
    std::uint64_t number = 0;
};

Value read_value(ByteReader& in, const AttributeSpec& attribute, const UnitFormat& format) {
    const auto fixed = [&] { return in.number(static_cast<std::size_t>(attribute.fixed_size)); };
    switch (attribute.form) {
        case DW_FORM_addr: return {Value::address, fixed()};
        case DW_FORM_addrx1:
        case DW_FORM_addrx2:
        case DW_FORM_addrx3:
        case DW_FORM_addrx4: return {Value::address_index, fixed()};
        case DW_FORM_addrx:
        case DW_FORM_GNU_addr_index: return {Value::address_index, in.uleb()};
        case DW_FORM_data1:
        case DW_FORM_data2:
        case DW_FORM_data4:
        case DW_FORM_data8: return {Value::constant, fixed()};
        case DW_FORM_udata: return {Value::constant, in.uleb()};
        case DW_FORM_sdata: return {Value::constant, static_cast<std::uint64_t>(in.sleb())};
        case DW_FORM_implicit_const: return {Value::constant, static_cast<std::uint64_t>(attribute.implicit)};
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8: return {Value::unit_reference, fixed()};
        case DW_FORM_ref_udata: return {Value::unit_reference, in.uleb()};
        case DW_FORM_ref_addr: return {Value::reference, fixed()};
        case DW_FORM_GNU_ref_alt:
        case DW_FORM_ref_sup4:
        case DW_FORM_ref_sup8: return {Value::alternate, fixed()};
        default: skip_value(in, attribute, format); return {Value::other, 0};
    }
}

// The attributes of one function or inlined function.
struct FunctionDie {
    Value low, high, origin, call_file, call_line;
    bool has_ranges = false, has_linkage_name = false;
    std::uint64_t ranges = 0;  // of a split unit: the list's offset, or its index
    bool ranges_index = false;
};

class ScopeScan {
public:
    ScopeScan(const ObjectFile& file, const DwarfSections& sections, const Unit& unit,
              const Abbreviations& abbreviations, IndexBudget& budget)
        : file_(file), sections_(sections), unit_(unit), abbreviations_(abbreviations), budget_(budget) {}

    ScopeTree run() {
        ByteReader in(unit_.dies, byte_order(unit_.format.big_endian));
        std::vector<std::uint32_t> around;  // by depth: the innermost enclosing scope
        while (in.ok() && in.remaining() > 0 && !budget_.exceeded()) {
            const std::size_t position = in.position();
            const std::uint64_t code = in.uleb();
            if (code == 0) {
                if (around.empty()) break;
                around.pop_back();
                continue;
            }
            const Abbreviation* abbreviation = abbreviations_.find(code);
            if (abbreviation == nullptr) break;
            const std::uint32_t parent = around.empty() ? IntervalMap::none : around.back();
            const std::uint32_t scope = read_die(in, *abbreviation, position, parent);
            if (!abbreviation->has_children) continue;
            if (around.size() == max_depth) break;
            around.push_back(scope);
        }
        tree_.by_address = IntervalMap(std::move(intervals_));
        return std::move(tree_);
    }

private:
    // Skips one DIE. Returns the scope of its children.
    std::uint32_t read_die(ByteReader& in, const Abbreviation& abbreviation, std::size_t position,
                           std::uint32_t parent) {
        const bool function = abbreviation.tag == DW_TAG_subprogram;
        if (!function && abbreviation.tag != DW_TAG_inlined_subroutine) {
            if (abbreviation.has_fixed_size)
                in.skip(abbreviation.fixed_size);
            else
                for (const AttributeSpec& attribute : abbreviations_.attributes(abbreviation))
                    skip_value(in, attribute, unit_.format);
            return parent;
        }
        FunctionDie die;
        for (const AttributeSpec& attribute : abbreviations_.attributes(abbreviation))
            read_attribute(in, attribute, die);
        if (!in.ok()) return parent;
        const auto scope = static_cast<std::uint32_t>(tree_.scopes.size());
        const std::size_t before = intervals_.size();
        add_intervals(die, position, scope);
        if (intervals_.size() == before) return parent;
        tree_.scopes.push_back(make_scope(die, position, function ? IntervalMap::none : parent, !function));
        return scope;
    }

    void read_attribute(ByteReader& in, const AttributeSpec& attribute, FunctionDie& die) const {
        switch (attribute.name) {
            case DW_AT_low_pc: die.low = read_value(in, attribute, unit_.format); return;
            case DW_AT_high_pc: die.high = read_value(in, attribute, unit_.format); return;
            case DW_AT_call_file: die.call_file = read_value(in, attribute, unit_.format); return;
            case DW_AT_call_line: die.call_line = read_value(in, attribute, unit_.format); return;
            case DW_AT_abstract_origin:
            case DW_AT_specification: die.origin = read_value(in, attribute, unit_.format); return;
            case DW_AT_ranges:
                die.has_ranges = true;
                if (!unit_.split) break;
                die.ranges_index = attribute.form == DW_FORM_rnglistx;
                die.ranges =
                    attribute.fixed_size < 0 ? in.uleb() : in.number(static_cast<std::size_t>(attribute.fixed_size));
                return;
            case DW_AT_linkage_name:
            case DW_AT_MIPS_linkage_name: die.has_linkage_name = true; break;
            default: break;
        }
        skip_value(in, attribute, unit_.format);
    }

    void add_intervals(const FunctionDie& die, std::size_t position, std::uint32_t scope) {
        if (die.has_ranges && unit_.split) {
            for (const AddressRange& range : split_ranges(unit_, sections_.addresses, die.ranges, die.ranges_index))
                if (!add_interval({range.start, range.end, scope})) return;
            return;
        }
        if (die.has_ranges) return add_range_list(position, scope);
        const std::optional<std::uint64_t> low = address_of(die.low);
        if (!low) return;
        std::optional<std::uint64_t> high = address_of(die.high);
        if (die.high.kind == Value::constant) high = *low + die.high.number;
        if (high) (void)add_interval({*low, *high, scope});
    }

    // False: the budget is exceeded.
    bool add_interval(const Interval& interval) {
        if (interval.start >= interval.end || !file_.is_code(interval.start)) return true;
        if (!budget_.take(sizeof interval)) return false;
        intervals_.push_back(interval);
        return true;
    }

    void add_range_list(std::size_t position, std::uint32_t scope) {
        Dwarf_Die die{};  // libdw finds the abbreviation itself
        die.addr = static_cast<char*>(unit_.die.addr) + position;
        die.cu = unit_.die.cu;
        Dwarf_Addr base = 0, start = 0, end = 0;
        std::ptrdiff_t next = 0;
        while ((next = dwarf_ranges(&die, next, &base, &start, &end)) > 0)
            if (!add_interval({start, end, scope})) return;
    }

    [[nodiscard]] std::optional<std::uint64_t> address_of(const Value& value) const {
        if (value.kind == Value::address) return value.number;
        return value.kind == Value::address_index ? indexed_address(unit_, sections_.addresses, value.number)
                                                  : std::nullopt;
    }

    [[nodiscard]] Scope make_scope(const FunctionDie& die, std::size_t position, std::uint32_t parent,
                                   bool inlined) const {
        Scope scope;
        scope.named_by = {unit_.die_offset + position, false};
        if (!die.has_linkage_name) {  // then many instances share one origin, and thus one name lookup
            if (die.origin.kind == Value::unit_reference) scope.named_by = {unit_.offset + die.origin.number, false};
            if (die.origin.kind == Value::reference) scope.named_by = {die.origin.number, false};
            if (die.origin.kind == Value::alternate) scope.named_by = {die.origin.number, true};
        }
        scope.parent = parent;
        scope.inlined = inlined;
        const auto small = [](const Value& value) {
            return value.kind == Value::constant && value.number <= std::numeric_limits<std::uint32_t>::max()
                       ? static_cast<std::uint32_t>(value.number)
                       : 0;
        };
        scope.call_file = small(die.call_file);
        scope.call_line = small(die.call_line);
        return scope;
    }

    const ObjectFile& file_;
    const DwarfSections& sections_;
    const Unit& unit_;
    const Abbreviations& abbreviations_;
    IndexBudget& budget_;
    ScopeTree tree_;
    std::vector<Interval> intervals_;  // of the scopes, as found
};

}  // namespace

ScopeTree scan_scopes(const ObjectFile& file, const DwarfSections& sections, const Unit& unit,
                      const Abbreviations& abbreviations, IndexBudget& budget) {
    return ScopeScan(file, sections, unit, abbreviations, budget).run();
}

}  // namespace flamewire::symbol
