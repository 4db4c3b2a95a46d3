#include "server/http/flamegraph.h"

#include <unordered_map>

#include "profile/formats/json.h"

namespace flamewire::server {
namespace {

// The strings of an answer, without duplicates, by their id in the store.
class StringColumn {
public:
    explicit StringColumn(bool empty_first) {
        if (empty_first) (void)index(0);
    }
    std::uint32_t index(std::uint64_t id) {
        const auto [at, added] = indexes_.try_emplace(id, static_cast<std::uint32_t>(ids_.size()));
        if (added) ids_.push_back(id);
        return at->second;
    }
    // `text(id)`.
    template <class Text>
    void write(JsonWriter& json, std::string_view name, Text text) const {
        json.list(name, ids_, [&](std::uint64_t id) { json.text(text(id)); });
    }

private:
    std::unordered_map<std::uint64_t, std::uint32_t> indexes_;
    std::vector<std::uint64_t> ids_;
};

struct FunctionIndexes {
    std::uint32_t name = 0, module = 0, file = 0;
};

}  // namespace

void write_view(JsonWriter& json, const ViewHead& head) {
    json.member("session", head.session);
    json.member("event", head.view.event_name);
    json.member("unit", head.view.unit);
    json.member("data_version", head.data_version);
}

void write_head(JsonWriter& json, const ViewHead& head, const profile::Weight& total) {
    write_view(json, head);
    write_weight(json, "total", total);
}

void write_weight(JsonWriter& json, std::string_view name, const profile::Weight& weight) {
    json.key(name);
    json.object();
    json.member("samples", weight.samples);
    json.member("weight", weight.weight);
    json.end_object();
}

void write_thread(JsonWriter& json, const profile::Thread& thread) {
    json.member("tid", thread.tid);
    json.member("pid", thread.pid);
    json.member("comm", thread.comm);
}

void write_flamegraph(JsonWriter& json, const ViewHead& head, const profile::Store& store,
                      const profile::GroupedTree& tree) {
    json.object();
    write_head(json, head, tree.tree.total);
    write_tree(json, store, tree.tree, tree.groups);
    json.end_object();
}

void write_tree(JsonWriter& json, const profile::Store& store, const profile::CallTree& tree,
                std::span<const std::string> groups) {
    StringColumn names(false), modules(false), files(true);
    std::vector<FunctionIndexes> functions;
    functions.reserve(tree.functions.size());
    // Names of groups are not in the store.
    constexpr std::uint64_t group = std::uint64_t{1} << 32;
    const auto name_of = [&](const profile::Function& function) {
        return function.kind == profile::group_frame ? group | function.name : function.name;
    };
    const auto text = [&](std::uint64_t id) {
        return id >= group ? std::string_view(groups[static_cast<std::uint32_t>(id)])
                           : store.string(static_cast<profile::StringId>(id));
    };
    for (const profile::Function& function : tree.functions)
        functions.push_back(
            {names.index(name_of(function)), modules.index(function.module), files.index(function.file)});
    json.member("newest_ns", tree.newest_ns);
    names.write(json, "names", text);
    modules.write(json, "modules", text);
    files.write(json, "files", text);
    json.key("nodes");
    json.object();
    using Node = profile::CallTree::Node;
    const auto column = [&](std::string_view name, auto value) {
        json.list(name, tree.nodes, [&](const Node& node) { json.number(value(node)); });
    };
    column("parent", [](const Node& node) { return node.parent; });
    column("name", [&](const Node& node) { return functions[node.function].name; });
    column("module", [&](const Node& node) { return functions[node.function].module; });
    column("kind", [&](const Node& node) { return static_cast<unsigned>(tree.functions[node.function].kind); });
    column("file", [&](const Node& node) { return functions[node.function].file; });
    column("line", [&](const Node& node) { return tree.functions[node.function].line; });
    column("self", [](const Node& node) { return node.self.weight; });
    column("total", [](const Node& node) { return node.total.weight; });
    column("samples", [](const Node& node) { return node.total.samples; });
    column("self_samples", [](const Node& node) { return node.self.samples; });
    column("pruned", [](const Node& node) { return node.pruned_children; });
    if (!tree.addresses.empty()) column("address", [&](const Node& node) { return tree.addresses[node.function]; });
    json.end_object();
}

void write_sandwich(JsonWriter& json, const ViewHead& head, const profile::Store& store,
                    const profile::Sandwich& sandwich) {
    const auto tree = [&](std::string_view name, const profile::CallTree& half) {
        json.key(name);
        json.object();
        write_head(json, head, half.total);
        write_tree(json, store, half);
        json.end_object();
    };
    const auto list = [&](std::string_view name, const std::vector<profile::Sandwich::Neighbour>& neighbours) {
        json.list(name, neighbours, [&](const profile::Sandwich::Neighbour& neighbour) {
            json.object();
            json.member("name", store.string(neighbour.function.name));
            json.member("module", store.string(neighbour.function.module));
            json.member("kind", profile::kind_name(neighbour.function.kind));
            json.member("samples", neighbour.weight.samples);
            json.member("weight", neighbour.weight.weight);
            json.end_object();
        });
    };
    json.object();
    write_head(json, head, sandwich.all);
    const profile::Function& function = sandwich.callees.functions.front();
    json.member("name", store.string(function.name));
    json.member("module", store.string(function.module));
    json.member("kind", profile::kind_name(function.kind));
    write_weight(json, "function_self", sandwich.self);
    write_weight(json, "function_total", sandwich.total);
    list("direct_callers", sandwich.direct_callers);
    list("direct_callees", sandwich.direct_callees);
    tree("callers", sandwich.callers);
    tree("callees", sandwich.callees);
    json.end_object();
}

void write_functions(JsonWriter& json, const ViewHead& head, const profile::Store& store, const profile::Weight& total,
                     const std::vector<profile::FunctionRow>& rows) {
    json.object();
    write_head(json, head, total);
    json.list("functions", rows, [&](const profile::FunctionRow& row) {
        json.object();
        json.member("name", store.string(row.function.name));
        json.member("module", store.string(row.function.module));
        json.member("kind", profile::kind_name(row.function.kind));
        json.member("file", store.string(row.function.file));
        json.member("line", row.function.line);
        json.member("self", row.self.weight);
        json.member("total", row.total.weight);
        json.member("self_samples", row.self.samples);
        json.member("total_samples", row.total.samples);
        json.member("self_percent", views::percent(row.self.weight, total.weight));
        json.member("total_percent", views::percent(row.total.weight, total.weight));
        json.end_object();
    });
    json.end_object();
}

}  // namespace flamewire::server
