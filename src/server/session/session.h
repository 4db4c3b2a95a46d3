// One session, live or from disk, made of its parts: the store in memory, the status that it reports, the stream on
// disk and the symbols. Thread-safe, as each part is; each part's header states what its mutex protects. Frames are
// ingested one at a time, queries run in parallel, and resolving symbols blocks neither of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "server/session/health_history.h"
#include "server/session/session_info.h"
#include "server/session/session_status.h"
#include "server/session/session_store.h"
#include "server/session/session_stream.h"
#include "server/session/session_symbols.h"

namespace flamewire::server {

// Limits of one session.
struct SessionLimits {
    profile::StoreLimits store;                            // for memory
    std::uint64_t stream_bytes = std::uint64_t{32} << 30;  // for its file, while it is recorded
};

class Session {
public:
    // Creates a session that is written to `stream_path`, whose directory must exist. `owner_key`: id of the agent's
    // pairing key. It is stored in the stream, and only this key may continue the session. Empty: any accepted agent
    // may.
    static Result<std::shared_ptr<Session>> create(std::string id, const std::string& stream_path,
                                                   const wire::RecordingId& recording, const SessionLimits& limits,
                                                   const std::string& owner_key = {});
    // Loads a session from disk. A notice reports its unreadable parts; invalid: nothing is readable.
    // Calls `on_partial` periodically, the first time when there is something to show. From then on the session can be
    // queried, but the caller must not let it be continued before this returns.
    using OnPartial = std::function<void(const std::shared_ptr<Session>&)>;
    static Result<std::shared_ptr<Session>> load(std::string id, const std::string& stream_path,
                                                 const SessionLimits& limits, const OnPartial& on_partial = {});

    // Its parts. Callers use them directly, except for what follows.
    [[nodiscard]] SessionStatus& status() { return status_; }
    [[nodiscard]] const SessionStatus& status() const { return status_; }
    [[nodiscard]] SessionStream& stream() { return stream_; }
    [[nodiscard]] const SessionStream& stream() const { return stream_; }
    [[nodiscard]] SessionSymbols& symbols() { return symbols_; }
    [[nodiscard]] const SessionSymbols& symbols() const { return symbols_; }
    // Health of its machine during the recording.
    [[nodiscard]] const HealthHistory& health() const { return health_; }

    // See SessionStore::read().
    template <class Query>
    auto read(Query query) const {
        return store_.read(std::move(query));
    }
    // A snapshot.
    [[nodiscard]] SessionInfo info() const { return status_.info(); }
    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const std::string& stream_path() const { return stream_.path(); }
    [[nodiscard]] const wire::RecordingId& recording() const { return stream_.recording(); }
    // Id of the pairing key of the agent that began it. Empty: not encrypted, or not from an agent.
    [[nodiscard]] const std::string& owner_key() const { return stream_.owner_key(); }

    // See SessionStream.
    Result<IngestResult> ingest(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
        return stream_.ingest(flag, payload, arrival_ns);
    }
    Result<bool> append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
        return stream_.append(flag, payload, arrival_ns);
    }
    Result<std::uint64_t> sync() { return stream_.sync(); }

    // For the owner: at most one symbol job is queued.
    std::atomic<bool> symbols_queued{false};
    std::atomic<std::int64_t> last_used_ns{0};

private:
    Session(std::string id, const std::string& stream_path, const SessionLimits& limits);

    const std::string id_;
    SessionStore store_;
    HealthHistory health_;
    SessionStatus status_;
    SessionStream stream_;
    SessionSymbols symbols_;
};

}  // namespace flamewire::server
