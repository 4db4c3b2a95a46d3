// From frames of one connection to sessions: runs on a worker, one call at a time a connection. Finds, loads or begins
// the session of a recording and hands it its batches in order.
#pragma once

#include <cstdint>
#include <deque>
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

struct Ingested {
    std::shared_ptr<Session> session;    // of the last batch
    std::optional<Session::Taken> last;  // of the last batch that was stored
    std::deque<ArrivedFrame> rest;       // not taken, because the disk refused: to be tried again
    std::string trouble;                 // why `rest` was not taken
    std::string garbage;                 // not empty: the connection is not to be trusted
};

class Ingest {
public:
    Ingest(Catalog& catalog, DiskSync& disk, Symbolization& symbols)
        : catalog_(catalog), disk_(disk), symbols_(symbols) {}

    // `session`: of the connection so far, may be null. `address`: the agent's, for the session's metadata.
    Ingested take(std::deque<ArrivedFrame> frames, std::shared_ptr<Session> session, const std::string& address);
    // The session that a hello names, ready to be continued, and the last batch of it that is durable. Null when it is
    // new. The hello is kept in a session that goes on.
    Result<std::shared_ptr<Session>> resume(const wire::RecordingId& recording, const ArrivedFrame& hello);

private:
    Result<std::shared_ptr<Session>> session_of(const wire::Frame& frame);

    Catalog& catalog_;
    DiskSync& disk_;
    Symbolization& symbols_;
    std::mutex beginning_;  // a recording begins once, even when its agent connects twice at a time
};

}  // namespace flamewire::server
