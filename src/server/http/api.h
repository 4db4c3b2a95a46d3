// Turns requests into answers. The table in api.cc defines every endpoint and how it is served: immediately, on a query
// worker, after a session is loaded, or after an agent replies. No sockets: http_server.h feeds it, and tests call it
// directly.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/agent_answers.h"
#include "server/http/request.h"
#include "server/http/status_answer.h"
#include "server/link/key_ring.h"
#include "server/session/catalog.h"
#include "server/session/debug_fetch.h"
#include "server/session/imports.h"
#include "server/session/session_loader.h"
#include "server/session/symbolization.h"
#include "server/session/upload_store.h"
#include "server/source/settings.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// What answers are made of.
struct ApiParts {
    Catalog& catalog;
    Symbolization& symbols;
    symbol::Symbolizer& symbolizer;
    SourceLookup& sources;
    DebugFetch* debug_fetch;  // nullptr: no debuginfod server may be used
    Settings& settings;
    UploadStore& uploads;
    Imports& imports;
    KeyRing& keys;
    AgentCalls agents;
    ServerFacts facts;
};

class Api {
public:
    explicit Api(ApiParts parts) : parts_(std::move(parts)) {}

    enum class Route {
        quick,    // call answer() on a worker: it reads no files and no store
        worker,   // the same, but it may take longer
        writing,  // the same, apart from the others: it writes an archive or a session, which takes long
        session,  // the same as `worker`, after satisfying needs()
        agent,    // call agent_request() on the io thread
        stream,   // the event stream, handled by http_server
        file,     // an embedded file
        refused,  // no such endpoint or method: answer() reports it
    };
    [[nodiscard]] static Route route_of(const Request& request);
    // Whether a successful answer to this request changes the list of sessions.
    [[nodiscard]] static bool changes_sessions(const Request& request);

    // Blocking if it reads files. Any worker thread.
    Answer answer(const Request& request) const;
    // Never blocks.
    void agent_request(const Request& request, const Reply& reply) const;
    // For Route::session: what must happen before answer(), or on which thread it must run.
    struct Needs {
        bool background = false;              // answer() reads files for a long time: run it on the loading thread
        std::vector<std::string> sessions{};  // otherwise: open these first
        SessionLoader::Extent extent = SessionLoader::Extent::complete;
    };
    [[nodiscard]] Needs needs(const Request& request) const;

    [[nodiscard]] Answer status() const { return status_answer(parts_.facts, parts_.catalog, parts_.agents); }

private:
    using FoundSession = std::expected<std::shared_ptr<Session>, Answer>;
    // The session that a request refers to by `id`, loaded. Empty: the default session.
    [[nodiscard]] FoundSession find_session(std::string_view id, const Request& request) const;
    [[nodiscard]] std::shared_ptr<Session> in_memory(std::string_view id, const Request& request) const;

    const ApiParts parts_;
};

}  // namespace flamewire::server
