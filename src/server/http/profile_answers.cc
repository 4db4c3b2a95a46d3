#include "server/http/profile_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/formats/collapsed.h"
#include "profile/formats/json.h"
#include "profile/formats/svg.h"
#include "profile/query.h"
#include "server/http/flamegraph.h"
#include "server/http/view.h"

namespace flamewire::server {
namespace {

constexpr double default_min_share = 0.0005;
// What a browser still draws smoothly; the rest is pruned by size and fetched on zoom.
constexpr std::size_t max_tree_nodes = 100'000;
constexpr std::uint64_t max_slices = 2000;

// Parses the view, then runs `answer(store, view, head)` with the store shared; its errors become answers.
template <class AnswerOf>
Answer with_view(const Session& session, const Request& request, AnswerOf answer) {
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    const std::uint64_t start_ns = session.start_ns();
    return session.read([&](const profile::Store& store) -> Answer {
        const auto view = resolve_view(*parameters, store, start_ns);
        if (!view) return error_answer(view.error());
        return answer(store, *view, ViewHead{session.id(), *view, store.version()});
    });
}

Result<profile::TreeOptions> tree_options(const Request& request) {
    profile::TreeOptions options;
    options.min_share = default_min_share;
    options.max_nodes = max_tree_nodes;
    if (const auto text = request.parameter("min_share"); !text.empty()) {
        options.min_share = TRY(parse_number("min_share", text));
        if (options.min_share < 0 || options.min_share > 1)
            return fail(ErrorCode::invalid, "min_share is a share: between 0 and 1");
    }
    std::string_view path = request.parameter("path");
    while (!path.empty()) {
        const std::size_t end = path.find('\x1f');
        options.path.emplace_back(path.substr(0, end));
        path = end == std::string_view::npos ? std::string_view{} : path.substr(end + 1);
    }
    return options;
}

void write_thread(JsonWriter& json, const profile::Store& store, const profile::ThreadRow& row, std::uint64_t whole) {
    const profile::Thread& thread = store.threads()[row.thread];
    json.object();
    json.member("tid", thread.tid);
    json.member("pid", thread.pid);
    json.member("comm", thread.comm);
    json.member("samples", row.weight.samples);
    json.member("weight", row.weight.weight);
    json.member("percent", percent(row.weight.weight, whole));
    json.member("top_function", row.top.empty() ? std::string_view{} : store.string(row.top.front().function.name));
    json.list("top_functions", row.top, [&](const profile::ThreadRow::Top& top) {
        json.object();
        json.member("name", store.string(top.function.name));
        json.member("samples", top.self.samples);
        json.member("weight", top.self.weight);
        json.member("percent", percent(top.self.weight, row.weight.weight));
        json.end_object();
    });
    json.end_object();
}

// What the view counts, without a tree.
profile::Weight view_total(const profile::Store& store, const View& view) {
    profile::Weight total;
    for (const profile::Weight& slice : profile::histogram(store, view.filter, 1)) total += slice;
    return total;
}

// One row a thread or CPU, the busiest first; of more than a page can show the rest is left out, and said.
void write_lanes(JsonWriter& json, const profile::Store& store, const profile::Filter& filter, std::size_t slices,
                 bool cpus) {
    constexpr std::size_t most_rows = 256;
    std::vector<profile::LaneHistogram> lanes;
    if (filter.end_ns > filter.start_ns)
        lanes = histogram_by(store, filter, slices, cpus ? profile::Lanes::cpus : profile::Lanes::threads);
    std::ranges::stable_sort(lanes, [](const auto& a, const auto& b) { return a.total.weight > b.total.weight; });
    json.member("rows_left_out", lanes.size() - std::min(lanes.size(), most_rows));
    if (lanes.size() > most_rows) lanes.resize(most_rows);
    json.list("rows", lanes, [&](const profile::LaneHistogram& lane) {
        json.object();
        if (cpus) {
            json.member("cpu", lane.id);
        } else {
            const profile::Thread& thread = store.threads()[lane.id];
            json.member("tid", thread.tid);
            json.member("pid", thread.pid);
            json.member("comm", thread.comm);
        }
        json.list("samples", lane.slices, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", lane.slices, [&](const profile::Weight& weight) { json.number(weight.weight); });
        json.end_object();
    });
}

}  // namespace

Answer flamegraph_answer(const Session& session, const Request& request) {
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        JsonWriter json;
        write_flamegraph(json, head, store, profile::call_tree(store, view.filter, *options));
        return json_answer(json.take());
    });
}

Answer functions_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        JsonWriter json;
        write_functions(json, head, store, view_total(store, view), profile::functions(store, view.filter));
        return json_answer(json.take());
    });
}

Answer thread_view_answer(const Session& session, const Request& request) {
    if (request.parameter("tid").empty()) return error_answer(400, "validation", "tid is required");
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        const profile::CallTree tree = profile::call_tree(store, view.filter, *options);
        JsonWriter json;
        json.object();
        json.key("flamegraph");
        write_flamegraph(json, head, store, tree);
        json.key("functions");
        write_functions(json, head, store, tree.total, profile::functions(store, view.filter));
        json.end_object();
        return json_answer(json.take());
    });
}

Answer thread_summary_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        const auto rows = profile::thread_summary(store, view.filter);
        profile::Weight total;
        for (const auto& row : rows) total += row.weight;
        JsonWriter json;
        json.object();
        json.member("session", head.session);
        json.member("event", view.event_name);
        json.member("unit", view.unit);
        json.member("data_version", head.data_version);
        json.member("total_samples", total.samples);
        json.member("total_weight", total.weight);
        json.list("threads", rows,
                  [&](const profile::ThreadRow& row) { write_thread(json, store, row, total.weight); });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer timeline_answer(const Session& session, const Request& request) {
    const std::string_view by = request.parameter("by").empty() ? "total" : request.parameter("by");
    if (by != "total" && by != "thread" && by != "cpu")
        return error_answer(400, "validation", "by is total, thread or cpu");
    std::uint64_t slices = 200;
    if (const auto text = request.parameter("slices"); !text.empty()) {
        const auto parsed = parse_integer("slices", text);
        if (!parsed) return error_answer(parsed.error());
        slices = *parsed;
    }
    if (slices == 0 || slices > max_slices) return error_answer(400, "validation", "slices is between 1 and 2000");
    const std::uint64_t origin_ns = session.start_ns();
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        // Without limits the strip spans what there is.
        profile::Filter filter = view.filter;
        filter.start_ns = std::max(filter.start_ns, origin_ns);
        filter.end_ns = std::max(filter.start_ns, std::min(filter.end_ns, store.end_ns()));
        std::vector<profile::Weight> weights(slices);
        if (filter.end_ns > filter.start_ns) weights = profile::histogram(store, filter, slices);
        JsonWriter json;
        json.object();
        json.member("session", head.session);
        json.member("event", view.event_name);
        json.member("unit", view.unit);
        json.member("data_version", head.data_version);
        json.member("start_ms", static_cast<double>(filter.start_ns - origin_ns) / 1e6);
        json.member("slice_ms",
                    static_cast<double>(filter.end_ns - filter.start_ns) / 1e6 / static_cast<double>(slices));
        json.list("samples", weights, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", weights, [&](const profile::Weight& weight) { json.number(weight.weight); });
        if (by != "total") write_lanes(json, store, filter, slices, by == "cpu");
        json.end_object();
        return json_answer(json.take());
    });
}

Answer source_files_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead& head) {
        const profile::Weight total = view_total(store, view);
        JsonWriter json;
        json.object();
        json.member("session", head.session);
        json.member("event", view.event_name);
        json.list("files", profile::source_files(store, view.filter), [&](const profile::FileRow& row) {
            json.object();
            json.member("file", store.string(row.file));
            json.member("self", row.self.weight);
            json.member("total", row.total.weight);
            json.member("self_percent", percent(row.self.weight, total.weight));
            json.member("total_percent", percent(row.total.weight, total.weight));
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer export_flamegraph_answer(const Session& session, const Request& request) {
    const std::string target = session.info().target;
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead&) {
        profile::SvgOptions options;
        options.title = view.event_name.empty() ? target : fmt::format("{} ({})", target, view.event_name);
        return download("image/svg+xml", profile::svg(store, view.filter, options),
                        fmt::format("flamewire-{}-{}.svg", session.id(), view.event_name));
    });
}

Answer export_session_answer(const Session& session, const Request& request) {
    const std::string_view format = request.parameter("format");
    const bool collapsed = format.empty() || format == "collapsed";
    if (!collapsed && format != "json")
        return error_answer(400, "validation", fmt::format("format is collapsed or json, not {:.40}", format));
    return with_view(session, request, [&](const profile::Store& store, const View& view, const ViewHead&) {
        if (collapsed)
            return download("text/plain; charset=utf-8", profile::collapsed(store, view.filter),
                            fmt::format("flamewire-{}-{}.collapsed", session.id(), view.event_name));
        // A whole session unless one event is asked for.
        profile::Filter filter = view.filter;
        if (request.parameter("event").empty()) filter.event.reset();
        return download("application/json", profile::json(store, filter),
                        fmt::format("flamewire-{}.json", session.id()));
    });
}

}  // namespace flamewire::server
