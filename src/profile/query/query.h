// Queries on a store. Pure: they take a store and a filter and return a value. A query passes once over the rows in
// range, then over the touched nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// A call tree in columns: node 0 is the root, parents come before children, and siblings are sorted by descending total
// weight. Nodes are functions, inlined frames included. Frames merge by (function, inlined or not), or more finely on
// request.
struct CallTree {
    struct Node {
        std::uint32_t parent = 0;
        FunctionId function = 0;  // into functions
        Weight self, total;
        std::uint32_t pruned_children = 0;  // pruned children, which were below the limit; total includes them
    };
    std::vector<Node> nodes;
    std::vector<Function> functions;       // of the nodes; [0] is the root's; one per place if merged by place
    std::vector<std::uint64_t> addresses;  // by function, ELF virtual; only if merged by address; 0: none
    Weight total;                          // equals nodes[0].total
    std::uint64_t newest_ns = 0;           // end of the newest bucket among the counted rows; 0 without rows
};

// What frames must share to become one node.
enum class MergeBy : std::uint8_t { function, line, address };

struct TreeOptions {
    double min_share = 0.0;  // subtrees below this share of the (zoomed) root's weight are pruned
    // '= {}' as in Filter. NOLINTBEGIN(readability-redundant-member-init)
    // A path from the root: returns only the subtree below it, re-rooted (to zoom into pruned parts). Empty:
    // everything. An entry is a name, which means the heaviest sibling of that name, or "name\x1ekind\x1emodule". In a
    // tree merged by line or address, "\x1eplace" may follow: the line or the address.
    std::vector<std::string> path = {};
    std::vector<std::vector<std::string>> hidden = {};  // paths to remove with all their weight, one after the other
    // NOLINTEND(readability-redundant-member-init)
    std::size_t max_nodes = 0;  // 0: no limit; else the smallest subtrees are pruned first
    // If set, innermost frames are the root's children, and callers are below their callees. `self` is then the weight
    // of stacks that begin at the node.
    bool inverted = false;
    MergeBy merge = MergeBy::function;
    bool collapse_recursion = false;  // a function that calls itself directly becomes one frame
};

CallTree call_tree(const Store& store, const Filter& filter, const TreeOptions& options = {});

// The callers and callees of a function. Each stack counts once, by the outermost frame of the function on it: the
// frames above are its callers, everything below is its callees.
struct Sandwich {
    CallTree callers, callees;  // node 0 is the function; `callers` is like an inverted tree
    Weight self, total, all;    // self and total: of the function; all: of all stacks
    // The frames directly above and directly below any frame of the function, once per stack, by descending weight. A
    // function that calls itself is in both lists.
    struct Neighbour {
        Function function;
        Weight weight;
    };
    std::vector<Neighbour> direct_callers, direct_callees;
};
// Finds the function by name, and by module unless that is empty. Ignores the path and the hidden paths of `options`.
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

// Lines of one source file with their weights. self: the innermost frame is at this line. total: any frame of the stack
// is at this line, counted once per sample.
struct LineRow {
    std::uint32_t line = 0;
    Weight self, total;
};
std::vector<LineRow> line_heat(const Store& store, const Filter& filter, std::string_view file);

// Source files of frames, with self and total weight, by descending self weight.
struct FileRow {
    StringId file = 0;
    Weight self, total;
};
std::vector<FileRow> source_files(const Store& store, const Filter& filter);

// Modules of the frames in the stacks. self: the innermost frame is in the module. total: counted once per sample. By
// descending self weight. Frames without a module (names from the wire) are not included.
struct ModuleRow {
    ModuleId module = 0;
    Weight self, total;
};
std::vector<ModuleRow> modules(const Store& store, const Filter& filter);

// For each module, whether it is JIT code in which no function has a name.
std::vector<bool> nameless_jit_modules(const Store& store);
// Whether the notice reports that this module, which a program generated at run time, has no symbols.
bool lacks_symbols(const wire::Notice& notice, const symbol::ModuleIdentity& module);

// Whether the function's name is known, instead of an address or a marker such as [unknown process].
bool is_named(const Function& function, std::string_view name);
// Weight of samples whose innermost frame is not named.
Weight unresolved(const Store& store, const Filter& filter);

// Whether this is a placeholder for missing frames: [truncated], [incomplete], [caller missing] or [not sampled: …].
bool is_placeholder(const Function& function, std::string_view name);
// Samples with incomplete call chains, by placeholder. A chain with several placeholders counts once: as incomplete if
// it has that, else as truncated.
struct MissingCallers {
    Weight incomplete, truncated, skipped;  // skipped: [caller missing], inside a stack
    Weight unsampled;                       // no call chain: the threads exited before their next sample
    StringId module = 0;                    // the module in which most `incomplete` and `skipped` chains stop; 0: none
};
MissingCallers missing_callers(const Store& store, const Filter& filter);

// Weight of all samples.
Weight total_of(const Store& store, const Filter& filter);

// Samples per slice of [start, end), in slices of equal length, for sparklines and the time strip.
std::vector<Weight> histogram(const Store& store, const Filter& filter, std::size_t slices);
// The same, for each thread or CPU that has samples in the range, by ascending id.
enum class Lanes : std::uint8_t { threads, cpus };
struct LaneHistogram {
    std::uint32_t id = 0;  // ThreadId or CPU number
    Weight total;
    std::vector<Weight> slices;
};
std::vector<LaneHistogram> histogram_by(const Store& store, const Filter& filter, std::size_t slices, Lanes lanes);

}  // namespace flamewire::profile
