#include "profile/query/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "profile/query/shape.h"

namespace flamewire::profile {
namespace {

// Shortens an id like container runtimes do; a name does not change.
std::string_view short_id(std::string_view id) {
    constexpr std::size_t whole = 64, shown = 12;
    const bool digits = std::ranges::all_of(id, [](unsigned char c) { return std::isxdigit(c) != 0; });
    return id.size() == whole && digits ? id.substr(0, shown) : id;
}

// Some formats have no processes, and their only process has id 0.
std::string numbered(std::string_view comm, std::uint32_t id) {
    if (comm.empty()) comm = "[unknown]";
    return id == 0 ? std::string(comm) : fmt::format("{} ({})", comm, id);
}

}  // namespace

std::optional<GroupBy> parse_group(std::string_view text) {
    constexpr std::string_view names[] = {"none", "process", "thread", "container", "cpu"};
    if (text.empty()) return GroupBy::none;
    const auto* const found = std::ranges::find(names, text);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<GroupBy>(found - std::begin(names));
}

struct Grouping::Known {
    std::unordered_map<std::string, std::uint32_t> by_name;
    std::unordered_map<std::uint32_t, std::uint32_t> by_id;  // of a thread or a CPU
};

Grouping::Grouping(const Store& store, GroupBy by) : store_(store), by_(by), known_(std::make_unique<Known>()) {}
Grouping::~Grouping() = default;

std::string Grouping::name_of(const Lane& lane) const {
    if (by_ == GroupBy::cpu) return lane.cpu == folded_cpu ? "[CPU not kept]" : fmt::format("CPU {}", lane.cpu);
    const Thread& thread = store_.threads()[lane.thread];
    if (by_ == GroupBy::thread) return numbered(thread.comm, thread.tid);
    const Process& process = store_.processes()[thread.process];
    if (by_ == GroupBy::process) return numbered(process.comm.empty() ? thread.comm : process.comm, thread.pid);
    return process.container_id.empty() ? "[no container]" : std::string(short_id(process.container_id));
}

std::uint32_t Grouping::of(const Lane& lane) {
    const auto [known, added] = known_->by_id.try_emplace(by_ == GroupBy::cpu ? lane.cpu : lane.thread);
    if (!added) return known->second;
    std::string name = name_of(lane);
    const auto [entry, fresh] = known_->by_name.try_emplace(name, narrow32(names_.size()));
    if (fresh) names_.push_back(std::move(name));
    return known->second = entry->second;
}

namespace {

// A shape with a root frame for each group.
Shape grouped_shape(const Store& store, const Filter& filter, GroupBy by, const TreeOptions& options) {
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    Grouping groups(store, by);
    PairSums sums;
    std::uint64_t newest_ns = 0;
    tables.rows.for_each(selection.rows, [&](const RowChunk& chunk, const Row& row) {
        sums.add(groups.of(row.lane), row.stack, {row.count, selection.weighed ? row.weight : 0});
        newest_ns = std::max(newest_ns, (row.bucket + 1) * chunk.bucket_ns);
    });
    // Handle one group at a time, so that the stack alone determines its node in the trie of the group.
    std::vector<PairSums::Entry> entries(sums.entries().begin(), sums.entries().end());
    std::ranges::sort(entries, {}, [](const PairSums::Entry& entry) { return std::pair(entry.first, entry.second); });
    ShapeBuilder builder(tables, options, ShapeBuilder::max_nodes, groups.names());
    std::vector<ShapeBuilder::Cursor> cursor_of(options.inverted ? 0 : tables.stacks.size());
    std::vector<std::uint32_t> group_of(cursor_of.size());  // group of the cursor, + 1
    std::vector<StackId> way;
    for (const PairSums::Entry& entry : entries) {
        ShapeBuilder::Cursor at = builder.step_into(entry.first);
        way.clear();
        StackId outer = entry.second;
        for (; outer != 0 && (options.inverted || group_of[outer] != entry.first + 1);
             outer = tables.stacks.parent(outer))
            way.push_back(outer);
        if (outer != 0) at = cursor_of[outer];
        if (!options.inverted) std::ranges::reverse(way);
        for (const StackId stack : way) {
            const LocationId location = tables.stacks.label(stack);
            const std::span<const LocationFrame> frames = tables.frames_of(location);
            if (options.inverted) {
                for (const LocationFrame& frame : frames) at = builder.step(at, location, frame);
                continue;
            }
            for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) at = builder.step(at, location, *frame);
            cursor_of[stack] = at;
            group_of[stack] = entry.first + 1;
        }
        builder.add(at, entry.sum);
    }
    return std::move(builder).finish(std::min(newest_ns, tables.last_row_end_ns));
}

}  // namespace

GroupedTree grouped_tree(const Store& store, const Filter& filter, GroupBy by, const TreeOptions& options) {
    if (by == GroupBy::none) return {call_tree(store, filter, options), {}};
    Shape made = grouped_shape(store, filter, by, options);
    hide(store.tables(), made, options);
    return {call_tree_of(store, made, options), made.labels.groups()};
}

}  // namespace flamewire::profile
