// Questions to a store. Pure: a store and a filter in, a value out. One pass over the rows in range, then over the
// touched nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// A call tree in columns: node 0 is the root, parents before children, siblings by descending total weight.
// Function-level nodes (inlined frames included); merged by (function, inlined or not), or finer when asked.
struct CallTree {
    struct Node {
        std::uint32_t parent = 0;
        FunctionId function = 0;  // into functions
        Weight self, total;
        std::uint32_t pruned_children =
            0;  // children left out because they were below the limit; their weight is in total
    };
    std::vector<Node> nodes;
    std::vector<Function> functions;       // those of the nodes, [0] is the root's; of each place when merged by that
    std::vector<std::uint64_t> addresses;  // by function, ELF virtual; only when merged by address; 0: has none
    Weight total;                          // equals nodes[0].total
    std::uint64_t newest_ns = 0;           // end of the newest bucket among the counted rows; 0 without any
};

// What makes two frames one node.
enum class MergeBy : std::uint8_t { function, line, address };

struct TreeOptions {
    double min_share = 0.0;  // subtrees below this share of the (zoomed) root's weight are pruned
    // '= {}' as in Filter. NOLINTBEGIN(readability-redundant-member-init)
    // A path from the root: only the subtree below it, re-rooted (zoom into pruned parts). Empty: all. An entry is a
    // name, which means the heaviest of the siblings that have it, or "name\x1ekind\x1emodule", and also "\x1eplace"
    // in a tree merged by line (the line) or address.
    std::vector<std::string> path = {};
    std::vector<std::vector<std::string>> hidden = {};  // paths: taken out with all their weight, one after the other
    // NOLINTEND(readability-redundant-member-init)
    std::size_t max_nodes = 0;  // 0: no limit; else the smallest subtrees go first
    // Innermost frames are the root's children and callers stand below those that they call; `self` is then of stacks
    // that begin at the node.
    bool inverted = false;
    MergeBy merge = MergeBy::function;
    bool collapse_recursion = false;  // a function that calls itself directly is one frame
};

CallTree call_tree(const Store& store, const Filter& filter, const TreeOptions& options = {});

// Who calls a function and what it calls. Each stack counts once, by the outermost frame of the function on it: its
// callers are above that, everything else is below.
struct Sandwich {
    CallTree callers, callees;  // node 0 is the function, `callers` as in an inverted tree
    Weight self, total, all;    // of the function, and of all stacks
    // The frames right above and right below any frame of the function, once per stack; by weight, descending. A
    // function that calls itself is in both.
    struct Neighbour {
        Function function;
        Weight weight;
    };
    std::vector<Neighbour> direct_callers, direct_callees;
};
// By name, and module unless empty. The path and hidden paths of `options` are not looked at.
Sandwich sandwich(const Store& store, const Filter& filter, std::string_view name, std::string_view module,
                  const TreeOptions& options = {});

// self: the function was innermost. total: it was anywhere on the stack, counted once per sample (recursion).
struct FunctionRow {
    Function function;
    Weight self, total;
};
std::vector<FunctionRow> functions(const Store& store, const Filter& filter);  // by self weight, descending

struct ThreadRow {
    ThreadId thread = 0;
    Weight weight;
    struct Top {
        Function function;
        Weight self;
    };
    std::vector<Top> top;  // up to five functions by self weight
};
std::vector<ThreadRow> thread_summary(const Store& store, const Filter& filter);  // by weight, descending

// Lines of one source file with their weights. self: innermost frame at this line; total: any frame of the stack at it,
// once per sample.
struct LineRow {
    std::uint32_t line = 0;
    Weight self, total;
};
std::vector<LineRow> line_heat(const Store& store, const Filter& filter, std::string_view file);

// Source files that frames name, with self and total weight, by self descending.
struct FileRow {
    StringId file = 0;
    Weight self, total;
};
std::vector<FileRow> source_files(const Store& store, const Filter& filter);

// Modules with frames in the stacks: self where the innermost frame is of it, total once a sample. By self, descending;
// frames without a module (names of the wire) are in none.
struct ModuleRow {
    ModuleId module = 0;
    Weight self, total;
};
std::vector<ModuleRow> modules(const Store& store, const Filter& filter);

// Code that processes made themselves and of which no function has a name: says for each module whether it is such.
std::vector<bool> nameless_jit_modules(const Store& store);

// Weight of samples whose innermost frame is unknown, for the status bar.
Weight unresolved(const Store& store, const Filter& filter);

// Whether this is a placeholder for what was not recorded: [truncated], [incomplete], [caller missing] or [not sampled: …].
bool is_placeholder(const Function& function, std::string_view name);
// Samples with incomplete call chains, by placeholder. A chain with several counts as incomplete, else as truncated.
struct MissingCallers {
    Weight incomplete, truncated, skipped;  // skipped: [caller missing], inside a stack
    Weight unsampled;                       // no chain at all: threads exited before their next sample
    StringId module = 0;                    // where most `incomplete` and `skipped` chains stop; 0: none
};
MissingCallers missing_callers(const Store& store, const Filter& filter);

// Samples per equal slice of [start, end), for sparklines and the time strip.
std::vector<Weight> histogram(const Store& store, const Filter& filter, std::size_t slices);
// The same, one for each thread or CPU that has samples there, in the order of their ids.
enum class Lanes : std::uint8_t { threads, cpus };
struct LaneHistogram {
    std::uint32_t id = 0;  // ThreadId or number of the CPU
    Weight total;
    std::vector<Weight> slices;
};
std::vector<LaneHistogram> histogram_by(const Store& store, const Filter& filter, std::size_t slices, Lanes lanes);

}  // namespace flamewire::profile
