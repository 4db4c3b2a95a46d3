// The work that all queries share. The trie nodes that matching rows touch, and their ancestors, become a small tree
// with sums. The rows are read twice: first to mark nodes in a bit set, then to sum. This is cheaper than a sum for
// each node of the whole trie, because most queries touch few nodes. For src/profile only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/interruption.h"
#include "profile/store/model.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

// A filter prepared for the rows of a store. Samples can always be added up, but weights only if they have one unit. If
// the filter leaves several units in, `weighed` is false and weights are 0.
struct Selection {
    RowFilter rows;
    bool weighed = true;
};
Selection select(const Store::Tables& tables, const Filter& filter);

// The key for ordering and pruning: the weight, or the samples if the weight of `total` is 0.
struct Measure {
    explicit Measure(const Weight& total) : by_samples(total.weight == 0) {}
    std::uint64_t operator()(const Weight& weight) const { return by_samples ? weight.samples : weight.weight; }
    bool by_samples;
};

// Sums by pairs of ids, in order of first appearance.
class PairSums {
public:
    struct Entry {
        std::uint32_t first = 0, second = 0;
        Weight sum;
    };
    void add(std::uint32_t first, std::uint32_t second, const Weight& weight);
    [[nodiscard]] std::span<const Entry> entries() const { return std::span(entries_).subspan(1); }

private:
    std::vector<Entry> entries_{1};  // [0] is unused: the index reserves id 0
    IdIndex index_;
};

// The part of a trie that the rows of a selection touch, with its sums. [0] is the root, and parents come before
// children.
struct TouchedTree {
    std::vector<std::uint32_t> node;                               // in the trie
    std::vector<std::uint32_t> parent, first_child, next_sibling;  // in this tree; 0: none
    std::vector<Weight> self, total;
    std::uint64_t newest_ns = 0;  // end of the newest bucket

    [[nodiscard]] std::size_t size() const { return node.size(); }
};
// Calls enter(node) on the way down from the root and leave(node) on the way back, for every node except the root. Not
// recursive, because stacks may be deep.
template <class Enter, class Leave>
void walk_depth_first(const TouchedTree& tree, Enter enter, Leave leave) {
    std::uint32_t node = tree.first_child[0];
    constexpr std::uint32_t between_checks = 4096;
    for (std::uint32_t entered = 0; node != 0;) {
        if (++entered % between_checks == 0) Interruption::check();
        enter(node);
        if (tree.first_child[node] != 0) {
            node = tree.first_child[node];
            continue;
        }
        while (node != 0) {
            leave(node);
            if (tree.next_sibling[node] != 0) {
                node = tree.next_sibling[node];
                break;
            }
            node = tree.parent[node];
        }
    }
}
TouchedTree touched_stacks(const Store::Tables& tables, const Selection& selection);  // of the address trie
TouchedTree touched_nodes(const Store::Tables& tables, const Selection& selection);   // of the function trie

}  // namespace flamewire::profile
