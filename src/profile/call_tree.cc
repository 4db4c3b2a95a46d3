// The flame graph: the touched part of the function trie, zoomed, pruned and ordered.
#include <algorithm>

#include "profile/accumulate.h"
#include "profile/query.h"

namespace flamewire::profile {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// The node that a path of names leads to; of several (equal names in different modules) the heaviest; `none` without
// any.
std::uint32_t find_path(const Store::Tables& tables, const TouchedTree& tree, const std::vector<std::string>& path,
                        const Measure& measure) {
    std::vector<std::uint32_t> matches{0};
    for (const std::string& name : path) {
        const StringId id = tables.strings.find(name);
        if (id == 0) return none;
        std::vector<std::uint32_t> next;
        for (const std::uint32_t node : matches)
            for (std::uint32_t child = tree.first_child[node]; child != 0; child = tree.next_sibling[child])
                if (tables.functions[tables.nodes.label(tree.node[child])].name == id) next.push_back(child);
        matches = std::move(next);
    }
    if (matches.empty()) return none;
    return std::ranges::max(matches, {}, [&](std::uint32_t node) { return measure(tree.total[node]); });
}

// Which nodes stay. A child is never heavier than its parent and has a larger index, so keeping the first of an order
// by (weight descending, index) keeps every parent of what it keeps.
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
    std::uint64_t last_weight_ = 0;   // the lightest node that stays …
    std::uint32_t last_node_ = none;  // … and its index
};

// Breadth first: the children of a node stand together, in order.
void emit(const Store::Tables& tables, const TouchedTree& tree, std::uint32_t root, const Pruning& pruning,
          const Measure& measure, CallTree& out) {
    std::vector<std::uint32_t> local(tables.functions.size(), none);
    const auto local_function = [&](std::uint32_t node) {
        const FunctionId id = tables.nodes.label(tree.node[node]);
        if (local[id] == none) {
            local[id] = narrow32(out.functions.size());
            out.functions.push_back(tables.functions[id]);
        }
        return local[id];
    };
    std::vector<std::uint32_t> source{root};  // of out.nodes, in tree
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

CallTree call_tree(const Store& store, const Filter& filter, const TreeOptions& options) {
    const Store::Tables& tables = store.tables();
    const TouchedTree tree = touched_nodes(tables, select(tables, filter));
    const Measure measure(tree.total[0]);
    const std::uint32_t root = find_path(tables, tree, options.path, measure);
    CallTree out;
    if (root == none) {
        out.nodes.emplace_back();
        out.functions.emplace_back();
        return out;
    }
    emit(tables, tree, root, Pruning(tree, root, options, measure), measure, out);
    out.total = out.nodes[0].total;
    out.newest_ns = tree.newest_ns;
    return out;
}

}  // namespace flamewire::profile
