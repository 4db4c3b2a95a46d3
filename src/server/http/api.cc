#include "server/http/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "profile/formats/export.h"
#include "server/http/agent_events.h"
#include "server/http/archive_answers.h"
#include "server/http/browse_answers.h"
#include "server/http/config_answers.h"
#include "server/http/counter_answers.h"
#include "server/http/diff_answers.h"
#include "server/http/disasm_answers.h"
#include "server/http/health_answers.h"
#include "server/http/hit_answers.h"
#include "server/http/import_answers.h"
#include "server/http/metrics_answer.h"
#include "server/http/module_answers.h"
#include "server/http/pairing_answers.h"
#include "server/http/profile_answers.h"
#include "server/http/session_answers.h"
#include "server/http/timeline_answers.h"
#include "server/http/trim_merge_answers.h"
#include "server/http/upload_answers.h"

namespace flamewire::server {
namespace {

using Route = Api::Route;
using SessionPtr = std::shared_ptr<Session>;

// A view of the session that the request refers to, or of two: a comparison.
using OfView = Answer (*)(const Session& session, const Request& request);
using OfTwo = Answer (*)(const Session& before, const Session& after, const Request& request);
// Needs more than the session.
using OfSession = Answer (*)(const ApiParts& parts, const SessionPtr& session, const Request& request);
// `id`: the part of the path at {id}.
using OfServer = Answer (*)(const ApiParts& parts, const Request& request, std::string_view id);
using OfAgent = void (*)(const AgentCalls& calls, const Request& request, const Reply& reply);

struct Endpoint {
    std::string_view path;     // as in docs/openapi.yaml
    std::string_view methods;  // separated by spaces
    Route route;
    std::variant<OfView, OfTwo, OfSession, OfServer, OfAgent> answer;
};

ConfigAnswers config(const ApiParts& parts) {
    return {parts.settings, parts.sources, parts.symbolizer, parts.symbols, parts.catalog, parts.facts.browse_roots};
}

Answer export_answer(const ApiParts& parts, const SessionPtr& session, const Request& request) {
    if (is_archive(request)) return archive_answer(*session, request, parts.sources, parts.facts.data_dir);
    if (request.parameter("format") == "html") return html_answer(*session, request, parts.facts.page);
    return export_session_answer(*session, request);
}

constexpr std::string_view session_path = "/api/sessions/{id}", export_path = "/api/export/session/{id}";

// The first that fits answers. Those of one path and different methods follow each other.
constexpr Endpoint endpoints[] = {
    {"/metrics", "GET", Route::quick,
     [](const ApiParts& parts, const Request&, std::string_view) {
         return metrics_answer({parts.facts.started, parts.agents.all(), parts.catalog.all_loaded()});
     }},
    {"/api/status", "GET", Route::quick,
     [](const ApiParts& parts, const Request&, std::string_view) {
         return status_answer(parts.facts, parts.catalog, parts.agents);
     }},
    {"/api/stream", "GET", Route::stream, {}},

    {"/api/flamegraph", "GET", Route::session, flamegraph_answer},
    {"/api/callers", "GET", Route::session, callers_answer},
    {"/api/diff", "GET", Route::session, diff_answer},
    {"/api/diff/functions", "GET", Route::session, diff_functions_answer},
    {"/api/functions", "GET", Route::session, functions_answer},
    {"/api/scheduling", "GET", Route::session, scheduling_answer},
    {"/api/thread-states", "GET", Route::session, thread_states_answer},
    {"/api/thread-summary", "GET", Route::session, thread_summary_answer},
    {"/api/thread-view", "GET", Route::session, thread_view_answer},
    {"/api/timeline", "GET", Route::session, timeline_answer},
    {"/api/modules", "GET", Route::session, modules_answer},
    {"/api/modules", "POST", Route::session,
     [](const ApiParts& parts, const SessionPtr& session, const Request& request) {
         return config(parts).set_module_file(*session, request, parts.uploads);
     }},
    {"/api/warnings", "GET", Route::session, warnings_answer},
    {"/api/counters", "GET", Route::session, counters_answer},
    {"/api/hits", "GET", Route::session, hits_answer},
    {"/api/hits/table", "GET", Route::session, hit_table_answer},
    {"/api/metrics/current", "GET", Route::session,
     [](const Session& session, const Request&) { return metrics_current_answer(session); }},
    {"/api/metrics/history", "GET", Route::session, metrics_history_answer},
    {"/api/disasm", "GET", Route::session,
     [](const ApiParts& parts, const SessionPtr& session, const Request& request) {
         return disasm_answer(*session, request, parts.symbolizer);
     }},
    {"/api/source", "GET", Route::session,
     [](const ApiParts& parts, const SessionPtr& session, const Request& request) {
         return source_answer(session, request, parts.sources, parts.debug_fetch);
     }},
    {"/api/source-files", "GET", Route::session, source_files_answer},
    {"/api/export/flamegraph", "GET", Route::session, export_flamegraph_answer},
    {export_path, "GET", Route::session, export_answer},

    {"/api/sessions", "GET", Route::quick,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return sessions_answer(parts.catalog, parts.facts.keep, request);
     }},
    {"/api/sessions/merge", "POST", Route::writing,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return merge_answer(parts.catalog, parts.symbols, request);
     }},
    {session_path, "GET", Route::session,
     [](const Session& session, const Request&) { return session_answer(session); }},
    {session_path, "PATCH", Route::worker,
     [](const ApiParts& parts, const Request& request, std::string_view id) {
         return relabel_answer(parts.catalog, id, request);
     }},
    {session_path, "DELETE", Route::worker,
     [](const ApiParts& parts, const Request&, std::string_view id) {
         return remove_session_answer(parts.catalog, id);
     }},
    {"/api/sessions/{id}/cut", "POST", Route::writing,
     [](const ApiParts& parts, const SessionPtr& session, const Request& request) {
         return trim_answer(parts.catalog, parts.symbols, *session, request);
     }},
    {"/api/sessions/{id}/sources", "POST", Route::writing,
     [](const ApiParts& parts, const SessionPtr& session, const Request&) {
         return bundle_sources_answer(*session, parts.sources);
     }},
    {"/api/imports", "GET POST", Route::quick,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return imports_answer(parts.imports, parts.uploads, request);
     }},
    {"/api/imports/{id}", "GET DELETE", Route::quick,
     [](const ApiParts& parts, const Request& request, std::string_view id) {
         return import_answer(parts.imports, std::string(id), request);
     }},
    {"/api/uploads/{id}", "PUT GET DELETE", Route::worker,
     [](const ApiParts& parts, const Request& request, std::string_view id) {
         return upload_answer(parts.uploads, std::string(id), request);
     }},

    {"/api/agents", "GET", Route::quick,
     [](const ApiParts& parts, const Request&, std::string_view) { return agents_answer(parts.agents.all()); }},
    {"/api/pairing", "GET POST DELETE", Route::quick,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return pairing_answer(parts.keys, parts.agents.all(), parts.facts.target_command, request);
     }},
    {"/api/agent/connect", "POST", Route::agent, connect_answer},
    {"/api/agent/dials", "GET POST DELETE", Route::agent, dials_answer},
    {"/api/agent/command", "POST", Route::agent, command_answer},
    {"/api/agent/events", "GET", Route::agent, agent_events_answer},
    {"/api/stop", "POST", Route::agent, stop_answer},

    {"/api/browse", "GET", Route::worker,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return browse_answer(parts.facts.browse_roots, request);
     }},
    {"/api/config", "GET", Route::worker,
     [](const ApiParts& parts, const Request&, std::string_view) { return config(parts).current(); }},
    {"/api/config", "PATCH", Route::worker,
     [](const ApiParts& parts, const Request& request, std::string_view) { return config(parts).change(request); }},
    {"/api/config/toolchain", "GET", Route::worker,
     [](const ApiParts& parts, const Request&, std::string_view) { return config(parts).current(); }},
    {"/api/config/toolchain", "POST", Route::worker,
     [](const ApiParts& parts, const Request& request, std::string_view) {
         return config(parts).change_toolchain(request);
     }},
};

// What stands at {id}, empty for a path without it. Nothing if the path is another one.
std::optional<std::string_view> id_in(std::string_view path, std::string_view pattern) {
    constexpr std::string_view placeholder = "{id}";
    const std::size_t at = pattern.find(placeholder);
    if (at == std::string_view::npos) return path == pattern ? std::optional(std::string_view()) : std::nullopt;
    const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + placeholder.size());
    if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size()) return {};
    const std::string_view id = path.substr(at, path.size() - before.size() - after.size());
    return id.contains('/') ? std::nullopt : std::optional(id);
}

bool allows(std::string_view methods, std::string_view method) {
    if (method == "HEAD") method = "GET";
    while (!methods.empty()) {
        const std::size_t space = methods.find(' ');
        if (methods.substr(0, space) == method) return true;
        methods = space == std::string_view::npos ? std::string_view{} : methods.substr(space + 1);
    }
    return false;
}

struct Match {
    const Endpoint* endpoint = nullptr;  // nullptr: no endpoint has this path, or it does not take this method
    std::string_view id;
    std::string_view path;  // of the endpoints with this path
};

Match match(const Request& request) {
    Match found;
    for (const Endpoint& endpoint : endpoints) {
        if (!found.path.empty() && endpoint.path != found.path) continue;
        const auto id = id_in(request.path, endpoint.path);
        if (!id) continue;
        found.id = *id;
        found.path = endpoint.path;
        if (found.endpoint == nullptr && allows(endpoint.methods, request.method)) found.endpoint = &endpoint;
    }
    return found;
}

Answer refusal(const Request& request, const Match& found) {
    if (found.path.empty()) return error_answer(404, "not_found", fmt::format("there is no {:.200}", request.path));
    // "/api/sessions/" for {id} at the end, "/cut" for an action.
    const std::size_t end = found.path.find('}'), begin = found.path.find('{');
    const std::string_view shown = end + 1 < found.path.size() && end != std::string_view::npos
                                       ? found.path.substr(end + 1)
                                       : found.path.substr(0, begin);
    std::string allow;
    for (const Endpoint& endpoint : endpoints)
        if (endpoint.path == found.path) allow += (allow.empty() ? "" : " ") + std::string(endpoint.methods);
    Answer answer =
        error_answer(405, "method_not_allowed", fmt::format("{} takes {}, not {:.20}", shown, allow, request.method));
    for (std::size_t at = 0; (at = allow.find(' ', at)) != std::string::npos; at += 2) allow.replace(at, 1, ", ");
    answer.headers.emplace_back("Allow", allow);
    return answer;
}

// The id of the session that a request refers to. Empty: the default session.
std::string_view session_id(const Match& found, const Request& request) {
    return found.id.empty() ? request.parameter("session") : found.id;
}

// The baseline session of a comparison. Empty: the same session.
std::string_view baseline_id(const Match& found, const Request& request) {
    return std::holds_alternative<OfTwo>(found.endpoint->answer) ? request.parameter("base_session")
                                                                 : std::string_view{};
}

bool is_export(const Request& request) { return request.path.starts_with("/api/export/"); }

// Whether the part of a session that has been read so far is enough.
bool accepts_partial(const Request& request) { return request.parameter("partial") == "1" && !is_export(request); }

// Without this check, a client that requests groups from an endpoint without groups would take the total for one.
std::optional<Answer> check_group(const Endpoint& endpoint, const Request& request) {
    const std::string_view group = request.parameter("group"), format = request.parameter("format");
    if (group.empty() || group == "none") return {};
    constexpr std::string_view any[] = {"/api/flamegraph", "/api/export/flamegraph", session_path};
    if (std::ranges::find(any, endpoint.path) != std::end(any)) return {};
    if (endpoint.path == export_path) {
        const profile::ExportFormat* known = profile::find_export_format(format.empty() ? "collapsed" : format);
        if (known != nullptr && known->grouped) return {};
    }
    return error_answer(400, "validation",
                        "group is for flame graphs, their pictures and folded stacks: elsewhere, ask for each process, "
                        "thread or container with pid, tid or container");
}

}  // namespace

Api::Route Api::route_of(const Request& request) {
    const bool api = request.path == "/api" || request.path.starts_with("/api/") || request.path == "/metrics";
    if (!api) return request.method == "GET" || request.method == "HEAD" ? Route::file : Route::refused;
    const Endpoint* endpoint = match(request).endpoint;
    if (endpoint == nullptr) return Route::refused;
    return endpoint->path == export_path && is_archive(request) ? Route::writing : endpoint->route;
}

bool Api::changes_sessions(const Request& request) {
    if (request.path == "/api/pairing") return false;
    return request.method == "DELETE" || request.method == "PATCH" ||
           (request.method == "POST" && request.path.starts_with("/api/sessions/"));
}

Answer Api::answer(const Request& request) const {
    const Match found = match(request);
    if (found.endpoint == nullptr) return refusal(request, found);
    const auto& answer = found.endpoint->answer;
    if (const auto* of_server = std::get_if<OfServer>(&answer)) return (*of_server)(parts_, request, found.id);
    if (auto refused = check_group(*found.endpoint, request)) return *std::move(refused);
    const FoundSession session = find_session(session_id(found, request), request);
    if (!session) return session.error();
    if (const auto* of_view = std::get_if<OfView>(&answer)) return (*of_view)(**session, request);
    if (const auto* of_session = std::get_if<OfSession>(&answer)) return (*of_session)(parts_, *session, request);
    const std::string_view baseline = baseline_id(found, request);
    const FoundSession before =
        baseline.empty() || baseline == (*session)->id() ? session : find_session(baseline, request);
    if (!before) return before.error();
    return std::get<OfTwo>(answer)(**before, **session, request);
}

void Api::agent_request(const Request& request, const Reply& reply) const {
    std::get<OfAgent>(match(request).endpoint->answer)(parts_.agents, request, reply);
}

Api::Needs Api::needs(const Request& request) const {
    const Match found = match(request);
    const std::string_view id = session_id(found, request);
    if (id.empty() && parts_.catalog.live().empty())
        return {.background = true};  // finding the newest one reads the disk
    Needs needs;
    if (accepts_partial(request)) needs.extent = SessionLoader::Extent::partial;
    for (const std::string_view wanted : {id, baseline_id(found, request)})
        if (!wanted.empty() && !in_memory(wanted, request)) needs.sessions.emplace_back(wanted);
    return needs;
}

std::shared_ptr<Session> Api::in_memory(std::string_view id, const Request& request) const {
    return accepts_partial(request) ? parts_.catalog.opened(id) : parts_.catalog.loaded(id);
}

Api::FoundSession Api::find_session(std::string_view wanted, const Request& request) const {
    std::string id(wanted);
    if (id.empty()) {
        auto chosen = parts_.catalog.default_session();
        if (!chosen.several.empty())
            return std::unexpected(list_error(409, "several_sessions",
                                              "several sessions are live: choose one with session=", "sessions",
                                              chosen.several));
        if (chosen.id.empty()) return std::unexpected(error_answer(404, "no_data", "there is no session yet"));
        id = chosen.id;
    }
    const auto present = in_memory(id, request);
    const auto session = present ? Result<std::shared_ptr<Session>>(present) : parts_.catalog.get(id);
    if (!session) return std::unexpected(error_answer(session.error()));
    // A replayed session is shown with symbols from the start. An export always has them.
    if (!present || is_export(request)) parts_.symbols.finish(*session);
    return *session;
}

}  // namespace flamewire::server
