#include "profile/query/code_heat.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profile/query/accumulate.h"

namespace flamewire::profile {

namespace {

// Sums by slot over the stacks of a filter, like sum_frames() in query.cc, but by location: `slots_of[location]` lists
// the slots of a location.
struct SlotLists {
    std::vector<std::uint32_t> first;  // by location; size: locations + 1
    std::vector<std::uint32_t> slots;
};

struct Sums {
    std::vector<Weight> self, total;
    Weight all;
};

Sums sum_locations(const Store::Tables& tables, const Filter& filter, const SlotLists& lists, std::size_t slots) {
    const TouchedTree tree = touched_stacks(tables, select(tables, filter));
    Sums sums{std::vector<Weight>(slots), std::vector<Weight>(slots), tree.total[0]};
    std::vector<std::uint32_t> active(slots);
    const auto of = [&](std::uint32_t node) {
        const LocationId location = tables.stacks.label(tree.node[node]);
        return std::span(lists.slots).subspan(lists.first[location], lists.first[location + 1] - lists.first[location]);
    };
    walk_depth_first(
        tree,
        [&](std::uint32_t node) {
            for (const std::uint32_t slot : of(node)) {
                sums.self[slot] += tree.self[node];
                if (active[slot]++ == 0) sums.total[slot] += tree.total[node];
            }
        },
        [&](std::uint32_t node) {
            for (const std::uint32_t slot : of(node)) --active[slot];
        });
    return sums;
}

bool is_part_mark(std::string_view mark) {
    for (const std::string_view known : {"cold", "part", "isra", "constprop", "lto_priv", "llvm"})
        if (mark.starts_with(known)) return true;
    return false;
}

}  // namespace

std::string_view base_function(std::string_view name) {
    // "f(int) [clone .isra.0] [clone .cold]"
    if (const std::size_t clone = name.find(" [clone "); clone != std::string_view::npos) return name.substr(0, clone);
    // "f.isra.0.cold". In a C++ name the dots of these suffixes come before the parameters.
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
        if (dot != 0 && is_part_mark(name.substr(dot + 1))) return name.substr(0, dot);
    return name;
}

namespace {

// The places of the locations with a frame for which `fits` is true.
template <class Fits>
std::vector<CodePlace> places(const Store::Tables& tables, Fits fits) {
    std::vector<CodePlace> found;
    for (LocationId id = 1; id < tables.locations.size(); ++id) {
        const Location& location = tables.locations[id];
        const std::span<const LocationFrame> frames = tables.frames_of(id);
        for (std::size_t i = frames.size(); i-- > 0;) {
            if (!fits(frames[i])) continue;
            found.push_back({location.module, location.code_address(), i + 1 != frames.size()});
            break;
        }
    }
    std::ranges::sort(found, {}, [](const CodePlace& place) { return std::tuple(place.module, place.address); });
    return found;
}

}  // namespace

std::vector<CodePlace> line_places(const Store& store, std::string_view file, std::uint32_t line) {
    const Store::Tables& tables = store.tables();
    const StringId id = tables.strings.find(file);
    if (id == 0) return {};
    std::uint32_t before = 0, behind = 0;  // nearest lines; 0: none
    for (LocationId location = 1; location < tables.locations.size(); ++location)
        for (const LocationFrame& frame : tables.frames_of(location)) {
            if (frame.file != id || frame.line == 0) continue;
            if (frame.line <= line) before = std::max(before, frame.line);
            if (frame.line > line && (behind == 0 || frame.line < behind)) behind = frame.line;
        }
    const std::uint32_t nearest = before != 0 ? before : behind;
    return places(
        tables, [&](const LocationFrame& frame) { return frame.file == id && frame.line == nearest && nearest != 0; });
}

std::vector<CodePlace> code_places(const Store& store, std::string_view function, std::string_view module) {
    const Store::Tables& tables = store.tables();
    const std::string_view wanted = base_function(function);
    const StringId module_id = tables.strings.find(module);
    if (!module.empty() && module_id == 0) return {};
    std::vector<std::uint8_t> fits(tables.functions.size());
    for (FunctionId id = 1; id < tables.functions.size(); ++id) {
        const Function& entry = tables.functions[id];
        fits[id] = (module.empty() || entry.module == module_id) && base_function(tables.strings[entry.name]) == wanted;
    }
    return places(tables, [&](const LocationFrame& frame) { return fits[frame.function] != 0; });
}

std::vector<AddressRow> address_heat(const Store& store, const Filter& filter, ModuleId module) {
    const Store::Tables& tables = store.tables();
    SlotLists lists;
    lists.first.push_back(0);
    std::vector<AddressRow> rows;
    for (LocationId id = 0; id < tables.locations.size(); ++id) {
        const Location& location = tables.locations[id];
        if (id != 0 && location.module == module) {
            lists.slots.push_back(narrow32(rows.size()));
            rows.push_back({location.code_address(), {}, {}});
        }
        lists.first.push_back(narrow32(lists.slots.size()));
    }
    const Sums sums = sum_locations(tables, filter, lists, rows.size());
    for (std::size_t slot = 0; slot < rows.size(); ++slot) {
        rows[slot].self = sums.self[slot];
        rows[slot].total = sums.total[slot];
    }
    std::erase_if(rows, [](const AddressRow& row) { return row.total == Weight{}; });
    std::ranges::sort(rows, {}, &AddressRow::address);
    return rows;
}

std::vector<InlineRow> inlined_at(const Store& store, const Filter& filter, std::string_view file) {
    const Store::Tables& tables = store.tables();
    const StringId file_id = tables.strings.find(file);
    if (file_id == 0) return {};
    // Slots are pairs of a line and a group of functions.
    std::map<std::pair<std::uint32_t, FunctionId>, std::uint32_t> slots;
    std::vector<InlineRow> rows;
    SlotLists lists;
    lists.first.push_back(0);
    for (LocationId id = 0; id < tables.locations.size(); ++id) {
        const std::span<const LocationFrame> frames = id == 0 ? std::span<const LocationFrame>{} : tables.frames_of(id);
        for (std::size_t i = 1; i < frames.size(); ++i) {
            if (frames[i].file != file_id || frames[i].line == 0) continue;
            const LocationFrame& inner = frames[i - 1];
            const FunctionId group = tables.functions.group(inner.function);
            const auto [slot, added] = slots.try_emplace({frames[i].line, group}, narrow32(rows.size()));
            if (added)
                rows.push_back({frames[i].line, tables.functions.shown(group), inner.file, inner.line, {}});
            else if (inner.file == rows[slot->second].file)
                rows[slot->second].function_line = std::min(rows[slot->second].function_line, inner.line);
            lists.slots.push_back(slot->second);
        }
        lists.first.push_back(narrow32(lists.slots.size()));
    }
    const Sums sums = sum_locations(tables, filter, lists, rows.size());
    for (std::size_t slot = 0; slot < rows.size(); ++slot) rows[slot].total = sums.total[slot];
    std::erase_if(rows, [](const InlineRow& row) { return row.total == Weight{}; });
    const Measure measure(sums.all);
    std::ranges::sort(rows, {}, [&](const InlineRow& row) {
        return std::tuple(row.line, ~measure(row.total), row.function.name, row.function.module);
    });
    return rows;
}

}  // namespace flamewire::profile
