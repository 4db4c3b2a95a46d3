// Routing, sessions and status. Agents are in agent_answers.cc, the configuration in config_answers.cc.
#include "server/http/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/formats/export.h"
#include "server/http/archive_answers.h"
#include "server/http/browse_answers.h"
#include "server/http/import_answers.h"
#include "server/http/metrics_answer.h"
#include "server/http/module_answers.h"
#include "server/http/pairing_answers.h"
#include "server/http/quality_warnings.h"
#include "server/http/trim_merge_answers.h"
#include "server/http/upload_answers.h"
#include "server/http/view.h"
#include "server/session/iso_time.h"

namespace flamewire::server {
namespace {

constexpr std::string_view sessions_prefix = "/api/sessions/";
constexpr std::string_view export_prefix = "/api/export/session/";
constexpr std::string_view sources_suffix = "/sources", cut_suffix = "/cut";
constexpr std::string_view metrics_path = "/metrics";
constexpr std::size_t max_search_bytes = 256;
constexpr std::string_view merge_path = "/api/sessions/merge";

struct Endpoint {
    std::string_view path;
    Api::Route route;
    std::string_view methods;  // separated by spaces
};

constexpr Endpoint endpoints[] = {
    {metrics_path, Api::Route::quick, "GET"},
    {"/api/status", Api::Route::quick, "GET"},
    {"/api/stream", Api::Route::stream, "GET"},
    {"/api/flamegraph", Api::Route::session, "GET"},
    {"/api/callers", Api::Route::session, "GET"},
    {"/api/diff", Api::Route::session, "GET"},
    {"/api/diff/functions", Api::Route::session, "GET"},
    {"/api/functions", Api::Route::session, "GET"},
    {"/api/scheduling", Api::Route::session, "GET"},
    {"/api/thread-states", Api::Route::session, "GET"},
    {"/api/thread-summary", Api::Route::session, "GET"},
    {"/api/thread-view", Api::Route::session, "GET"},
    {"/api/timeline", Api::Route::session, "GET"},
    {"/api/modules", Api::Route::session, "GET POST"},
    {"/api/warnings", Api::Route::session, "GET"},
    {"/api/counters", Api::Route::session, "GET"},
    {"/api/metrics/current", Api::Route::session, "GET"},
    {"/api/metrics/history", Api::Route::session, "GET"},
    {"/api/disasm", Api::Route::session, "GET"},
    {"/api/source", Api::Route::session, "GET"},
    {"/api/source-files", Api::Route::session, "GET"},
    {"/api/export/flamegraph", Api::Route::session, "GET"},
    {"/api/sessions", Api::Route::quick, "GET"},
    {merge_path, Api::Route::session, "POST"},
    {"/api/imports", Api::Route::quick, "GET POST"},
    {"/api/agents", Api::Route::quick, "GET"},
    {"/api/pairing", Api::Route::quick, "GET POST DELETE"},
    {"/api/agent/connect", Api::Route::agent, "POST"},
    {"/api/agent/dials", Api::Route::agent, "GET POST DELETE"},
    {"/api/agent/command", Api::Route::agent, "POST"},
    {"/api/stop", Api::Route::agent, "POST"},
    {"/api/browse", Api::Route::worker, "GET"},
    {"/api/config", Api::Route::worker, "GET PATCH"},
    {"/api/config/toolchain", Api::Route::worker, "GET POST"},
};

// Actions on one session: the part of the path after its id.
constexpr Endpoint session_actions[] = {
    {cut_suffix, Api::Route::session, "POST"},
    {sources_suffix, Api::Route::session, "POST"},
};

// Paths with an id at the end.
constexpr Endpoint families[] = {
    {sessions_prefix, Api::Route::session, "GET PATCH DELETE"},
    {export_prefix, Api::Route::session, "GET"},
    {uploads_prefix, Api::Route::worker, "PUT GET DELETE"},
    {imports_prefix, Api::Route::quick, "GET DELETE"},
};

const Endpoint* action_of(std::string_view path) {
    if (!path.starts_with(sessions_prefix)) return nullptr;
    const std::size_t slash = path.find('/', sessions_prefix.size());
    if (slash == std::string_view::npos || slash == sessions_prefix.size()) return nullptr;
    for (const Endpoint& action : session_actions)
        if (path.substr(slash) == action.path) return &action;
    return nullptr;
}

const Endpoint* endpoint_of(std::string_view path) {
    if (const Endpoint* action = action_of(path)) return action;
    for (const Endpoint& endpoint : endpoints)
        if (path == endpoint.path) return &endpoint;
    for (const Endpoint& family : families)
        if (path.starts_with(family.path) && path.size() > family.path.size() &&
            path.find('/', family.path.size()) == std::string_view::npos)
            return &family;
    return nullptr;
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

// The session id in a path or a parameter. Empty: the default session.
std::string_view session_id(const Request& request) {
    std::string_view path = request.path;
    if (const Endpoint* action = action_of(path)) path.remove_suffix(action->path.size());
    for (const Endpoint& family : families)
        if (path.starts_with(family.path)) return path.substr(family.path.size());
    return request.parameter("session");
}

bool is_diff(const Request& request) { return request.path == "/api/diff" || request.path == "/api/diff/functions"; }

// The baseline session of a comparison. Empty: the same session.
std::string_view baseline_id(const Request& request) {
    return is_diff(request) ? request.parameter("base_session") : std::string_view{};
}

// Whether the part of a session that has been read so far is enough.
bool accepts_partial(const Request& request) {
    return request.parameter("partial") == "1" && !request.path.starts_with("/api/export/");
}

// Without this check, a client that requests groups from an endpoint without groups would take the total for one.
std::optional<Answer> check_group(const Request& request) {
    const std::string_view group = request.parameter("group"), format = request.parameter("format");
    if (group.empty() || group == "none") return {};
    if (request.path == "/api/flamegraph" || request.path == "/api/export/flamegraph") return {};
    if (request.path.starts_with(export_prefix)) {
        const profile::ExportFormat* known = profile::find_export_format(format.empty() ? "collapsed" : format);
        if (known != nullptr && known->grouped) return {};
    }
    return error_answer(400, "validation",
                        "group is for flame graphs, their pictures and folded stacks: elsewhere, ask for each process, "
                        "thread or container with pid, tid or container");
}

Answer refusal(const Request& request) {
    const Endpoint* endpoint = endpoint_of(request.path);
    if (endpoint == nullptr) return error_answer(404, "not_found", fmt::format("there is no {:.200}", request.path));
    Answer answer =
        error_answer(405, "method_not_allowed",
                     fmt::format("{} takes {}, not {:.20}", endpoint->path, endpoint->methods, request.method));
    std::string allow(endpoint->methods);
    for (std::size_t at = 0; (at = allow.find(' ', at)) != std::string::npos; at += 2) allow.replace(at, 1, ", ");
    answer.headers.emplace_back("Allow", allow);
    return answer;
}

}  // namespace

Api::Route Api::route_of(const Request& request) {
    const bool api = request.path == "/api" || request.path.starts_with("/api/") || request.path == metrics_path;
    if (!api) return request.method == "GET" || request.method == "HEAD" ? Route::file : Route::refused;
    const Endpoint* endpoint = endpoint_of(request.path);
    return endpoint == nullptr || !allows(endpoint->methods, request.method) ? Route::refused : endpoint->route;
}

bool Api::changes_sessions(const Request& request) {
    if (request.path == "/api/pairing") return false;
    return request.method == "DELETE" || request.method == "PATCH" ||
           (request.method == "POST" && request.path.starts_with(sessions_prefix));
}

Answer Api::answer(const Request& request) {
    if (route_of(request) == Route::refused) return refusal(request);
    const std::string_view path = request.path;
    if (path == "/api/status") return status();
    if (path == metrics_path) return metrics_answer({facts_.started, agents_.all(), catalog_.all_loaded()});
    if (path == "/api/sessions") return sessions(request);
    if (path == "/api/browse") return browse_answer(facts_.browse_roots, request);
    if (path == "/api/config") return config(request);
    if (path == "/api/config/toolchain") return toolchain(request);
    if (path == "/api/agents") {
        JsonWriter json;
        json.object();
        json.list("agents", agents_.all(), [&](const AgentPtr& agent) { write_agent(json, *agent); });
        json.end_object();
        return json_answer(json.take());
    }
    if (path == "/api/pairing") return pairing_answer(keys_, agents_.all(), facts_.target_command, request);
    if (path == "/api/imports") return imports_answer(imports_, uploads_, request);
    if (path.starts_with(imports_prefix)) return import_answer(imports_, request);
    if (path.starts_with(uploads_prefix)) return upload_answer(uploads_, request);
    if (path == merge_path) return merge_answer(catalog_, symbols_, request);
    if (path.starts_with(sessions_prefix) && action_of(path) == nullptr)
        return session_detail(request, path.substr(sessions_prefix.size()));
    return session_view(request);
}

Api::Needs Api::needs(const Request& request) {
    if (is_archive(request) || action_of(request.path) != nullptr || request.path == merge_path)
        return {.writes = true};
    const std::string_view id = session_id(request);
    if (id.empty() && catalog_.live().empty()) return {.background = true};  // finding the newest one reads the disk
    Needs needs;
    if (accepts_partial(request)) needs.extent = SessionLoader::Extent::partial;
    const bool needs_rows = request.method != "DELETE" && request.method != "PATCH";
    for (const std::string_view wanted : {needs_rows ? id : std::string_view{}, baseline_id(request)})
        if (!wanted.empty() && !in_memory(wanted, request)) needs.sessions.emplace_back(wanted);
    return needs;
}

std::shared_ptr<Session> Api::in_memory(std::string_view id, const Request& request) {
    return accepts_partial(request) ? catalog_.opened(id) : catalog_.loaded(id);
}

Result<std::shared_ptr<Session>> Api::session_of(const Request& request, Answer& several) {
    std::string id(session_id(request));
    if (id.empty()) {
        auto chosen = catalog_.default_session();
        if (!chosen.several.empty()) {
            several = list_error(409, "several_sessions",
                                 "several sessions are live: choose one with session=", "sessions", chosen.several);
            return fail(ErrorCode::busy, "several sessions");
        }
        if (chosen.id.empty()) {
            several = error_answer(404, "no_data", "there is no session yet");
            return fail(ErrorCode::not_found, "no session");
        }
        id = chosen.id;
    }
    return named_session(id, request, several);
}

Result<std::shared_ptr<Session>> Api::named_session(const std::string& id, const Request& request, Answer& failure) {
    const auto present = in_memory(id, request);
    auto session = present ? Result<std::shared_ptr<Session>>(present) : catalog_.get(id);
    if (!session) {
        failure = error_answer(session.error());
        return session;
    }
    // A replayed session is shown with symbols from the start. An export always has them.
    if (!present || request.path.starts_with("/api/export/")) symbols_.finish(*session);
    return session;
}

Answer Api::diff(const Session& after, const Request& request) {
    const std::string id(baseline_id(request));
    Answer failure;
    std::shared_ptr<Session> other;
    if (!id.empty() && id != after.id()) {
        const auto found = named_session(id, request, failure);
        if (!found) return failure;
        other = *found;
    }
    const Session& before = other ? *other : after;
    return request.path == "/api/diff" ? diff_answer(before, after, request)
                                       : diff_functions_answer(before, after, request);
}

Answer Api::session_view(const Request& request) {
    if (auto refused = check_group(request)) return *std::move(refused);
    Answer failure;
    const auto found = session_of(request, failure);
    if (!found) return failure;
    const Session& session = **found;
    const std::string_view path = request.path;
    if (path == "/api/flamegraph") return flamegraph_answer(session, request);
    if (is_diff(request)) return diff(session, request);
    if (path == "/api/callers") return callers_answer(session, request);
    if (path == "/api/functions") return functions_answer(session, request);
    if (path == "/api/scheduling") return scheduling_answer(session, request);
    if (path == "/api/thread-states") return thread_states_answer(session, request);
    if (path == "/api/thread-summary") return thread_summary_answer(session, request);
    if (path == "/api/thread-view") return thread_view_answer(session, request);
    if (path == "/api/timeline") return timeline_answer(session, request);
    if (path == "/api/metrics/current") return metrics_current_answer(session);
    if (path == "/api/metrics/history") return metrics_history_answer(session, request);
    if (path == "/api/modules")
        return request.method == "POST" ? set_module_file(**found, request) : modules_answer(session, request);
    if (path == "/api/warnings") return warnings_answer(session, request);
    if (path == "/api/counters") return counters_answer(session, request);
    if (path == "/api/disasm") return disasm_answer(session, request, symbolizer_);
    if (path == "/api/source") return source_answer(*found, request, sources_, debug_fetch_);
    if (path == "/api/source-files") return source_files_answer(session, request);
    if (path == "/api/export/flamegraph") return export_flamegraph_answer(session, request);
    if (path.ends_with(cut_suffix)) return trim_answer(catalog_, symbols_, **found, request);
    if (path.ends_with(sources_suffix)) return bundle_sources_answer(session, sources_);
    if (is_archive(request)) return archive_answer(**found, request, sources_, facts_.data_dir);
    if (request.parameter("format") == "html") return html_answer(session, request, facts_.page);
    return export_session_answer(session, request);
}

Answer Api::sessions(const Request& request) {
    std::uint64_t offset = 0, limit = 100;
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::uint64_t*>{"offset", &offset}, {"limit", &limit}}) {
        const std::string_view text = request.parameter(name);
        if (text.empty()) continue;
        const auto parsed = parse_integer(name, text);
        if (!parsed) return error_answer(parsed.error());
        *value = *parsed;
    }
    if (limit > 1000) return error_answer(400, "validation", "limit must be at most 1000");
    if (request.parameter("q").size() > max_search_bytes)
        return error_answer(400, "validation", fmt::format("q has at most {} bytes", max_search_bytes));
    const SessionPage page = catalog_.list().search({request.parameter("q"), offset, limit});
    JsonWriter json;
    json.object();
    json.list("sessions", page.sessions, [&](const SessionInfo& info) { write_session(json, info); });
    json.list("unreadable", catalog_.list().unreadable(), [&](const std::string& sentence) { json.text(sentence); });
    json.member("total", page.total);
    json.member("size_bytes", page.size_bytes);
    json.member("offset", offset);
    json.member("limit", limit);
    json.key("keep");
    json.object();
    json.member("count", facts_.keep.count);
    json.member("days", facts_.keep.days);
    json.member("size_bytes", facts_.keep.size_bytes);
    json.end_object();
    json.end_object();
    return json_answer(json.take());
}

Answer Api::relabel(const Request& request, std::string_view id) {
    const auto change = parse_label_change(request.body);
    if (!change) return error_answer(change.error());
    const auto info = catalog_.relabel(id, *change);
    if (!info) return error_answer(info.error());
    JsonWriter json;
    write_session(json, *info);
    return json_answer(json.take());
}

Answer Api::session_detail(const Request& request, std::string_view id) {
    if (request.method == "PATCH") return relabel(request, id);
    if (request.method == "DELETE") {
        if (auto removed = catalog_.remove(std::string(id)); !removed) return error_answer(removed.error());
        JsonWriter json;
        json.object();
        json.member("ok", true);
        json.member("session_id", id);
        json.end_object();
        return json_answer(json.take());
    }
    Answer failure;
    const auto found = session_of(request, failure);
    if (!found) return failure;
    return session_answer(**found);
}

Answer Api::session_answer(const Session& session) {
    const auto reports = session.symbols().reports();
    const auto fetches = session.symbols().fetches(), debug_fetches = session.symbols().debug_fetches();
    const SessionInfo info = session.info();
    JsonWriter json;
    session.read([&](const profile::Store& store) {
        write_session(json, info, [&](JsonWriter& out) {
            write_unwind_processes(out, info.unwinding);
            out.key("modules");
            out.array();
            const auto modules = store.modules();
            const std::vector<bool> nameless = profile::nameless_jit_modules(store);
            for (profile::ModuleId module_id = 1; module_id < modules.size(); ++module_id) {
                const auto report = reports.find(module_id);
                write_module(out, modules[module_id], report == reports.end() ? nullptr : &report->second,
                             fetch_of(fetches, module_id), fetch_of(debug_fetches, module_id),
                             nameless[module_id] ? &store : nullptr);
            }
            out.end_array();
        });
    });
    return json_answer(json.take());
}

Answer Api::status() {
    const auto agents = agents_.all();
    const auto connected =
        std::find_if(agents.begin(), agents.end(), [](const AgentPtr& agent) { return agent->connected; });
    std::uint64_t samples = 0, batches = 0, lost = 0, version = 0;
    std::vector<SessionInfo> live;
    for (const auto& session : catalog_.live()) {
        const SessionInfo& info = live.emplace_back(session->info());
        samples += info.samples;
        batches += info.batches;
        lost += info.lost;
        version += info.data_version;
    }
    JsonWriter json;
    json.object();
    json.member("status", "ok");
    json.member("version", FLAMEWIRE_VERSION);
    json.member("agent_connected", connected != agents.end());
    json.key("agent_addr");
    if (connected != agents.end())
        json.text((*connected)->address);
    else
        json.null();
    json.member("agents",
                std::count_if(agents.begin(), agents.end(), [](const AgentPtr& agent) { return agent->connected; }));
    json.list("live_sessions", live, [&](const SessionInfo& info) { json.text(info.id); });
    json.key("module_fetches");
    json.array();
    for (const auto& session : catalog_.live()) {
        for (const auto& [module, fetch] : session->symbols().fetches()) {
            json.object();
            json.member("session", session->id());
            json.member("module", fetch.module);
            json.key("fetch");
            write_fetch(json, fetch);
            json.end_object();
        }
    }
    json.end_array();
    json.list("sessions", live, [&](const SessionInfo& info) {
        json.object();
        json.member("id", info.id);
        write_unwinding(json, info.unwinding);
        write_unwind_processes(json, info.unwinding);
        json.end_object();
    });
    json.list("turned_away", agents_.turned_away ? agents_.turned_away() : std::vector<TurnedAway>{},
              [&](const TurnedAway& it) {
                  json.object();
                  json.member("address", it.address);
                  json.member("reason", it.reason);
                  json.member("time", iso_time(it.at_ns));
                  json.end_object();
              });
    json.member("total_samples", samples);
    json.member("chunk_count", batches);
    json.member("lost_samples", lost);
    json.member("data_version", version);
    json.member("uptime_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - facts_.started).count());
    json.member("agent_port", facts_.agent_port);
    json.member("agent_bind", facts_.agent_bind);
    json.member("http_url", facts_.http_url);
    json.member("target_command", facts_.target_command);
    json.member("insecure", facts_.insecure);
    json.member("token_required", facts_.token_required);
    json.member("data_dir", facts_.data_dir);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
