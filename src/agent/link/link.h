// The connection to the server, on its own thread (Asio). Connects with backoff (1 -> 30 s, jitter) or listens, sends
// hello, waits for the acknowledgment that answers it, then streams the spool. Receives commands. The sampler never
// blocks on it. docs/wire.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "secure/pairing_key.h"
#include "wire/batch.h"
#include "wire/control.h"

namespace flamewire::agent {

struct LinkOptions {
    bool listen = false;
    std::string host;  // to connect to; with listen: the address to bind
    std::uint16_t port = 9999;
    // Encrypts the connection. Required with listen.
    std::optional<secure::PairingKey> key;
    std::string key_file;   // the file of `key`; read again so that codes can change without a restart
    bool insecure = false;  // also allow connections without encryption and pairing code
    std::size_t spool_bytes = std::size_t{8} << 20;
    // Pause before the next attempt to connect. Doubles with every failure, up to 30 times this, with jitter.
    std::uint32_t retry_ms = 1000;
};

class Link {
public:
    struct Callbacks {
        // Returns the hello to send. Called on the link thread for each connection. The link itself sets `recording`
        // from its spool.
        std::function<wire::Hello()> hello;
        // Handles one command, on the link thread. Send the reply (a JSON object with the command's id) with reply().
        std::function<void(wire::Command)> command;
        // The server lacks batches that another server acknowledged, so it cannot resolve references into them. Start a
        // new epoch with the next close_batch(). Until it arrives, rows of the old epoch are reported as lost
        // (other_server). Called on the link thread.
        std::function<void()> new_epoch_wanted;
    };

    // permission, busy: it cannot listen ("port 9999 on 127.0.0.1 is in use …"). Connecting never fails here, because
    // it is retried.
    static Result<std::unique_ptr<Link>> start(const LinkOptions& options, Callbacks callbacks);
    // Stops.
    virtual ~Link() = default;

    // Call it from any thread. Dropped without a connection.
    virtual void reply(std::string json) = 0;
    // Sends a frame of health data (JSON object). Call it from any thread; it never blocks. Health data has no spool:
    // the frame is dropped and counted if no connection's hello has been answered, or if the link has no room for it.
    virtual void send_metrics(std::string json) = 0;
    // Sends a part of a module file (encode_module_chunk). Call it from any thread. Batches have priority: the chunk is
    // sent when nothing else waits. False if the previous chunk is still waiting. Dropped if the connection is lost.
    virtual bool send_module_chunk(std::string payload) = 0;
    // Starts a new recording. Batches pushed from now on belong to it. Batches of earlier recordings are sent first.
    // All recordings share the spool's limit, and the oldest are dropped when it is reached.
    virtual void begin_recording(const wire::RecordingId& id) = 0;
    // Hands over a batch (moves from it). Never blocks. False if the queue to the link thread is full: `batch` is then
    // unchanged, and the caller pushes it again or merges its rows into the next one. It reports queue_full only for
    // what it must drop.
    virtual bool push(wire::Batch& batch, const wire::EventPeriods& periods) = 0;

    struct Status {
        bool connected = false;           // and the hello has been answered
        std::string peer;                 // "127.0.0.1:9999"
        std::uint16_t listen_port = 0;    // the actual port, also if the requested port was 0
        std::uint32_t queue_batches = 0;  // pushed, not yet in the spool
        std::uint64_t spool_bytes = 0;
        std::uint64_t acknowledged_seq = 0;  // of the newest recording
        std::uint64_t sent_bytes = 0;        // since start, in all connections
        std::uint64_t dropped_metrics = 0;   // frames
    };
    [[nodiscard]] virtual Status status() const = 0;

    // Waits until everything is acknowledged, but at most `timeout_ms`. True if nothing is left.
    virtual bool flush(std::uint32_t timeout_ms) = 0;
    // Closes the connection and ends the thread. The contents of the spool are lost. Never waits for the network.
    virtual void stop() = 0;
};

}  // namespace flamewire::agent
