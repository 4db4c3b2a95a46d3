// From frames of one connection to sessions: runs on a worker, one call at a time a connection. Finds, loads or begins
// the session of a recording and hands it its batches in order.
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

// Who sends them.
struct Sender {
    std::string address;  // with the port, for messages
    std::string host;     // secure::host_of()
    std::string key;      // id of the pairing key that its recordings belong to; empty: not encrypted
};

struct Ingested {
    std::shared_ptr<Session> session;    // of the last batch
    std::optional<Session::Taken> last;  // of the last batch that was stored
    std::deque<ArrivedFrame> rest;       // not taken, because the disk refused: to be tried again
    std::string trouble;                 // why `rest` was not taken
    std::string garbage;                 // not empty: the connection is not to be trusted
    bool foreign = false;                // it is `garbage` because the recording is another one's
};

// Of Ingest: somebody says another one's recording. (What the file system refuses has an errno.)
inline bool is_foreign(const Error& error) { return error.code == ErrorCode::permission && error.errno_value == 0; }

class Ingest {
public:
    Ingest(Catalog& catalog, DiskSync& disk, Symbolization& symbols)
        : catalog_(catalog), disk_(disk), symbols_(symbols) {}

    // `session`: of the connection so far, may be null.
    Ingested take(std::deque<ArrivedFrame> frames, std::shared_ptr<Session> session, const Sender& sender);
    // The session that a hello names, ready to be continued, and the last batch of it that is durable. Null when it is
    // new. The hello is kept in a session that goes on. permission: it was begun with another pairing key.
    Result<std::shared_ptr<Session>> resume(const wire::RecordingId& recording, const ArrivedFrame& hello,
                                            const Sender& sender);

private:
    Result<std::shared_ptr<Session>> session_of(const wire::Frame& frame, const Sender& sender);
    bool may_begin(const Sender& sender);

    Catalog& catalog_;
    DiskSync& disk_;
    Symbolization& symbols_;
    std::mutex beginning_;  // a recording begins once, even when its agent connects twice at a time
    std::map<std::string, std::deque<std::chrono::steady_clock::time_point>> begun_;  // lately, by key or host
};

}  // namespace flamewire::server
