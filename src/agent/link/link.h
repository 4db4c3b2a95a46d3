// The connection to the server on its own thread (Asio): dials with backoff (1 -> 30 s, jitter) or listens, sends
// hello, waits for the acknowledgement that answers it, then streams the spool; receives commands. The sampler never
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
    std::string host;  // to dial; with listen: the address to bind
    std::uint16_t port = 9999;
    // The connection is encrypted by it; listening, it must be there.
    std::optional<secure::PairingKey> key;
    std::string key_file;   // it came from there, and is read anew: codes change without a restart
    bool insecure = false;  // without encryption and code also
    std::size_t spool_bytes = std::size_t{8} << 20;
    // Pause before dialling again; doubles with every failure up to 30 times this, with jitter.
    std::uint32_t retry_ms = 1000;
};

class Link {
public:
    struct Callbacks {
        // The hello to send; called on the link thread at each connect. The link itself fills in `recording`: what it
        // has in its spool.
        std::function<wire::Hello()> hello;
        // One command; called on the link thread. The reply (JSON object with the command's id) goes out through
        // reply().
        std::function<void(wire::Command)> command;
        // The server that answered has not got batches that another one acknowledged, so it cannot follow references
        // into them: close_batch() shall begin a new epoch from the next batch on. Until that arrives, rows of the old
        // epoch are stated as lost (other_server). Called on the link thread.
        std::function<void()> new_epoch_wanted;
    };

    // permission / busy when listening is impossible ("port 9999 on 127.0.0.1 is in use …"). Dialling never fails here:
    // it retries.
    static Result<std::unique_ptr<Link>> start(const LinkOptions& options, Callbacks callbacks);
    // Stops.
    virtual ~Link() = default;

    // From any thread. Dropped when there is no connection.
    virtual void reply(std::string json) = 0;
    // A frame of device health (JSON object), from any thread; never blocks. Health has no spool: without a connection
    // whose hello was answered, or when the link has no room for it, the frame is dropped and counted.
    virtual void send_metrics(std::string json) = 0;
    // A part of a module file (encode_module_chunk), from any thread. It goes out once nothing else waits: batches come
    // first. False while the one before has not gone; dropped when the connection is lost.
    virtual bool send_module_chunk(std::string payload) = 0;
    // A new recording begins; the batches pushed from now on are its. What is left of the one before is sent first;
    // recordings that wait behind others share the spool's bound, and the oldest go when it is reached.
    virtual void begin_recording(const wire::RecordingId& id) = 0;
    // Hands a batch over (moves from it); never blocks. False when the queue to the link thread is full: `batch` is as
    // it was, and the caller offers it again or merges its rows into the next one, and reports queue_full only for what
    // it must drop.
    virtual bool push(wire::Batch& batch, const wire::EventPeriods& periods) = 0;

    struct Status {
        bool connected = false;           // and the hello was answered
        std::string peer;                 // "127.0.0.1:9999"
        std::uint16_t listen_port = 0;    // where it listens, also when the port asked for was 0
        std::uint32_t queue_batches = 0;  // handed over, not yet in the spool
        std::uint64_t spool_bytes = 0;
        std::uint64_t acknowledged_seq = 0;  // of the newest recording
        std::uint64_t sent_bytes = 0;        // of all frames, since start
        std::uint64_t dropped_metrics = 0;   // frames
    };
    [[nodiscard]] virtual Status status() const = 0;

    // Waits until everything is acknowledged or `timeout_ms` is over; true when nothing is left.
    virtual bool flush(std::uint32_t timeout_ms) = 0;
    // Closes the connection and ends the thread; what is left in the spool is lost. Never waits for the network.
    virtual void stop() = 0;
};

}  // namespace flamewire::agent
