// Compares two profiles: call trees and functions of any two (store, filter), node by node. Pure. Weights are raw: the
// caller applies the factor that makes the two sides comparable (shares, or weight per second).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/query/query.h"

namespace flamewire::profile {

// One side. The store and the filter must outlive all results: names are views into the store.
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

// A CallTree with both sides in every node. A frame that one side lacks has weight 0 there. Frames of the two sides
// match by the texts that make siblings equal (function, module and kind; then line or address), so sessions of
// different builds and machines can be compared. Siblings: by descending share, on the side where it is larger.
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
    WeightPair total;                      // of the whole tree, even when zoomed: shares are relative to it
    std::uint64_t newest_ns = 0;           // of the later side; see CallTree
};

// `options` apply to both sides. A subtree is pruned if it is below the limit on both sides. Path entries without a
// kind mean the sibling that weighs most on both sides together.
DiffTree diff_tree(const DiffSide& before, const DiffSide& after, const TreeOptions& options = {});

struct FunctionDiff {
    DiffFunction function;
    WeightPair self, total;
};
// Every function of either side, by name and module, sorted by these names.
std::vector<FunctionDiff> diff_functions(const DiffSide& before, const DiffSide& after);

// False for an import that has only sums, all at one moment.
bool has_times(const Store& store);

// How much time a filter covers: from the later of `session_start_ns` and the filter's start to the filter's end or the
// end of the known time, minus what the store has dropped. 0 if the session has no times (an import).
std::uint64_t covered_ns(const Store& store, const Filter& filter, std::uint64_t session_start_ns);

}  // namespace flamewire::profile
