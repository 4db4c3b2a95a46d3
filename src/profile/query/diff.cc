#include "profile/query/diff.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profile/query/shape.h"
#include "profile/store/trie.h"

namespace flamewire::profile {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

Weight& side_of(WeightPair& pair, std::size_t side) { return side == 0 ? pair.before : pair.after; }
const Weight& side_of(const WeightPair& pair, std::size_t side) { return side == 0 ? pair.before : pair.after; }

DiffFunction described(const Store::Tables& tables, const Function& function) {
    const StringTable& strings = tables.strings;
    return {strings[function.name], strings[function.module], function.kind, strings[function.file], function.line};
}

// The labels of frames in two stores, which have only texts in common. 0 is the root's label.
class SharedLabels {
public:
    explicit SharedLabels(MergeBy merge) : merge_(merge) {}

    std::uint32_t of(const DiffFunction& function, std::uint64_t address) {
        Place place{function, address};
        const auto hash = [&](const Place& at) {
            std::uint64_t code = hash_mix(hash_text(at.function.name), hash_text(at.function.module));
            code = hash_mix(code, static_cast<std::uint64_t>(at.function.kind) ^ hash_seed());
            if (merge_ == MergeBy::function) return code;
            return hash_mix(hash_mix(code, hash_text(at.function.file)), hash_mix(at.address, at.function.line));
        };
        const auto equal = [&](std::uint32_t id) { return same(places_[id], place); };
        if (const std::uint32_t known = index_.find(hash(place), equal)) {
            if (places_[known].function.file.empty()) places_[known].function = function;
            return known;
        }
        const std::uint32_t id = narrow32(places_.size());
        places_.push_back(place);
        index_.insert(hash(place), id, [&](std::uint32_t other) { return hash(places_[other]); });
        return id;
    }
    [[nodiscard]] std::size_t size() const { return places_.size(); }
    [[nodiscard]] const DiffFunction& function(std::uint32_t label) const { return places_[label].function; }
    [[nodiscard]] std::uint64_t address(std::uint32_t label) const { return places_[label].address; }

private:
    struct Place {
        DiffFunction function;
        std::uint64_t address = 0;
    };
    [[nodiscard]] bool same(const Place& a, const Place& b) const {
        if (a.function.name != b.function.name || a.function.module != b.function.module ||
            a.function.kind != b.function.kind)
            return false;
        // The line of a function's declaration does not identify it: another build may have it elsewhere.
        return merge_ == MergeBy::function ||
               (a.function.file == b.function.file && a.function.line == b.function.line && a.address == b.address);
    }

    MergeBy merge_;
    std::vector<Place> places_{1};
    IdIndex index_;
};

// Both trees merged, parents before children.
struct Merged {
    std::vector<std::uint32_t> parent, first_child, next_sibling, label;
    std::vector<WeightPair> self, total;
    std::vector<std::uint8_t> cut;  // by node: a side lacks children; see Shape
    SharedLabels labels;
    std::uint64_t newest_ns = 0;  // of the later side
};

Merged merge(const std::array<DiffSide, 2>& sides, const TreeOptions& options) {
    TreeOptions plain = options;
    plain.hidden.clear();  // removed from both sides together, below
    Merged merged{{}, {}, {}, {}, {{}}, {{}}, {0}, SharedLabels(options.merge)};
    Trie trie;
    for (std::size_t side = 0; side < sides.size(); ++side) {
        const Store::Tables& tables = sides[side].store.tables();
        const Shape from = shape(tables, sides[side].filter, plain);
        std::vector<std::uint32_t> label_of(from.labels.size(), none);
        std::vector<std::uint32_t> place(from.tree.size());
        for (std::uint32_t i = 0; i < from.tree.size(); ++i) {
            if (i != 0) {
                const std::uint32_t label = from.tree.node[i];
                if (label_of[label] == none)
                    label_of[label] =
                        merged.labels.of(described(tables, from.labels.shown(label)), from.labels.address(label));
                place[i] = trie.child(place[from.tree.parent[i]], label_of[label]);
                if (place[i] == merged.self.size()) {
                    merged.self.emplace_back();
                    merged.total.emplace_back();
                    merged.cut.push_back(0);
                }
            }
            side_of(merged.self[place[i]], side) += from.tree.self[i];
            side_of(merged.total[place[i]], side) += from.tree.total[i];
            if (!from.cut.empty() && from.cut[i] != 0) merged.cut[place[i]] = 1;
        }
        merged.newest_ns = from.tree.newest_ns;
    }
    merged.parent.assign(trie.parents().begin(), trie.parents().end());
    merged.label.assign(trie.labels().begin(), trie.labels().end());
    merged.first_child.resize(trie.size());
    merged.next_sibling.resize(trie.size());
    for (std::size_t i = trie.size() - 1; i > 0; --i) {
        merged.next_sibling[i] = merged.first_child[merged.parent[i]];
        merged.first_child[merged.parent[i]] = narrow32(i);
    }
    return merged;
}

// The weight of a node: its share of a root, on the side where it is larger. Never more than its parent's.
class Share {
public:
    Share(const Merged& tree, std::uint32_t root) : tree_(tree) {
        for (std::size_t side = 0; side < 2; ++side) {
            const Weight& all = side_of(tree.total[root], side);
            by_samples_[side] = all.weight == 0;
            whole_[side] = static_cast<double>(by_samples_[side] ? all.samples : all.weight);
        }
    }
    double operator()(std::uint32_t node) const { return std::max(of(node, 0), of(node, 1)); }

private:
    [[nodiscard]] double of(std::uint32_t node, std::size_t side) const {
        if (whole_[side] == 0) return 0;
        const Weight& weight = side_of(tree_.total[node], side);
        return static_cast<double>(by_samples_[side] ? weight.samples : weight.weight) / whole_[side];
    }

    const Merged& tree_;
    bool by_samples_[2] = {};
    double whole_[2] = {};
};

std::optional<std::uint32_t> find_path(const Merged& tree, std::span<const std::string> path) {
    const bool by_samples = tree.total[0].before.weight == 0 && tree.total[0].after.weight == 0;
    const auto both = [&](std::uint32_t node) {
        const auto& [before, after] = tree.total[node];
        return by_samples ? before.samples + after.samples : before.weight + after.weight;
    };
    std::uint32_t at = 0;
    for (const std::string& text : path) {
        const PathEntry entry = parse_path_entry(text);
        std::uint32_t best = 0;
        for (std::uint32_t child = tree.first_child[at]; child != 0; child = tree.next_sibling[child]) {
            const DiffFunction& function = tree.labels.function(tree.label[child]);
            if (function.name != entry.name) continue;
            const std::uint64_t address = tree.labels.address(tree.label[child]);
            if (entry.qualified &&
                is_exactly(entry, function.kind, function.module, address != 0 ? address : function.line)) {
                best = child;
                break;
            }
            if (best == 0 || both(child) > both(best)) best = child;
        }
        if (best == 0) return std::nullopt;
        at = best;
    }
    return at;
}

// Removes a node and everything below it from the tree, and also its callers if nothing is left of them.
void remove(Merged& tree, std::uint32_t node) {
    const WeightPair gone = tree.total[node];
    tree.total[node] = {};
    for (std::uint32_t at = node; at != 0; at = tree.parent[at]) {
        const std::uint32_t parent = tree.parent[at];
        for (std::size_t side = 0; side < 2; ++side) {
            side_of(tree.total[parent], side).samples -= side_of(gone, side).samples;
            side_of(tree.total[parent], side).weight -= side_of(gone, side).weight;
        }
        if (tree.total[at] != WeightPair{}) continue;
        std::uint32_t* link = &tree.first_child[parent];
        while (*link != at) link = &tree.next_sibling[*link];
        *link = tree.next_sibling[at];
    }
}

// The nodes to keep, breadth first: the children of a node are contiguous and in order.
std::vector<std::uint32_t> kept(const Merged& tree, std::uint32_t root, const TreeOptions& options,
                                const Share& share) {
    const auto heavier = [&](std::uint32_t a, std::uint32_t b) {
        const double share_a = share(a), share_b = share(b);
        return share_a != share_b ? share_a > share_b : a < b;
    };
    std::vector<std::uint32_t> list{root};
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto first = static_cast<std::ptrdiff_t>(list.size());
        for (std::uint32_t child = tree.first_child[list[i]]; child != 0; child = tree.next_sibling[child])
            if (share(child) >= options.min_share) list.push_back(child);
        std::sort(list.begin() + first, list.end(), heavier);
    }
    if (options.max_nodes == 0 || list.size() <= options.max_nodes) return list;
    // A child has a larger index than its parent and is never heavier, so the heaviest nodes keep their parents.
    std::vector<std::uint32_t> order = list;
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(options.max_nodes);
    std::nth_element(order.begin(), end - 1, order.end(), heavier);
    const std::uint32_t last = *(end - 1);
    std::erase_if(list, [&](std::uint32_t node) { return heavier(last, node); });
    return list;
}

DiffTree to_diff_tree(const Merged& tree, std::uint32_t root, const TreeOptions& options) {
    const Share share(tree, root);
    const std::vector<std::uint32_t> list = kept(tree, root, options, share);
    DiffTree out;
    out.total = tree.total[0];
    std::vector<std::uint32_t> local(tree.labels.size(), none), place(tree.parent.size(), none);
    for (const std::uint32_t node : list) {
        const std::uint32_t label = tree.label[node];
        if (local[label] == none) {
            local[label] = narrow32(out.functions.size());
            out.functions.push_back(tree.labels.function(label));
            if (options.merge == MergeBy::address) out.addresses.push_back(tree.labels.address(label));
        }
        place[node] = narrow32(out.nodes.size());
        const std::uint32_t parent = node == root ? 0 : place[tree.parent[node]];
        out.nodes.push_back({parent, local[label], tree.self[node], tree.total[node], 0});
    }
    for (const std::uint32_t node : list) {
        std::uint32_t& pruned = out.nodes[place[node]].pruned_children;
        pruned = tree.cut[node];
        for (std::uint32_t child = tree.first_child[node]; child != 0; child = tree.next_sibling[child])
            if (place[child] == none) ++pruned;
    }
    return out;
}

// Name and module, as views into the stores.
struct FunctionKey {
    std::string_view name, module;
    bool operator==(const FunctionKey&) const = default;
};
struct FunctionKeyHash {
    std::size_t operator()(const FunctionKey& key) const {
        return hash_mix(hash_text(key.name), hash_text(key.module));
    }
};

}  // namespace

DiffTree diff_tree(const DiffSide& before, const DiffSide& after, const TreeOptions& options) {
    Merged merged = merge({before, after}, options);
    for (const std::vector<std::string>& path : options.hidden)
        if (const auto node = find_path(merged, path); node && *node != 0) remove(merged, *node);
    DiffTree out;
    if (const auto root = find_path(merged, options.path)) {
        out = to_diff_tree(merged, *root, options);
    } else {
        out.nodes.push_back({});
        out.functions.emplace_back();
        out.total = merged.total[0];
        if (options.merge == MergeBy::address) out.addresses.push_back(0);
    }
    out.newest_ns = merged.newest_ns;
    return out;
}

std::vector<FunctionDiff> diff_functions(const DiffSide& before, const DiffSide& after) {
    std::vector<FunctionDiff> rows;
    std::unordered_map<FunctionKey, std::size_t, FunctionKeyHash> places;
    const auto add = [&](const DiffSide& side, std::size_t which) {
        const Store::Tables& tables = side.store.tables();
        for (const FunctionRow& row : functions(side.store, side.filter)) {
            DiffFunction function = described(tables, row.function);
            const auto [at, added] = places.try_emplace({function.name, function.module}, rows.size());
            if (added) rows.push_back({function, {}, {}});
            FunctionDiff& entry = rows[at->second];
            // Use the kind and place from the later side, because that is the current code.
            entry.function = function;
            side_of(entry.self, which) = row.self;
            side_of(entry.total, which) = row.total;
        }
    };
    add(before, 0);
    add(after, 1);
    std::ranges::sort(rows, {},
                      [](const FunctionDiff& row) { return std::tie(row.function.name, row.function.module); });
    return rows;
}

bool has_times(const Store& store) {
    return store.row_count() == 0 || store.first_ns() != import_moment_ns ||
           store.known_until_ns() > import_moment_ns + wire::default_bucket_ns;
}

std::uint64_t covered_ns(const Store& store, const Filter& filter, std::uint64_t session_start_ns) {
    const std::uint64_t start_ns = std::max(filter.start_ns, session_start_ns);
    const std::uint64_t end_ns = std::min(filter.end_ns, store.known_until_ns());
    if (end_ns <= start_ns || !has_times(store)) return 0;
    std::uint64_t covered = end_ns - start_ns;
    for (const Coverage& stretch : store.coverage()) {
        const std::uint64_t from = std::max(start_ns, stretch.start_ns), to = std::min(end_ns, stretch.end_ns);
        if (stretch.dropped && from < to) covered -= to - from;
    }
    return covered;
}

}  // namespace flamewire::profile
