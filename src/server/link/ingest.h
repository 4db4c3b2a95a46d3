// Routes the frames of one connection to sessions. It runs on a worker, one call at a time per connection. It finds,
// loads or begins the session of a recording and passes the recording's batches to it in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/session/catalog.h"
#include "server/session/disk_sync.h"
#include "server/session/symbolization.h"
#include "wire/frame.h"

namespace flamewire::server {

struct ArrivedFrame {
    wire::Frame frame;
    std::int64_t arrival_ns = 0;
};

// The sender of the frames.
struct Sender {
    std::string address;  // with the port, for messages
    std::string host;     // secure::host_of()
    std::string key;      // id of the pairing key that owns its recordings; empty: not encrypted
};

struct Ingested {
    std::shared_ptr<Session> session;   // of the last batch
    std::optional<IngestResult> last;   // of the last batch that was stored
    std::deque<ArrivedFrame> unstored;  // frames not stored because the disk refused; retry them later
    std::string disk_error;             // why `unstored` was not stored
    std::string protocol_error;         // not empty: a protocol error; do not trust the connection
    bool foreign = false;               // `protocol_error` is set because the recording belongs to another sender
};

// For errors of Ingest: the recording belongs to another sender. (Errors of the file system have an errno.)
inline bool is_foreign(const Error& error) { return error.code == ErrorCode::permission && error.errno_value == 0; }

class Ingest {
public:
    Ingest(Catalog& catalog, DiskSync& disk, Symbolization& symbols)
        : catalog_(catalog), disk_(disk), symbols_(symbols) {}

    // `session`: the connection's session so far, may be null.
    Ingested store(std::deque<ArrivedFrame> frames, std::shared_ptr<Session> session, const Sender& sender);
    // Returns the session that a hello names, ready to be continued and synced to disk. Null if the recording is new. A
    // session that has not ended also stores the hello. permission: it began with another pairing key.
    Result<std::shared_ptr<Session>> resume(const wire::RecordingId& recording, const ArrivedFrame& hello,
                                            const Sender& sender);

private:
    Result<std::shared_ptr<Session>> session_of(const wire::Frame& frame, const Sender& sender);
    bool may_begin(const Sender& sender);

    Catalog& catalog_;
    DiskSync& disk_;
    Symbolization& symbols_;
    std::mutex begin_mutex_;  // a recording begins only once, even if its agent opens two connections at a time
    std::map<std::string, std::deque<std::chrono::steady_clock::time_point>> begun_;  // recent ones, by key or host
};

}  // namespace flamewire::server
