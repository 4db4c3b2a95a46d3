// The flame graph: the touched part of the function trie, zoomed, pruned and ordered.
#include <fmt/format.h>

#include <algorithm>

#include "profile/query/shape.h"

namespace flamewire::profile {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// Selects the nodes to keep. A child is never heavier than its parent and has a larger index. Keeping the first nodes
// in order of (weight descending, index) thus keeps the parents of all kept nodes.
class Pruning {
public:
    Pruning(const TouchedTree& tree, std::uint32_t root, const TreeOptions& options, const Measure& measure)
        : tree_(tree), measure_(measure) {
        least_ = options.min_share > 0 ? options.min_share * static_cast<double>(measure(tree.total[root])) : 0;
        if (options.max_nodes != 0) limit_nodes(root, options.max_nodes);
    }

    [[nodiscard]] bool keeps(std::uint32_t node) const {
        const std::uint64_t weight = measure_(tree_.total[node]);
        return static_cast<double>(weight) >= least_ &&
               (weight > last_weight_ || (weight == last_weight_ && node <= last_node_));
    }

private:
    void limit_nodes(std::uint32_t root, std::size_t max_nodes) {
        std::vector<std::uint32_t> list{root};
        for (std::size_t i = 0; i < list.size(); ++i)
            for (std::uint32_t child = tree_.first_child[list[i]]; child != 0; child = tree_.next_sibling[child])
                if (keeps(child)) list.push_back(child);
        if (list.size() <= max_nodes) return;
        const auto last = list.begin() + static_cast<std::ptrdiff_t>(max_nodes - 1);
        std::nth_element(list.begin(), last, list.end(), [&](std::uint32_t a, std::uint32_t b) {
            const std::uint64_t weight_a = measure_(tree_.total[a]);
            const std::uint64_t weight_b = measure_(tree_.total[b]);
            return weight_a != weight_b ? weight_a > weight_b : a < b;
        });
        last_weight_ = measure_(tree_.total[*last]);
        last_node_ = *last;
    }

    const TouchedTree& tree_;
    Measure measure_;
    double least_ = 0;
    std::uint64_t last_weight_ = 0;   // the lightest node to keep …
    std::uint32_t last_node_ = none;  // … and its index
};

// Breadth first: the children of a node are contiguous and in order.
void emit(const Shape& shape, std::uint32_t root, const Pruning& pruning, const Measure& measure, bool with_addresses,
          CallTree& out) {
    const TouchedTree& tree = shape.tree;
    std::vector<std::uint32_t> local(shape.labels.size(), none);
    const auto local_function = [&](std::uint32_t node) {
        const std::uint32_t label = tree.node[node];
        if (local[label] == none) {
            local[label] = narrow32(out.functions.size());
            out.functions.push_back(shape.labels.shown(label));
            if (with_addresses) out.addresses.push_back(shape.labels.address(label));
        }
        return local[label];
    };
    std::vector<std::uint32_t> source{root};  // for each node of out.nodes, its index in the tree
    out.nodes.push_back({0, local_function(root), tree.self[root], tree.total[root], 0});
    std::vector<std::uint32_t> children;
    for (std::uint32_t i = 0; i < source.size(); ++i) {
        children.clear();
        for (std::uint32_t child = tree.first_child[source[i]]; child != 0; child = tree.next_sibling[child]) {
            if (pruning.keeps(child))
                children.push_back(child);
            else
                ++out.nodes[i].pruned_children;
        }
        if (!shape.cut.empty() && shape.cut[source[i]] != 0) ++out.nodes[i].pruned_children;
        std::ranges::sort(children, [&](std::uint32_t a, std::uint32_t b) {
            const std::uint64_t weight_a = measure(tree.total[a]);
            const std::uint64_t weight_b = measure(tree.total[b]);
            return weight_a != weight_b ? weight_a > weight_b : a < b;
        });
        for (const std::uint32_t child : children) {
            source.push_back(child);
            out.nodes.push_back({i, local_function(child), tree.self[child], tree.total[child], 0});
        }
    }
}

}  // namespace

PathEntry parse_path_entry(std::string_view text) {
    PathEntry entry;
    std::string_view* const parts[] = {&entry.name, &entry.kind, &entry.module, &entry.place};
    for (std::string_view* part : parts) {
        const std::size_t end = text.find('\x1e');
        *part = text.substr(0, end);
        if (end == std::string_view::npos) break;
        entry.qualified = true;
        text.remove_prefix(end + 1);
    }
    return entry;
}

bool is_exactly(const PathEntry& entry, FrameKind kind, std::string_view module, std::uint64_t place) {
    return fmt::format_int(static_cast<unsigned>(kind)).str() == entry.kind && module == entry.module &&
           (entry.place.empty() || fmt::format_int(place).str() == entry.place);
}

std::optional<std::uint32_t> find_path(const Store::Tables& tables, const Shape& shape,
                                       std::span<const std::string> path, const Measure& measure) {
    const TouchedTree& tree = shape.tree;
    std::uint32_t at = 0;
    for (const std::string& text : path) {
        const PathEntry entry = parse_path_entry(text);
        const auto fits = [&](std::uint32_t label) {
            const Function function = shape.labels.shown(label);
            const std::uint64_t address = shape.labels.address(label);
            return is_exactly(entry, function.kind, tables.strings[function.module],
                              address != 0 ? address : function.line);
        };
        std::uint32_t best = 0;
        for (std::uint32_t child = tree.first_child[at]; child != 0; child = tree.next_sibling[child]) {
            if (shape.labels.name(tree.node[child]) != entry.name) continue;
            if (entry.qualified && fits(tree.node[child])) {
                best = child;
                break;
            }
            if (best == 0 || measure(tree.total[child]) > measure(tree.total[best])) best = child;
        }
        if (best == 0) return std::nullopt;
        at = best;
    }
    return at;
}

CallTree to_call_tree(const Shape& shape, std::uint32_t root, const TreeOptions& options) {
    const Measure measure(shape.tree.total[0]);
    CallTree out;
    emit(shape, root, Pruning(shape.tree, root, options, measure), measure, options.merge == MergeBy::address, out);
    out.total = out.nodes[0].total;
    out.newest_ns = shape.tree.newest_ns;
    return out;
}

CallTree call_tree_of(const Store& store, const Shape& shape, const TreeOptions& options) {
    if (const auto root = find_path(store.tables(), shape, options.path, Measure(shape.tree.total[0])))
        return to_call_tree(shape, *root, options);
    CallTree out;
    out.nodes.push_back({});
    out.functions.emplace_back();
    out.newest_ns = shape.tree.newest_ns;
    if (options.merge == MergeBy::address) out.addresses.push_back(0);
    return out;
}

CallTree call_tree(const Store& store, const Filter& filter, const TreeOptions& options) {
    return call_tree_of(store, shape(store.tables(), filter, options), options);
}

}  // namespace flamewire::profile
