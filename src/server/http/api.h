// Turns requests into answers. Defines every endpoint and how it is served: immediately, on a query worker, after a
// session is loaded, or after an agent replies. No sockets: http_server.h feeds it, and tests call it directly.
#pragma once

#include <rapidjson/document.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/counter_answers.h"
#include "server/http/diff_answers.h"
#include "server/http/disasm_answers.h"
#include "server/http/health_answers.h"
#include "server/http/html_answer.h"
#include "server/http/profile_answers.h"
#include "server/http/request.h"
#include "server/http/timeline_answers.h"
#include "server/link/agent_info.h"
#include "server/link/dial_info.h"
#include "server/link/key_ring.h"
#include "server/session/catalog.h"
#include "server/session/imports.h"
#include "server/session/prune.h"
#include "server/session/session_loader.h"
#include "server/session/symbolization.h"
#include "server/session/upload_store.h"
#include "server/source/browse.h"
#include "server/source/settings.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// Facts of this run for /api/status.
struct ServerFacts {
    std::string agent_bind;
    std::uint16_t agent_port = 0;
    std::string http_url, target_command, data_dir;
    bool insecure = false;        // accept agents without encryption and pairing code
    bool token_required = false;  // a browser must log in, and can log out
    PageBytes page;               // for exports
    std::vector<BrowseRoot> browse_roots;
    RetentionRules keep;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

class Api {
public:
    using Reply = std::function<void(Answer)>;

    // What the API needs of the agents. Tests provide their own.
    struct Agents {
        std::function<std::vector<AgentPtr>()> all;
        // Called on the io thread, like the endpoints of Way::agent.
        std::function<void(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)>)>
            connect;
        std::function<void(const std::string& agent, const std::string& command, const rapidjson::Value& args,
                           std::chrono::milliseconds timeout, Reply)>
            command;
        std::function<Result<bool>(const std::string& host, std::uint16_t port)> keep_dialing{};
        // Stores the pairing code of a listening agent, then calls back on the io thread.
        std::function<void(const std::string& host, std::uint16_t port, const secure::PairingKey&,
                           std::function<void(Result<bool>)>)>
            pair{};
        std::function<bool(const std::string& host, std::uint16_t port)> cancel_dial{};
        std::function<std::vector<DialInfo>()> dials{};
        std::function<std::vector<TurnedAway>()> turned_away{};
    };

    Api(Catalog& catalog, Symbolization& symbols, symbol::Symbolizer& symbolizer, SourceLookup& sources,
        DebugFetch* debug_fetch, Settings& settings, UploadStore& uploads, Imports& imports, KeyRing& keys,
        Agents agents, ServerFacts facts)
        : catalog_(catalog),
          symbols_(symbols),
          symbolizer_(symbolizer),
          sources_(sources),
          debug_fetch_(debug_fetch),
          settings_(settings),
          uploads_(uploads),
          imports_(imports),
          keys_(keys),
          agents_(std::move(agents)),
          facts_(std::move(facts)) {}

    enum class Route {
        quick,    // call answer() on a worker: it reads no files and no store
        worker,   // the same, but it may take longer
        session,  // the same, after satisfying needs()
        agent,    // call agent_request() on the io thread
        stream,   // the event stream, handled by http_server
        file,     // an embedded file
        refused,  // no such endpoint or method: answer() reports it
    };
    [[nodiscard]] static Route route_of(const Request& request);
    // Whether a successful answer to this request changes the list of sessions.
    [[nodiscard]] static bool changes_sessions(const Request& request);

    // Blocking if it reads files. Any worker thread.
    Answer answer(const Request& request);
    // Never blocks.
    void agent_request(const Request& request, Reply reply);
    // For Way::session: what must happen before answer(), or on which thread it must run.
    struct Needs {
        bool writes = false;  // answer() writes an archive or a session, which takes long: run it apart from the others
        bool background = false;              // answer() reads files for a long time: run it on the loading thread
        std::vector<std::string> sessions{};  // otherwise: open these first
        SessionLoader::Extent extent = SessionLoader::Extent::complete;
    };
    Needs needs(const Request& request);

    Answer status();
    static Answer session_answer(const Session& session);

private:
    // The session that a request refers to, loaded.
    Result<std::shared_ptr<Session>> session_of(const Request& request, Answer& several);
    std::shared_ptr<Session> in_memory(std::string_view id, const Request& request);
    Result<std::shared_ptr<Session>> named_session(const std::string& id, const Request& request, Answer& failure);
    Answer session_view(const Request& request);
    Answer diff(const Session& after, const Request& request);
    Answer sessions(const Request& request);
    Answer relabel(const Request& request, std::string_view id);
    Answer session_detail(const Request& request, std::string_view id);
    Answer config(const Request& request);
    Answer toolchain(const Request& request);
    Answer apply(SettingsValues values);
    // Uses a file on the server, or an uploaded one, for a module.
    Answer set_module_file(const Session& session, const Request& request);
    Answer config_answer(const SettingsValues& values, const std::vector<std::string>* notes);
    std::vector<std::string> notes_about(const SettingsValues& values);
    // The agent that a request refers to, or an error.
    AgentPtr agent_of(const Request& request, Answer& error);
    void prepare_dial(const Request& request, const Reply& reply,
                      const std::function<void(const std::string& host, std::uint16_t port)>& go_on);
    void connect(const Request& request, const Reply& reply);
    void begin_dialing(const Request& request, const Reply& reply);
    Answer dials(const Request& request);
    void command(const Request& request, Reply reply);
    void stop(const Request& request, Reply reply);

    Catalog& catalog_;
    Symbolization& symbols_;
    symbol::Symbolizer& symbolizer_;
    SourceLookup& sources_;
    DebugFetch* const debug_fetch_;  // nullptr: no debuginfod server may be used
    Settings& settings_;
    UploadStore& uploads_;
    Imports& imports_;
    KeyRing& keys_;
    const Agents agents_;
    const ServerFacts facts_;
};

}  // namespace flamewire::server
