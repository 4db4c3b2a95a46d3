// The queries that return lists: functions, threads, lines, files, slices of time.
#include "profile/query/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "profile/query/accumulate.h"

namespace flamewire::profile {

namespace {

constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

struct SlotSums {
    std::vector<Weight> self, total;  // by slot
    Weight all;
};

// Sums the frames of all matching stacks by slot_of(frame), which is below `slots` or no_slot. self: the frame is
// innermost. total: once per stack, however often the slot is on it. Walks the touched stacks depth first and tracks
// which slots are active on the path from the root.
template <class SlotOf>
SlotSums sum_frames(const Store::Tables& tables, const Filter& filter, std::size_t slots, SlotOf slot_of) {
    const TouchedTree tree = touched_stacks(tables, select(tables, filter));
    SlotSums sums{std::vector<Weight>(slots), std::vector<Weight>(slots), tree.total[0]};
    std::vector<std::uint32_t> active(slots);
    const auto frames = [&](std::uint32_t node) { return tables.frames_of(tables.stacks.label(tree.node[node])); };
    const auto enter = [&](std::uint32_t node) {
        const std::span<const LocationFrame> list = frames(node);
        if (const std::uint32_t slot = slot_of(list.front()); slot != no_slot) sums.self[slot] += tree.self[node];
        for (const LocationFrame& frame : list)
            if (const std::uint32_t slot = slot_of(frame); slot != no_slot && active[slot]++ == 0)
                sums.total[slot] += tree.total[node];
    };
    const auto leave = [&](std::uint32_t node) {
        for (const LocationFrame& frame : frames(node))
            if (const std::uint32_t slot = slot_of(frame); slot != no_slot) --active[slot];
    };
    walk_depth_first(tree, enter, leave);
    return sums;
}

bool is_zero(const Weight& weight) { return weight == Weight{}; }

// By descending self, then by descending total, then by id_of(row), so that equal rows keep their order between
// answers.
template <class Row, class IdOf>
void sort_by_self(std::vector<Row>& rows, const Measure& measure, IdOf id_of) {
    const auto key = [&](const Row& row) { return std::tuple(~measure(row.self), ~measure(row.total), id_of(row)); };
    std::ranges::sort(rows, {}, key);
}

}  // namespace

std::vector<FunctionRow> functions(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    const SlotSums sums = sum_frames(tables, filter, tables.functions.size(), [&](const LocationFrame& frame) {
        return tables.functions.group(frame.function);
    });
    std::vector<FunctionRow> rows;
    for (FunctionId group = 1; group < tables.functions.size(); ++group)
        if (!is_zero(sums.total[group]))
            rows.push_back({tables.functions.shown(group), sums.self[group], sums.total[group]});
    sort_by_self(rows, Measure(sums.all),
                 [](const FunctionRow& row) { return std::pair(row.function.name, row.function.module); });
    return rows;
}

std::vector<ThreadRow> thread_summary(const Store& store, const Filter& filter) {
    constexpr std::size_t most = 5;
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    PairSums by_function;  // (thread, function group)
    std::vector<Weight> by_thread(tables.threads.size());
    Weight all;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        const Weight weight{row.count, selection.weighed ? row.weight : 0};
        by_thread[row.lane.thread] += weight;
        all += weight;
        if (row.stack == 0) return;
        const LocationFrame& leaf = tables.frames_of(tables.stacks.label(row.stack)).front();
        by_function.add(row.lane.thread, tables.functions.group(leaf.function), weight);
    });

    const Measure measure(all);
    std::vector<PairSums::Entry> entries(by_function.entries().begin(), by_function.entries().end());
    std::ranges::sort(entries, {}, [&](const PairSums::Entry& entry) {
        return std::tuple(entry.first, ~measure(entry.sum), entry.second);
    });
    std::vector<ThreadRow> rows;
    auto entry = entries.begin();
    for (ThreadId thread = 0; thread < by_thread.size(); ++thread) {
        ThreadRow row{thread, by_thread[thread], {}};
        for (; entry != entries.end() && entry->first == thread; ++entry)
            if (row.top.size() < most) row.top.push_back({tables.functions.shown(entry->second), entry->sum});
        if (!is_zero(row.weight)) rows.push_back(std::move(row));
    }
    std::ranges::sort(rows, {}, [&](const ThreadRow& row) { return std::pair(~measure(row.weight), row.thread); });
    return rows;
}

std::vector<LineRow> line_heat(const Store& store, const Filter& filter, std::string_view file) {
    const Store::Tables& tables = store.tables();
    const StringId id = tables.strings.find(file);
    if (id == 0) return {};
    std::vector<std::uint32_t> lines;
    for (const LocationFrame& frame : tables.frames)
        if (frame.file == id && frame.line != 0) lines.push_back(frame.line);
    std::ranges::sort(lines);
    lines.erase(std::ranges::unique(lines).begin(), lines.end());
    const SlotSums sums = sum_frames(tables, filter, lines.size(), [&](const LocationFrame& frame) {
        if (frame.file != id || frame.line == 0) return no_slot;
        return narrow32(static_cast<std::size_t>(std::ranges::lower_bound(lines, frame.line) - lines.begin()));
    });
    std::vector<LineRow> rows;
    for (std::size_t slot = 0; slot < lines.size(); ++slot)
        if (!is_zero(sums.total[slot])) rows.push_back({lines[slot], sums.self[slot], sums.total[slot]});
    return rows;
}

std::vector<FileRow> source_files(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    std::vector<StringId> files;
    std::vector<std::uint32_t> slot(tables.strings.size(), no_slot);
    for (const LocationFrame& frame : tables.frames) {
        if (frame.file == 0 || slot[frame.file] != no_slot) continue;
        slot[frame.file] = narrow32(files.size());
        files.push_back(frame.file);
    }
    const SlotSums sums =
        sum_frames(tables, filter, files.size(), [&](const LocationFrame& frame) { return slot[frame.file]; });
    std::vector<FileRow> rows;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (!is_zero(sums.total[i])) rows.push_back({files[i], sums.self[i], sums.total[i]});
    sort_by_self(rows, Measure(sums.all), [](const FileRow& row) { return row.file; });
    return rows;
}

std::vector<ModuleRow> modules(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    const TouchedTree tree = touched_stacks(tables, select(tables, filter));
    std::vector<ModuleRow> sums(tables.modules.size());
    std::vector<std::uint32_t> active(tables.modules.size());
    const auto module_of = [&](std::uint32_t node) {
        return tables.locations[tables.stacks.label(tree.node[node])].module;
    };
    const auto enter = [&](std::uint32_t node) {
        const ModuleId module = module_of(node);
        sums[module].self += tree.self[node];
        if (active[module]++ == 0) sums[module].total += tree.total[node];
    };
    walk_depth_first(tree, enter, [&](std::uint32_t node) { --active[module_of(node)]; });
    std::vector<ModuleRow> rows;
    for (ModuleId module = 1; module < sums.size(); ++module)
        if (!is_zero(sums[module].total)) rows.push_back({module, sums[module].self, sums[module].total});
    sort_by_self(rows, Measure(tree.total[0]), [](const ModuleRow& row) { return row.module; });
    return rows;
}

bool lacks_symbols(const wire::Notice& notice, const symbol::ModuleIdentity& module) {
    // "[jit] node 4242", "node (process 4242) runs …"
    const std::string_view pid = std::string_view(module.path).substr(module.path.rfind(' ') + 1);
    return module.kind == symbol::ModuleKind::jit && notice.code == "jit-names-missing" &&
           notice.text.contains(fmt::format("(process {})", pid));
}

std::vector<bool> nameless_jit_modules(const Store& store) {
    const Store::Tables& tables = store.tables();
    std::vector<bool> nameless(tables.modules.size());
    bool any = false;
    for (ModuleId module = 1; module < nameless.size(); ++module)
        any |= nameless[module] = tables.modules[module].identity.kind == symbol::ModuleKind::jit;
    if (!any) return nameless;
    for (LocationId id = 1; id < tables.locations.size(); ++id) {
        const ModuleId module = tables.locations[id].module;
        if (nameless[module] && tables.functions[tables.frames_of(id).front().function].kind != FrameKind::unknown)
            nameless[module] = false;
    }
    return nameless;
}

Weight total_of(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    Weight sum;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        sum += {row.count, selection.weighed ? row.weight : 0};
    });
    return sum;
}

bool is_named(const Function& function, std::string_view name) {
    if (function.kind == FrameKind::unknown) return false;
    // The names that an agent uses if it could not read the stack.
    return function.module != 0 || (name != "[unknown process]" && name != "[no stack]");
}

Weight unresolved(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    Weight sum;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        if (row.stack != 0) {
            const Function& leaf = tables.functions[tables.frames_of(tables.stacks.label(row.stack)).front().function];
            if (is_named(leaf, store.string(leaf.name))) return;
        }
        sum += {row.count, selection.weighed ? row.weight : 0};
    });
    return sum;
}

namespace {

constexpr std::string_view incomplete_name = "[incomplete]", truncated_name = "[truncated]",
                           skipped_name = "[caller missing]", unsampled_name = "[not sampled: short-lived threads]";

enum class Gap : std::uint8_t { none, skipped, truncated, incomplete, unsampled };  // in ascending order of precedence

Gap gap_of(const Function& function, std::string_view name) {
    if (function.module != 0) return Gap::none;
    if (name == incomplete_name) return Gap::incomplete;
    if (name == truncated_name) return Gap::truncated;
    if (name == unsampled_name) return Gap::unsampled;
    return name == skipped_name ? Gap::skipped : Gap::none;
}

}  // namespace

bool is_placeholder(const Function& function, std::string_view name) { return gap_of(function, name) != Gap::none; }

MissingCallers missing_callers(const Store& store, const Filter& filter) {
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    struct Path {
        Gap gap = Gap::none, own = Gap::none;  // of the whole path, and of its last node
        StringId module = 0;                   // of the frame whose caller is missing
    };
    std::vector<Path> paths(tables.stacks.size());
    for (std::uint32_t id = 1; id < paths.size(); ++id) {
        const Path& parent = paths[tables.stacks.parent(id)];
        const auto frames = tables.frames_of(tables.stacks.label(id));
        const Function& innermost = tables.functions[frames.front().function];
        Path& path = paths[id] = {parent.gap, gap_of(innermost, store.string(innermost.name)), parent.module};
        if (path.own > path.gap) path = {path.own, path.own, 0};
        if (path.own == Gap::none && parent.own != Gap::none && parent.own == path.gap)
            path.module = tables.functions[frames.back().function].module;
    }
    MissingCallers missing;
    Weight all;
    std::map<StringId, Weight> modules;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        const Path& path = paths[row.stack];
        if (path.gap == Gap::none) return;
        const Weight weight{row.count, selection.weighed ? row.weight : 0};
        all += weight;
        (path.gap == Gap::unsampled    ? missing.unsampled
         : path.gap == Gap::incomplete ? missing.incomplete
         : path.gap == Gap::truncated  ? missing.truncated
                                       : missing.skipped) += weight;
        if (path.gap != Gap::truncated && path.module != 0) modules[path.module] += weight;
    });
    const Measure measure(all);
    const auto most = std::ranges::max_element(modules, {}, [&](const auto& it) { return measure(it.second); });
    if (most != modules.end()) missing.module = most->first;
    return missing;
}

namespace {

// Calls `add(row, slice, weight)` for each row of the filter, if there are any slices.
template <class Add>
void for_each_slice(const Store& store, const Filter& filter, std::size_t slices, Add add) {
    constexpr std::uint64_t open_end = std::numeric_limits<std::uint64_t>::max();
    __extension__ using Wide = unsigned __int128;
    const Store::Tables& tables = store.tables();
    const std::uint64_t start_ns = filter.start_ns == 0 ? store.first_ns() : filter.start_ns;
    const std::uint64_t end_ns = filter.end_ns == open_end ? store.end_ns() : filter.end_ns;
    if (slices == 0 || end_ns <= start_ns) return;
    const Selection selection = select(tables, filter);
    tables.rows.for_each(selection.rows, [&](const RowChunk& chunk, const Row& row) {
        const std::uint64_t time_ns = std::max(start_ns, row.bucket * chunk.bucket_ns);
        const Wide slice = static_cast<Wide>(time_ns - start_ns) * slices / (end_ns - start_ns);
        add(row, static_cast<std::size_t>(slice), Weight{row.count, selection.weighed ? row.weight : 0});
    });
}

constexpr std::size_t most_slices = 1'000'000;

}  // namespace

std::vector<Weight> histogram(const Store& store, const Filter& filter, std::size_t slices) {
    std::vector<Weight> sums(std::min(slices, most_slices));
    for_each_slice(store, filter, sums.size(),
                   [&](const Row&, std::size_t slice, const Weight& weight) { sums[slice] += weight; });
    return sums;
}

std::vector<LaneHistogram> histogram_by(const Store& store, const Filter& filter, std::size_t slices, Lanes lanes) {
    slices = std::min(slices, most_slices);
    std::map<std::uint32_t, LaneHistogram> found;
    for_each_slice(store, filter, slices, [&](const Row& row, std::size_t slice, const Weight& weight) {
        const std::uint32_t id = lanes == Lanes::threads ? row.lane.thread : row.lane.cpu;
        LaneHistogram& lane = found[id];
        if (lane.slices.empty()) lane = {id, {}, std::vector<Weight>(slices)};
        lane.slices[slice] += weight;
        lane.total += weight;
    });
    std::vector<LaneHistogram> result;
    result.reserve(found.size());
    for (auto& [id, lane] : found) result.push_back(std::move(lane));
    return result;
}

}  // namespace flamewire::profile
