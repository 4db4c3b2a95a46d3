// Trees that a query shapes out of the touched stacks: inverted, merged by line or address, direct recursion collapsed.
// What a node stands for is its label. For src/profile only.
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

// What the nodes of a tree are told apart by: FunctionIds themselves, or the places in the code that a query has seen.
class Labels {
public:
    // `groups`: names of root frames, which have labels of their own.
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

    // Of one of the frames of a location. Equal for frames that the query merges.
    std::uint32_t of(LocationId location, const LocationFrame& frame);
    [[nodiscard]] std::size_t size() const {
        return merge_ == MergeBy::function ? first_group_ + groups_.size() : places_.size();
    }
    // The root's of a group.
    [[nodiscard]] FunctionId function(std::uint32_t label) const {
        return is_group(label) ? 0 : merge_ == MergeBy::function ? label : places_[label].function;
    }
    [[nodiscard]] std::string_view name(std::uint32_t label) const {
        return is_group(label) ? std::string_view(groups_[label - first_group_])
                               : tables_->strings[tables_->functions[function(label)].name];
    }
    // How it is shown: with the file and line of the place, when it is told apart by that.
    [[nodiscard]] Function shown(std::uint32_t label) const;
    // 0 when it is no address.
    [[nodiscard]] std::uint64_t address(std::uint32_t label) const {
        return merge_ == MergeBy::address ? places_[label].address : 0;
    }
    // Name and module are the same; the inlined and the outlined form are one function.
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
    std::uint32_t first_group_;  // their labels stand together
    std::vector<Place> places_;
    IdIndex index_;
};

// `tree.node` are labels, the root's is 0.
struct Shape {
    TouchedTree tree;
    Labels labels;
    std::vector<std::uint8_t> cut;  // by node, or empty: children are missing, their weight is in `total` alone
};

Shape shape(const Store::Tables& tables, const Filter& filter, const TreeOptions& options);
// Takes the hidden paths out.
void hide(const Store::Tables& tables, Shape& shape, const TreeOptions& options);

// A tree that grows by stacks. Deep stacks times many leaves can be a lot of nodes: at `max_nodes` no new ones are made,
// what would be below stays weight of the last node and is marked as cut.
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

    // To the child for a frame; nowhere when a function calls itself and such recursion is collapsed.
    [[nodiscard]] Cursor step(Cursor at, LocationId location, const LocationFrame& frame);
    // What the root stands for; without it, for all.
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
// What a qualified entry says besides the name; `place` is the address, or the line when there is none.
bool is_exactly(const PathEntry& entry, FrameKind kind, std::string_view module, std::uint64_t place);

// The node that a path leads to (see TreeOptions::path), nothing when the tree has none.
std::optional<std::uint32_t> find_path(const Store::Tables& tables, const Shape& shape,
                                       std::span<const std::string> path, const Measure& measure);

// A shape as the answer to the options, empty when their path leads nowhere.
CallTree call_tree_of(const Store& store, const Shape& shape, const TreeOptions& options);
// A shape as an answer: re-rooted at a node, pruned, ordered.
CallTree to_call_tree(const Shape& shape, std::uint32_t root, const TreeOptions& options);

}  // namespace flamewire::profile
