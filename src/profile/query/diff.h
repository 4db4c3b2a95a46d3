// Two profiles beside each other: call trees and functions of any two (store, filter), node by node. Pure, and in raw
// weights: what makes the two comparable (shares, or weight per second) is one factor, for whoever shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/query/query.h"

namespace flamewire::profile {

// One side. Both live as long as what is made of them: names are views into the store.
struct DiffSide {
    const Store& store;
    const Filter& filter;
};

struct WeightPair {
    Weight before, after;
    bool operator==(const WeightPair&) const = default;
};

struct DiffFunction {
    std::string_view name, module;
    FrameKind kind = FrameKind::unknown;
    std::string_view file;
    std::uint32_t line = 0;
};

// As a CallTree, with both sides in every node: a frame that one side lacks weighs 0 there. Frames of the two sides are
// one by the texts of what makes siblings one (function, module and kind; then line or address), so that sessions of
// different builds and machines can be compared. Siblings by descending share of the side where it is larger.
struct DiffTree {
    struct Node {
        std::uint32_t parent = 0;
        std::uint32_t function = 0;  // into functions
        WeightPair self, total;
        std::uint32_t pruned_children = 0;
    };
    std::vector<Node> nodes;
    std::vector<DiffFunction> functions;   // [0] is the root's
    std::vector<std::uint64_t> addresses;  // by function; only when merged by address
    WeightPair total;                      // of the whole tree, wherever it is zoomed to: what shares are of
    std::uint64_t newest_ns = 0;           // of the later side, see CallTree
};

// `options` hold for both. A subtree is pruned when it is below the limit on both sides. Entries of paths without a
// kind mean the sibling that weighs most on both sides together.
DiffTree diff_tree(const DiffSide& before, const DiffSide& after, const TreeOptions& options = {});

struct FunctionDiff {
    DiffFunction function;
    WeightPair self, total;
};
// Every function of either side, by name and module, in the order of those names.
std::vector<FunctionDiff> diff_functions(const DiffSide& before, const DiffSide& after);

// False of an import that has sums alone, at one moment.
bool has_times(const Store& store);

// How much time a filter covers: from `session_start_ns` or its own start, until its end or what is known, without what
// the store has dropped. 0 when the session has no times (an import).
std::uint64_t covered_ns(const Store& store, const Filter& filter, std::uint64_t session_start_ns);

}  // namespace flamewire::profile
