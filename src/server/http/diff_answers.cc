#include "server/http/diff_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/json_writer.h"
#include "profile/formats/json.h"
#include "profile/query/diff.h"
#include "server/http/flamegraph.h"
#include "server/http/parameters.h"
#include "server/http/profile_answers.h"

namespace flamewire::server {
namespace {

// What weights are divided by before the comparison: their sum, which gives shares, or the seconds that they cover.
enum class Normalise : std::uint8_t { total, time };

Result<Normalise> parse_normalise(std::string_view text) {
    if (text.empty() || text == "total") return Normalise::total;
    if (text == "time") return Normalise::time;
    return fail(ErrorCode::invalid, "normalise must be total or time");
}

struct Side {
    const Session& session;
    const profile::Store& store;
    views::View view;
    double duration_ms = 0;
};

struct Comparison {
    Side before, after;
    Normalise normalise = Normalise::total;
};

// The divisors of the two sides. 0 if there is nothing to divide by; there is no weight then either.
struct Per {
    double before = 0, after = 0;
    [[nodiscard]] double change(std::uint64_t before_weight, std::uint64_t after_weight) const {
        const auto of = [](std::uint64_t weight, double per) {
            return per > 0 ? static_cast<double>(weight) / per : 0.0;
        };
        return of(after_weight, after) - of(before_weight, before);
    }
};
Per per_of(const Comparison& comparison, const profile::WeightPair& whole) {
    if (comparison.normalise == Normalise::time)
        return {comparison.before.duration_ms / 1e3, comparison.after.duration_ms / 1e3};
    return {static_cast<double>(whole.before.weight), static_cast<double>(whole.after.weight)};
}

Answer not_comparable(std::string_view why) { return error_answer(400, "not_comparable", why); }

std::string names_of(std::span<const profile::Event> events) {
    std::string names;
    for (std::size_t id = 1; id < events.size(); ++id) names += (id > 1 ? ", " : "") + events[id].name;
    return names;
}

// An error if the baseline's event does not measure the same thing.
std::optional<Answer> mismatch(const Session& before, const profile::Store& store, const views::View& after) {
    const auto events = store.events();
    const auto same = std::ranges::find(events.begin() + 1, events.end(), after.event_name, &profile::Event::name);
    if (same == events.end())
        return not_comparable(fmt::format(
            "the baseline {} did not measure {}, so there is nothing to compare: {}", before.id(), after.event_name,
            events.size() < 2 ? "it has no samples yet"
                              : fmt::format("choose an event that both have; it has {}", names_of(events))));
    if (same->unit != after.unit)
        return not_comparable(
            fmt::format("{} counts {} in the baseline {} and {} here: choose a baseline whose unit is the same",
                        after.event_name, same->unit, before.id(), after.unit));
    return std::nullopt;
}

// Runs `query(store of before, store of after)`, both shared. It locks one session once, and two in a fixed order, so
// that requests which compare them in opposite directions cannot deadlock.
template <class Query>
Answer read_both(const Session& before, const Session& after, Query query) {
    if (&before == &after)
        return before.read([&](const profile::Store& store) -> Answer { return query(store, store); });
    const bool before_first = before.id() < after.id();
    const Session& first = before_first ? before : after;
    const Session& second = before_first ? after : before;
    return first.read([&](const profile::Store& a) -> Answer {
        return second.read([&](const profile::Store& b) -> Answer { return before_first ? query(a, b) : query(b, a); });
    });
}

// Parses both views, checks that they are comparable, then runs `answer(comparison)`.
template <class AnswerOf>
Answer with_comparison(const Session& before, const Session& after, const Request& request, AnswerOf answer) {
    const auto normalise = parse_normalise(request.parameter("normalise"));
    if (!normalise) return error_answer(normalise.error());
    const auto after_parameters = parse_view(request);
    if (!after_parameters) return error_answer(after_parameters.error());
    auto before_parameters = parse_view(request, "base_");
    if (!before_parameters) return error_answer(before_parameters.error());
    const std::uint64_t before_start_ns = before.status().start_ns(), after_start_ns = after.status().start_ns();
    return read_both(before, after, [&](const profile::Store& old_store, const profile::Store& new_store) -> Answer {
        const auto after_view = resolve_view(*after_parameters, new_store, after_start_ns);
        if (!after_view) return error_answer(after_view.error());
        if (after_view->event == 0) return error_answer(404, "no_data", "the session has no samples yet");
        if (auto refused = mismatch(before, old_store, *after_view)) return std::move(*refused);
        before_parameters->event = after_view->event_name;
        const auto before_view = resolve_view(*before_parameters, old_store, before_start_ns);
        if (!before_view) return error_answer(before_view.error());
        const auto covered_ms = [](const profile::Store& store, const views::View& view, std::uint64_t start_ns) {
            return static_cast<double>(profile::covered_ns(store, view.filter, start_ns)) / 1e6;
        };
        const Comparison comparison{
            {before, old_store, *before_view, covered_ms(old_store, *before_view, before_start_ns)},
            {after, new_store, *after_view, covered_ms(new_store, *after_view, after_start_ns)},
            *normalise,
        };
        for (const Side* side : {&comparison.before, &comparison.after})
            if (*normalise == Normalise::time && !profile::has_times(side->store))
                return not_comparable(
                    fmt::format("session {} has no times: compare shares, with normalise=total", side->session.id()));
        return answer(comparison);
    });
}

// `total`: of what is shown. `whole`: of the whole view.
void write_comparison(JsonWriter& json, const Comparison& comparison, const profile::WeightPair& total,
                      const profile::WeightPair& whole, const Per& per) {
    const Side& after = comparison.after;
    write_head(json, {after.session.id(), after.view, after.store.version()}, total.after);
    json.member("normalise", comparison.normalise == Normalise::time ? "time" : "total");
    write_weight(json, "whole", whole.after);
    json.member("duration_ms", after.duration_ms);
    json.member("per", per.after);
    json.key("base");
    json.object();
    json.member("session", comparison.before.session.id());
    json.member("data_version", comparison.before.store.version());
    write_weight(json, "total", total.before);
    write_weight(json, "whole", whole.before);
    json.member("duration_ms", comparison.before.duration_ms);
    json.member("per", per.before);
    json.end_object();
}

// The texts of an answer, without duplicates.
class TextColumn {
public:
    explicit TextColumn(bool empty_first) {
        if (empty_first) (void)index("");
    }
    std::uint32_t index(std::string_view text) {
        const auto [at, added] = indexes_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
        if (added) texts_.push_back(text);
        return at->second;
    }
    void write(JsonWriter& json, std::string_view name) const { json.texts(name, texts_); }

private:
    std::unordered_map<std::string_view, std::uint32_t> indexes_;
    std::vector<std::string_view> texts_;
};

void write_tree(JsonWriter& json, const profile::DiffTree& tree) {
    struct Indexes {
        std::uint32_t name = 0, module = 0, file = 0;
    };
    TextColumn names(false), modules(false), files(true);
    std::vector<Indexes> functions;
    functions.reserve(tree.functions.size());
    for (const profile::DiffFunction& function : tree.functions)
        functions.push_back({names.index(function.name), modules.index(function.module), files.index(function.file)});
    json.member("newest_ns", tree.newest_ns);
    names.write(json, "names");
    modules.write(json, "modules");
    files.write(json, "files");
    json.key("nodes");
    json.object();
    using Node = profile::DiffTree::Node;
    const auto column = [&](std::string_view name, auto value) {
        json.list(name, tree.nodes, [&](const Node& node) { json.number(value(node)); });
    };
    column("parent", [](const Node& node) { return node.parent; });
    column("name", [&](const Node& node) { return functions[node.function].name; });
    column("module", [&](const Node& node) { return functions[node.function].module; });
    column("kind", [&](const Node& node) { return static_cast<unsigned>(tree.functions[node.function].kind); });
    column("file", [&](const Node& node) { return functions[node.function].file; });
    column("line", [&](const Node& node) { return tree.functions[node.function].line; });
    column("self", [](const Node& node) { return node.self.after.weight; });
    column("total", [](const Node& node) { return node.total.after.weight; });
    column("samples", [](const Node& node) { return node.total.after.samples; });
    column("self_samples", [](const Node& node) { return node.self.after.samples; });
    column("base_self", [](const Node& node) { return node.self.before.weight; });
    column("base_total", [](const Node& node) { return node.total.before.weight; });
    column("base_samples", [](const Node& node) { return node.total.before.samples; });
    column("base_self_samples", [](const Node& node) { return node.self.before.samples; });
    column("pruned", [](const Node& node) { return node.pruned_children; });
    if (!tree.addresses.empty()) column("address", [&](const Node& node) { return tree.addresses[node.function]; });
    json.end_object();
}

void write_function(JsonWriter& json, const profile::FunctionDiff& row, const Per& per) {
    const profile::DiffFunction& function = row.function;
    json.object();
    json.member("name", function.name);
    json.member("module", function.module);
    json.member("kind", profile::kind_name(function.kind));
    json.member("file", function.file);
    json.member("line", function.line);
    json.member("self", row.self.after.weight);
    json.member("total", row.total.after.weight);
    json.member("self_samples", row.self.after.samples);
    json.member("total_samples", row.total.after.samples);
    json.member("base_self", row.self.before.weight);
    json.member("base_total", row.total.before.weight);
    json.member("base_self_samples", row.self.before.samples);
    json.member("base_total_samples", row.total.before.samples);
    json.member("self_change", per.change(row.self.before.weight, row.self.after.weight));
    json.member("total_change", per.change(row.total.before.weight, row.total.after.weight));
    const bool is_new = row.total.before == profile::Weight{}, is_gone = row.total.after == profile::Weight{};
    json.member("presence", is_new ? "new" : is_gone ? "gone" : "both");
    json.end_object();
}

profile::Weight sum_of(const profile::Store& store, const views::View& view) {
    return profile::call_tree(store, view.filter, {.max_nodes = 1}).total;
}

}  // namespace

Answer diff_answer(const Session& before, const Session& after, const Request& request) {
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    return with_comparison(before, after, request, [&](const Comparison& comparison) {
        const profile::DiffTree tree =
            profile::diff_tree({comparison.before.store, comparison.before.view.filter},
                               {comparison.after.store, comparison.after.view.filter}, *options);
        JsonWriter json;
        json.object();
        write_comparison(json, comparison, tree.nodes[0].total, tree.total, per_of(comparison, tree.total));
        write_tree(json, tree);
        json.end_object();
        return json_answer(json.take());
    });
}

Answer diff_functions_answer(const Session& before, const Session& after, const Request& request) {
    return with_comparison(before, after, request, [&](const Comparison& comparison) {
        const profile::WeightPair whole{sum_of(comparison.before.store, comparison.before.view),
                                        sum_of(comparison.after.store, comparison.after.view)};
        const Per per = per_of(comparison, whole);
        auto rows = profile::diff_functions({comparison.before.store, comparison.before.view.filter},
                                            {comparison.after.store, comparison.after.view.filter});
        const auto change = [&](const profile::WeightPair& pair) {
            return -std::abs(per.change(pair.before.weight, pair.after.weight));
        };
        std::ranges::stable_sort(rows, {}, [&](const profile::FunctionDiff& row) {
            return std::tuple(change(row.self), change(row.total));
        });
        JsonWriter json;
        json.object();
        write_comparison(json, comparison, whole, whole, per);
        json.list("functions", rows, [&](const profile::FunctionDiff& row) { write_function(json, row, per); });
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
