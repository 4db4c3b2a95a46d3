#include "profile/query/accumulate.h"

#include <algorithm>
#include <bit>

#include "base/cgroup_path.h"

namespace flamewire::profile {
namespace {

bool runs_in(const Filter& filter, const Process& process) {
    const auto any = [](const std::vector<std::string>& wanted, auto names) {
        return wanted.empty() || std::ranges::any_of(wanted, names);
    };
    return any(filter.containers, [&](const std::string& one) { return names_id(one, process.container_id); }) &&
           any(filter.cgroups, [&](const std::string& one) { return names_cgroup(one, process.cgroup); }) &&
           any(filter.pods, [&, pod = filter.pods.empty() ? std::string() : parse_cgroup_path(process.cgroup).pod_uid](
                                const std::string& one) { return names_id(one, pod); });
}

}  // namespace

Selection select(const Store::Tables& tables, const Filter& filter) {
    Selection selection;
    // A filter that starts at or before the first sample includes a coarse bucket that begins earlier.
    selection.rows.start_ns = filter.start_ns <= tables.first_row_ns ? 0 : filter.start_ns;
    selection.rows.end_ns = filter.end_ns;
    // An event that does not exist matches no row.
    selection.rows.event = filter.event.value_or(0);
    if (filter.event && (*filter.event == 0 || *filter.event >= tables.events.size())) selection.rows.end_ns = 0;
    if (!filter.event)
        for (std::size_t event = 2; event < tables.events.size(); ++event)
            if (tables.events[event].unit != tables.events[1].unit) selection.weighed = false;
    if (!filter.pids.empty() || !filter.tids.empty() || filter.by_place()) {
        const auto wants = [](const std::vector<std::uint32_t>& list, std::uint32_t id) {
            return list.empty() || std::ranges::find(list, id) != list.end();
        };
        std::vector<std::uint8_t> there;  // by process
        if (filter.by_place())
            for (const Process& process : tables.processes) there.push_back(runs_in(filter, process) ? 1 : 0);
        for (const Thread& thread : tables.threads)
            selection.rows.threads.push_back(wants(filter.pids, thread.pid) && wants(filter.tids, thread.tid) &&
                                                     (there.empty() || there[thread.process] != 0)
                                                 ? 1
                                                 : 0);
    }
    return selection;
}

namespace {

// A set of trie nodes that counts the smaller nodes: the rank of a node is its index in the small tree.
class NodeSet {
public:
    explicit NodeSet(std::size_t nodes) : words_(nodes / 64 + 1), before_(words_.size()) {}

    void insert(std::uint32_t node) { words_[node / 64] |= std::uint64_t{1} << (node % 64); }

    // Adds every ancestor. Parents have smaller ids, so one descending pass is enough. A word is read again after each
    // of its bits, because a parent may be in the same word.
    void close(std::span<const std::uint32_t> parents) {
        for (std::size_t word = words_.size(); word-- > 0;) {
            std::uint64_t below = ~std::uint64_t{0};
            while (const std::uint64_t rest = words_[word] & below) {
                const auto bit = static_cast<unsigned>(std::bit_width(rest) - 1);
                below = (std::uint64_t{1} << bit) - 1;
                insert(parents[word * 64 + bit]);
            }
        }
    }

    // Call it before rank(). Returns the number of nodes.
    std::size_t count() {
        std::uint32_t sum = 0;
        for (std::size_t word = 0; word < words_.size(); ++word) {
            before_[word] = sum;
            sum += static_cast<std::uint32_t>(std::popcount(words_[word]));
        }
        return sum;
    }

    [[nodiscard]] std::uint32_t rank(std::uint32_t node) const {
        const std::uint64_t smaller = words_[node / 64] & ((std::uint64_t{1} << (node % 64)) - 1);
        return before_[node / 64] + static_cast<std::uint32_t>(std::popcount(smaller));
    }

    template <class Visit>
    void for_each(Visit visit) const {
        for (std::size_t word = 0; word < words_.size(); ++word)
            for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1)
                visit(narrow32(word * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
    }

private:
    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> before_;  // nodes in smaller words
};

// Marks node_of(stack) of every matching row. Returns the end of the newest bucket.
template <class NodeOf>
std::uint64_t mark_rows(const Store::Tables& tables, const Selection& selection, NodeSet& set, NodeOf node_of) {
    std::uint64_t newest_ns = 0;
    const RowChunk* current = nullptr;
    std::uint16_t newest = 0;
    const auto finish_chunk = [&] {
        if (current != nullptr)
            newest_ns = std::max(newest_ns, (current->base_bucket + newest + 1) * current->bucket_ns);
    };
    tables.rows.select(selection.rows, [&](const RowChunk& chunk, std::size_t row) {
        if (&chunk != current) {
            finish_chunk();
            current = &chunk;
            newest = 0;
        }
        newest = std::max(newest, chunk.offset[row]);
        set.insert(node_of(chunk.stack[row]));
    });
    finish_chunk();
    return std::min(newest_ns, tables.last_row_end_ns);
}

template <class NodeOf>
TouchedTree touched_tree(const Store::Tables& tables, const Selection& selection,
                         std::span<const std::uint32_t> parents, NodeOf node_of) {
    NodeSet set(parents.size());
    set.insert(0);
    TouchedTree tree;
    tree.newest_ns = mark_rows(tables, selection, set, node_of);
    set.close(parents);
    const std::size_t count = set.count();

    tree.node.reserve(count);
    tree.parent.reserve(count);
    set.for_each([&](std::uint32_t node) {
        tree.node.push_back(node);
        tree.parent.push_back(set.rank(parents[node]));
    });
    tree.self.resize(count);
    const std::uint64_t weight_factor = selection.weighed ? 1 : 0;
    tables.rows.select(selection.rows, [&](const RowChunk& chunk, std::size_t row) {
        const Weight weight = row_weight(chunk, row);
        tree.self[set.rank(node_of(chunk.stack[row]))] += {weight.samples, weight.weight * weight_factor};
    });
    tree.total = tree.self;
    tree.first_child.resize(count);
    tree.next_sibling.resize(count);
    for (std::size_t i = count - 1; i > 0; --i) {
        const std::uint32_t parent = tree.parent[i];
        tree.total[parent] += tree.total[i];
        tree.next_sibling[i] = tree.first_child[parent];
        tree.first_child[parent] = narrow32(i);
    }
    return tree;
}

}  // namespace

TouchedTree touched_stacks(const Store::Tables& tables, const Selection& selection) {
    return touched_tree(tables, selection, tables.stacks.parents(), [](StackId stack) { return stack; });
}

TouchedTree touched_nodes(const Store::Tables& tables, const Selection& selection) {
    return touched_tree(tables, selection, tables.nodes.parents(),
                        [nodes = tables.node_of_stack.data()](StackId stack) { return nodes[stack]; });
}

void PairSums::add(std::uint32_t first, std::uint32_t second, const Weight& weight) {
    const auto hash = [](std::uint32_t a, std::uint32_t b) {
        return hash_mix((static_cast<std::uint64_t>(a) << 32) | b, 0);
    };
    const auto equal = [&](std::uint32_t id) { return entries_[id].first == first && entries_[id].second == second; };
    std::uint32_t id = index_.find(hash(first, second), equal);
    if (id == 0) {
        id = narrow32(entries_.size());
        entries_.push_back({first, second, {}});
        index_.insert(hash(first, second), id,
                      [&](std::uint32_t other) { return hash(entries_[other].first, entries_[other].second); });
    }
    entries_[id].sum += weight;
}

}  // namespace flamewire::profile
