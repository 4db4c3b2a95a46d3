// Callers and callees of one function.
#include <algorithm>
#include <limits>
#include <tuple>

#include "profile/query/shape.h"

namespace flamewire::profile {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// By group: 1 if it is a requested function.
std::vector<std::uint8_t> wanted_groups(const Store::Tables& tables, std::string_view name, std::string_view module) {
    std::vector<std::uint8_t> wanted(tables.functions.size());
    const StringId name_id = tables.strings.find(name);
    const StringId module_id = tables.strings.find(module);
    if (name_id == 0 || (!module.empty() && module_id == 0)) return wanted;
    for (FunctionId id = 1; id < tables.functions.size(); ++id)
        if (tables.functions[id].name == name_id && (module.empty() || tables.functions[id].module == module_id))
            wanted[tables.functions.group(id)] = 1;
    return wanted;
}

// The weight of the functions next to the wanted one, once per stack, by group. Enter and leave calls of a depth-first
// walk track which functions are on the path from the root.
class Neighbours {
public:
    Neighbours(std::size_t groups) : active_(groups), sums_(groups) {}
    void enter(FunctionId group, const Weight& weight) {
        if (active_[group]++ == 0) sums_[group] += weight;
    }
    void leave(FunctionId group) { --active_[group]; }
    [[nodiscard]] std::vector<Sandwich::Neighbour> list(const FunctionTable& functions, const Measure& measure) const {
        std::vector<FunctionId> found;
        for (FunctionId group = 1; group < sums_.size(); ++group)
            if (sums_[group] != Weight{}) found.push_back(group);
        std::ranges::sort(found, {}, [&](FunctionId group) { return std::tuple(~measure(sums_[group]), group); });
        std::vector<Sandwich::Neighbour> out;
        out.reserve(found.size());
        for (const FunctionId group : found) out.push_back({functions.shown(group), sums_[group]});
        return out;
    }

private:
    std::vector<std::uint32_t> active_;
    std::vector<Weight> sums_;
};

class Maker {
public:
    Maker(const Store::Tables& tables, const TouchedTree& stacks, const std::vector<std::uint8_t>& wanted,
          const TreeOptions& options)
        : tables_(tables), stacks_(stacks), wanted_(wanted), callers_(tables, options), callees_(tables, options) {}

    // Builds both trees: the outermost frames of the function, their callers, and everything below them.
    void trees() {
        std::vector<Below> below(stacks_.size());
        for (std::uint32_t i = 1; i < stacks_.size(); ++i) {
            below[i] = below[stacks_.parent[i]];
            const LocationId location = location_of(i);
            const std::span<const LocationFrame> frames = tables_.frames_of(location);
            for (std::size_t frame = frames.size(); frame-- > 0;) {
                if (below[i].inside)
                    below[i].at = callees_.step(below[i].at, location, frames[frame]);
                else if (is_wanted(frames[frame])) {
                    below[i].inside = true;
                    callees_.set_root(location, frames[frame]);
                    callers_.set_root(location, frames[frame]);
                    add_callers(i, frame);
                }
            }
            if (!below[i].inside) continue;
            callees_.add(below[i].at, stacks_.self[i]);
            if (is_wanted(frames.front())) self_ += stacks_.self[i];
        }
    }

    void neighbours(Sandwich& out) {
        Neighbours above(tables_.functions.size()), under(tables_.functions.size());
        const auto visit = [&](std::uint32_t node, auto enter) {
            const std::span<const LocationFrame> frames = tables_.frames_of(location_of(node));
            FunctionId outer = 0;  // group of the previous frame
            if (stacks_.parent[node] != 0) outer = group(tables_.frames_of(location_of(stacks_.parent[node])).front());
            for (std::size_t frame = frames.size(); frame-- > 0;) {
                const FunctionId inner = group(frames[frame]);
                if (outer != 0 && wanted_[inner] != 0) enter(above, outer);
                if (outer != 0 && wanted_[outer] != 0) enter(under, inner);
                outer = inner;
            }
        };
        const auto enter = [&](std::uint32_t node) {
            visit(node, [&](Neighbours& side, FunctionId id) { side.enter(id, stacks_.total[node]); });
        };
        const auto leave = [&](std::uint32_t node) {
            visit(node, [](Neighbours& side, FunctionId id) { side.leave(id); });
        };
        walk_depth_first(stacks_, enter, leave);
        const Measure measure(stacks_.total[0]);
        out.direct_callers = above.list(tables_.functions, measure);
        out.direct_callees = under.list(tables_.functions, measure);
    }

    Sandwich finish(const TreeOptions& options) && {
        Sandwich out;
        out.callers = to_call_tree(std::move(callers_).finish(stacks_.newest_ns), 0, options);
        out.callees = to_call_tree(std::move(callees_).finish(stacks_.newest_ns), 0, options);
        out.self = self_;
        out.total = out.callees.total;
        out.all = stacks_.total[0];
        return out;
    }

private:
    struct Below {
        ShapeBuilder::Cursor at;
        bool inside = false;
    };

    [[nodiscard]] LocationId location_of(std::uint32_t node) const { return tables_.stacks.label(stacks_.node[node]); }
    [[nodiscard]] FunctionId group(const LocationFrame& frame) const { return tables_.functions.group(frame.function); }
    [[nodiscard]] bool is_wanted(const LocationFrame& frame) const { return wanted_[group(frame)] != 0; }

    // Adds the frames outside of the given one, innermost first.
    void add_callers(std::uint32_t node, std::size_t frame) {
        ShapeBuilder::Cursor at;
        const Weight weight = stacks_.total[node];
        for (; node != 0; node = stacks_.parent[node], frame = none) {
            const LocationId location = location_of(node);
            const std::span<const LocationFrame> frames = tables_.frames_of(location);
            for (std::size_t outer = frame == none ? 0 : frame + 1; outer < frames.size(); ++outer)
                at = callers_.step(at, location, frames[outer]);
        }
        callers_.add(at, weight);
    }

    const Store::Tables& tables_;
    const TouchedTree& stacks_;
    const std::vector<std::uint8_t>& wanted_;
    ShapeBuilder callers_, callees_;
    Weight self_;
};

}  // namespace

Sandwich sandwich(const Store& store, const Filter& filter, std::string_view name, std::string_view module,
                  const TreeOptions& options) {
    const Store::Tables& tables = store.tables();
    const TouchedTree stacks = touched_stacks(tables, select(tables, filter));
    const std::vector<std::uint8_t> wanted = wanted_groups(tables, name, module);
    Maker maker(tables, stacks, wanted, options);
    maker.trees();
    Sandwich neighbours;
    maker.neighbours(neighbours);
    Sandwich out = std::move(maker).finish(options);
    out.direct_callers = std::move(neighbours.direct_callers);
    out.direct_callees = std::move(neighbours.direct_callees);
    return out;
}

}  // namespace flamewire::profile
