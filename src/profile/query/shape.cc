#include "profile/query/shape.h"

#include <algorithm>

#include "profile/query/grouping.h"

namespace flamewire::profile {

std::uint32_t Labels::of(LocationId location, const LocationFrame& frame) {
    if (merge_ == MergeBy::function) return frame.function;
    const Location& entry = tables_->locations[location];
    Place place{frame.function, frame.file, frame.line};
    if (merge_ == MergeBy::address && entry.address != 0) {
        place.module = entry.module;
        place.address = entry.address;
    }
    const auto hash = [](const Place& of) {
        const std::uint64_t code = (static_cast<std::uint64_t>(of.function) << 32) | of.line;
        return hash_mix(hash_mix(code, of.file ^ hash_seed()), hash_mix(of.address, of.module));
    };
    const auto equal = [&](std::uint32_t id) { return places_[id] == place; };
    if (const std::uint32_t known = index_.find(hash(place), equal)) return known;
    const std::uint32_t id = narrow32(places_.size());
    places_.push_back(place);
    index_.insert(hash(place), id, [&](std::uint32_t other) { return hash(places_[other]); });
    return id;
}

Function Labels::shown(std::uint32_t label) const {
    if (is_group(label)) return {.name = label - first_group_, .kind = group_frame};
    Function function = tables_->functions[this->function(label)];
    if (merge_ == MergeBy::function || label == 0) return function;
    if (places_[label].file != 0) {
        function.file = places_[label].file;
        function.line = places_[label].line;
    }
    return function;
}

ShapeBuilder::Cursor ShapeBuilder::step(Cursor at, LocationId location, const LocationFrame& frame) {
    if (at.cut) return at;
    const std::uint32_t label = labels_.of(location, frame);
    const std::uint32_t above = at.node == 0 ? root_label_ : trie_.label(at.node);
    if (collapse_ && above != 0 && labels_.same_function(above, label)) return at;
    return child(at, label);
}

ShapeBuilder::Cursor ShapeBuilder::child(Cursor at, std::uint32_t label) {
    if (trie_.size() >= most_) {
        const std::uint32_t known = trie_.find(at.node, label);
        return known != 0 ? Cursor{known} : Cursor{at.node, true};
    }
    const Cursor next{trie_.child(at.node, label)};
    if (next.node == self_.size()) {
        self_.emplace_back();
        beyond_.emplace_back();
    }
    return next;
}

Shape ShapeBuilder::finish(std::uint64_t newest_ns) && {
    TouchedTree tree;
    const std::size_t count = trie_.size();
    tree.node.assign(trie_.labels().begin(), trie_.labels().end());
    tree.node[0] = root_label_;
    tree.parent.assign(trie_.parents().begin(), trie_.parents().end());
    tree.self = std::move(self_);
    tree.total = tree.self;
    std::vector<std::uint8_t> cut;
    for (std::size_t i = 0; i < count; ++i) {
        if (beyond_[i] == Weight{}) continue;
        tree.total[i] += beyond_[i];
        cut.resize(count);
        cut[i] = 1;
    }
    tree.first_child.resize(count);
    tree.next_sibling.resize(count);
    tree.newest_ns = newest_ns;
    for (std::size_t i = count - 1; i > 0; --i) {
        const std::uint32_t parent = tree.parent[i];
        tree.total[parent] += tree.total[i];
        tree.next_sibling[i] = tree.first_child[parent];
        tree.first_child[parent] = narrow32(i);
    }
    return {std::move(tree), std::move(labels_), std::move(cut)};
}

namespace {

// The store maintains this tree.
Shape function_shape(const Store::Tables& tables, const Selection& selection) {
    TouchedTree tree = touched_nodes(tables, selection);
    for (std::uint32_t& node : tree.node) node = tables.nodes.label(node);
    return {std::move(tree), Labels(tables, MergeBy::function), {}};
}

Shape top_down(const Store::Tables& tables, const TouchedTree& stacks, const TreeOptions& options) {
    ShapeBuilder builder(tables, options);
    std::vector<ShapeBuilder::Cursor> cursor_of(stacks.size());  // parents come before children
    builder.add({}, stacks.self[0]);
    for (std::uint32_t i = 1; i < stacks.size(); ++i) {
        const LocationId location = tables.stacks.label(stacks.node[i]);
        const std::span<const LocationFrame> frames = tables.frames_of(location);
        ShapeBuilder::Cursor at = cursor_of[stacks.parent[i]];
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) at = builder.step(at, location, *frame);
        cursor_of[i] = at;
        builder.add(at, stacks.self[i]);
    }
    return std::move(builder).finish(stacks.newest_ns);
}

Shape bottom_up(const Store::Tables& tables, const TouchedTree& stacks, const TreeOptions& options) {
    ShapeBuilder builder(tables, options);
    builder.add({}, stacks.self[0]);
    for (std::uint32_t i = 1; i < stacks.size(); ++i) {
        if (stacks.self[i] == Weight{}) continue;
        ShapeBuilder::Cursor at;
        for (std::uint32_t outer = i; outer != 0 && !at.cut; outer = stacks.parent[outer]) {
            const LocationId location = tables.stacks.label(stacks.node[outer]);
            for (const LocationFrame& frame : tables.frames_of(location)) at = builder.step(at, location, frame);
        }
        builder.add(at, stacks.self[i]);
    }
    return std::move(builder).finish(stacks.newest_ns);
}

// Removes a node and everything below it from the tree, and also its callers if nothing is left of them.
void remove(TouchedTree& tree, std::uint32_t node) {
    const Weight gone = tree.total[node];
    tree.total[node] = {};
    for (std::uint32_t at = node; at != 0; at = tree.parent[at]) {
        const std::uint32_t parent = tree.parent[at];
        tree.total[parent].samples -= gone.samples;
        tree.total[parent].weight -= gone.weight;
        if (tree.total[at] != Weight{}) continue;
        std::uint32_t* link = &tree.first_child[parent];
        while (*link != at) link = &tree.next_sibling[*link];
        *link = tree.next_sibling[at];
    }
}

}  // namespace

void hide(const Store::Tables& tables, Shape& shape, const TreeOptions& options) {
    for (const std::vector<std::string>& path : options.hidden) {
        const Measure measure(shape.tree.total[0]);
        const auto node = find_path(tables, shape, path, measure);
        if (node && *node != 0) remove(shape.tree, *node);
    }
}

Shape shape(const Store::Tables& tables, const Filter& filter, const TreeOptions& options) {
    const Selection selection = select(tables, filter);
    const bool plain = !options.inverted && !options.collapse_recursion && options.merge == MergeBy::function;
    Shape made = plain              ? function_shape(tables, selection)
                 : options.inverted ? bottom_up(tables, touched_stacks(tables, selection), options)
                                    : top_down(tables, touched_stacks(tables, selection), options);
    hide(tables, made, options);
    return made;
}

}  // namespace flamewire::profile
