#include "server/http/profile_answers.h"

#include <fmt/format.h>

#include "profile/formats/export.h"
#include "profile/query/query.h"
#include "server/http/session_view.h"
#include "views/quality_warnings.h"

namespace flamewire::server {
namespace {

constexpr double default_min_share = 0.0005;
// A tree that a browser still draws smoothly. The rest is pruned by size and fetched on zoom.
constexpr std::size_t max_tree_nodes = 100'000;

constexpr std::size_t max_hidden = 1000;

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return parts;
}

// The root frames of a tree or an export.
Result<profile::GroupBy> group_of(const Request& request) {
    if (const auto group = profile::parse_group(request.parameter("group"))) return *group;
    return fail(ErrorCode::invalid, "group must be none, process, thread, container or cpu");
}

Answer export_answer(const Session& session, const Request& request, const profile::ExportFormat& format) {
    const SessionInfo info = session.info();
    profile::ExportAbout about;
    about.name = info.label.name.empty() ? info.target : info.label.name;
    about.started_ns = info.started_ns;
    about.tags.assign(info.label.tags.begin(), info.label.tags.end());
    about.weights = request.parameter("value") == "weight";
    const auto group = group_of(request);
    if (!group) return error_answer(group.error());
    about.group = *group;
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead&) {
        profile::Filter filter = view.filter;
        // Export the whole session unless one event is requested.
        if (!format.one_event && request.parameter("event").empty()) filter.event.reset();
        Result<std::string> body = format.write(store, filter, about);
        if (!body) return error_answer(body.error());
        std::string file = fmt::format("flamewire-{}", session.id());
        if (format.one_event) file += fmt::format("-{}", view.event_name);
        return download(std::string(format.content_type), *std::move(body), file.append(format.extension));
    });
}

}  // namespace

Result<profile::TreeOptions> tree_options(const Request& request) {
    profile::TreeOptions options;
    options.min_share = default_min_share;
    options.max_nodes = max_tree_nodes;
    if (const auto text = request.parameter("min_share"); !text.empty()) {
        options.min_share = TRY(parse_number("min_share", text));
        if (options.min_share < 0 || options.min_share > 1)
            return fail(ErrorCode::invalid, "min_share must be between 0 and 1");
    }
    options.path = split(request.parameter("path"), '\x1f');
    for (const std::string& path : split(request.parameter("hide"), '\x1d')) {
        if (options.hidden.size() == max_hidden)
            return fail(ErrorCode::invalid, fmt::format("hide takes at most {} subtrees", max_hidden));
        options.hidden.push_back(split(path, '\x1f'));
    }
    const std::string_view order = request.parameter("order");
    if (!order.empty() && order != "top-down" && order != "bottom-up")
        return fail(ErrorCode::invalid, "order must be top-down or bottom-up");
    options.inverted = order == "bottom-up";
    const std::string_view merge = request.parameter("merge");
    if (merge == "line")
        options.merge = profile::MergeBy::line;
    else if (merge == "address")
        options.merge = profile::MergeBy::address;
    else if (!merge.empty() && merge != "function")
        return fail(ErrorCode::invalid, "merge must be function, line or address");
    const std::string_view recursion = request.parameter("recursion");
    if (!recursion.empty() && recursion != "keep" && recursion != "collapse")
        return fail(ErrorCode::invalid, "recursion must be keep or collapse");
    options.collapse_recursion = recursion == "collapse";
    return options;
}

Answer flamegraph_answer(const Session& session, const Request& request) {
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    const auto group = group_of(request);
    if (!group) return error_answer(group.error());
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        JsonWriter json;
        write_flamegraph(json, head, store, profile::grouped_tree(store, view.filter, *group, *options));
        return json_answer(json.take());
    });
}

Answer callers_answer(const Session& session, const Request& request) {
    const std::string_view function = request.parameter("function");
    if (function.empty())
        return error_answer(400, "validation", "function is required: the name whose callers are requested");
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const profile::Sandwich sandwich =
            profile::sandwich(store, view.filter, function, request.parameter("module"), *options);
        if (sandwich.total == profile::Weight{})
            return error_answer(404, "not_found", fmt::format("no stack of this view contains {:.200}", function));
        JsonWriter json;
        write_sandwich(json, head, store, sandwich);
        return json_answer(json.take());
    });
}

Answer functions_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        JsonWriter json;
        write_functions(json, head, store, profile::total_of(store, view.filter),
                        profile::functions(store, view.filter));
        return json_answer(json.take());
    });
}

Answer warnings_answer(const Session& session, const Request& request) {
    const SessionInfo info = session.info();
    const views::ModuleReports reports = session.symbols().reports();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        JsonWriter json;
        json.object();
        write_view(json, head);
        json.list("warnings", views::quality_warnings(store, view, info.unwinding, info.notices, reports),
                  [&](const wire::Notice& warning) {
                      json.object();
                      json.member("code", warning.code);
                      json.member("text", warning.text);
                      json.member("remedy", warning.remedy);
                      json.end_object();
                  });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer thread_view_answer(const Session& session, const Request& request) {
    if (request.parameter("tid").empty()) return error_answer(400, "validation", "tid is required");
    const auto options = tree_options(request);
    if (!options) return error_answer(options.error());
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const profile::CallTree tree = profile::call_tree(store, view.filter, *options);
        JsonWriter json;
        json.object();
        json.key("flamegraph");
        write_flamegraph(json, head, store, {tree, {}});
        json.key("functions");
        write_functions(json, head, store, tree.total, profile::functions(store, view.filter));
        json.end_object();
        return json_answer(json.take());
    });
}

Answer source_files_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const profile::Weight total = profile::total_of(store, view.filter);
        JsonWriter json;
        json.object();
        json.member("session", head.session);
        json.member("event", view.event_name);
        json.list("files", profile::source_files(store, view.filter), [&](const profile::FileRow& row) {
            json.object();
            json.member("file", store.string(row.file));
            json.member("self", row.self.weight);
            json.member("total", row.total.weight);
            json.member("self_percent", views::percent(row.self.weight, total.weight));
            json.member("total_percent", views::percent(row.total.weight, total.weight));
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer export_flamegraph_answer(const Session& session, const Request& request) {
    return export_answer(session, request, *profile::find_export_format("svg"));
}

Answer export_session_answer(const Session& session, const Request& request) {
    const std::string_view name = request.parameter("format");
    const profile::ExportFormat* format = profile::find_export_format(name.empty() ? "collapsed" : name);
    if (format == nullptr)
        return error_answer(400, "validation",
                            fmt::format("format is {} or html, not {:.40}", profile::export_format_names(), name));
    const std::string_view value = request.parameter("value");
    if (!value.empty() && value != "samples" && value != "weight")
        return error_answer(400, "validation", fmt::format("value must be samples or weight, not {:.40}", value));
    return export_answer(session, request, *format);
}

}  // namespace flamewire::server
