// Trees that a query builds from the touched stacks: inverted, merged by line or address, or with direct recursion
// collapsed. A node is identified by its label. For src/profile only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/query/accumulate.h"
#include "profile/query/query.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

// What distinguishes the nodes of a tree: FunctionIds, or the places in the code that a query has seen.
class Labels {
public:
    // `groups`: names of root frames. They have their own labels.
    Labels(const Store::Tables& tables, MergeBy merge, std::vector<std::string> groups = {})
        : tables_(&tables),
          merge_(merge),
          groups_(std::move(groups)),
          first_group_(merge == MergeBy::function ? narrow32(tables.functions.size()) : 1),
          places_(1 + groups_.size()) {}

    [[nodiscard]] std::uint32_t of_group(std::uint32_t group) const { return first_group_ + group; }
    [[nodiscard]] bool is_group(std::uint32_t label) const {
        return label >= first_group_ && label - first_group_ < groups_.size();
    }
    [[nodiscard]] const std::vector<std::string>& groups() const { return groups_; }

    // The label of one frame of a location. Frames that the query merges have equal labels.
    std::uint32_t of(LocationId location, const LocationFrame& frame);
    [[nodiscard]] std::size_t size() const {
        return merge_ == MergeBy::function ? first_group_ + groups_.size() : places_.size();
    }
    // For a group, the root's.
    [[nodiscard]] FunctionId function(std::uint32_t label) const {
        return is_group(label) ? 0 : merge_ == MergeBy::function ? label : places_[label].function;
    }
    [[nodiscard]] std::string_view name(std::uint32_t label) const {
        return is_group(label) ? std::string_view(groups_[label - first_group_])
                               : tables_->strings[tables_->functions[function(label)].name];
    }
    // How to display it: with the file and line of the place, if the label includes it.
    [[nodiscard]] Function shown(std::uint32_t label) const;
    // 0 if the label has no address.
    [[nodiscard]] std::uint64_t address(std::uint32_t label) const {
        return merge_ == MergeBy::address ? places_[label].address : 0;
    }
    // True if name and module are equal. The inlined and the outlined form count as one function.
    [[nodiscard]] bool same_function(std::uint32_t a, std::uint32_t b) const {
        return !is_group(a) && tables_->functions.group(function(a)) == tables_->functions.group(function(b));
    }

private:
    struct Place {
        FunctionId function = 0;
        StringId file = 0;
        std::uint32_t line = 0;
        ModuleId module = 0;
        std::uint64_t address = 0;
        bool operator==(const Place&) const = default;
    };

    const Store::Tables* tables_;
    MergeBy merge_;
    std::vector<std::string> groups_;
    std::uint32_t first_group_;  // group labels are contiguous
    std::vector<Place> places_;
    IdIndex index_;
};

// `tree.node` holds labels; the root's is 0.
struct Shape {
    TouchedTree tree;
    Labels labels;
    std::vector<std::uint8_t> cut;  // by node, or empty: children are missing, and only `total` includes their weight
};

Shape shape(const Store::Tables& tables, const Filter& filter, const TreeOptions& options);
// Removes the hidden paths.
void hide(const Store::Tables& tables, Shape& shape, const TreeOptions& options);

// Builds a tree from stacks. Deep stacks times many leaves can give a very large number of nodes. At `max_nodes` no new
// node is created: the weight goes to the last node, which is marked as cut.
class ShapeBuilder {
public:
    static constexpr std::size_t max_nodes = 2'000'000;
    struct Cursor {
        std::uint32_t node = 0;
        bool cut = false;
    };

    ShapeBuilder(const Store::Tables& tables, const TreeOptions& options, std::size_t most = max_nodes,
                 std::vector<std::string> groups = {})
        : labels_(tables, options.merge, std::move(groups)), collapse_(options.collapse_recursion), most_(most) {}

    [[nodiscard]] Cursor step_into(std::uint32_t group) { return child({}, labels_.of_group(group)); }

    // Moves to the child for a frame. Stays if the function calls itself and such recursion is collapsed.
    [[nodiscard]] Cursor step(Cursor at, LocationId location, const LocationFrame& frame);
    // Sets what the root stands for; by default it stands for everything.
    void set_root(LocationId location, const LocationFrame& frame) { root_label_ = labels_.of(location, frame); }
    void add(Cursor at, const Weight& weight) { (at.cut ? beyond_ : self_)[at.node] += weight; }
    [[nodiscard]] Shape finish(std::uint64_t newest_ns) &&;

private:
    Cursor child(Cursor at, std::uint32_t label);

    Labels labels_;
    bool collapse_;
    std::size_t most_;
    std::uint32_t root_label_ = 0;
    Trie trie_;
    std::vector<Weight> self_{1}, beyond_{1};
};

// An entry of a path (see TreeOptions::path).
struct PathEntry {
    std::string_view name, kind, module, place;
    bool qualified = false;  // more than the name was given
};
PathEntry parse_path_entry(std::string_view text);
// Whether the kind, module and place match those of a qualified entry. `place` is the address, or the line if there is
// no address.
bool is_exactly(const PathEntry& entry, FrameKind kind, std::string_view module, std::uint64_t place);

// The node that a path leads to (see TreeOptions::path); nullopt if the tree has none.
std::optional<std::uint32_t> find_path(const Store::Tables& tables, const Shape& shape,
                                       std::span<const std::string> path, const Measure& measure);

// Converts a shape to the answer for the options; empty if their path leads nowhere.
CallTree call_tree_of(const Store& store, const Shape& shape, const TreeOptions& options);
// Converts a shape to an answer: re-rooted at a node, pruned and ordered.
CallTree to_call_tree(const Shape& shape, std::uint32_t root, const TreeOptions& options);

}  // namespace flamewire::profile
