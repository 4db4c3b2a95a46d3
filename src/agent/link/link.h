// The connection to the server on its own thread (Asio): dials with backoff (1 -> 30 s, jitter) or listens, sends hello, waits for the
// acknowledgement that answers it, then streams the spool; receives commands. The sampler never blocks on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "wire/batch.h"
#include "wire/control.h"

namespace flamewire::agent {

struct LinkOptions {
    bool listen = false;
    std::string host;        // to dial; with listen: the address to bind
    std::uint16_t port = 9999;
    std::size_t spool_bytes = std::size_t{8} << 20;
};

class Link {
public:
    struct Callbacks {
        // The hello to send, JSON; called on the link thread at each connect.
        std::function<std::string()> hello;
        // One command; called on the link thread. The reply (JSON object with the command's id) goes out through reply().
        std::function<void(wire::Command)> command;
    };

    // permission / busy when listening is impossible ("port 9999 on 127.0.0.1 is in use …"). Dialling never fails here: it retries.
    static Result<std::unique_ptr<Link>> start(const LinkOptions& options, Callbacks callbacks);
    virtual ~Link() = default;

    // From any thread.
    virtual void reply(std::string json) = 0;
    // A new recording begins: the spool of the old one is flushed as far as the server takes it within its time.
    virtual void begin_recording(const wire::RecordingId& id) = 0;
    // Hands a batch over; never blocks. False when the queue to the link thread is full: the caller merges the batch's rows into the next one
    // and reports queue_full only for what it must drop.
    virtual bool push(wire::Batch batch, const wire::EventPeriods& periods) = 0;

    struct Status {
        bool connected = false;
        std::string peer;                  // "127.0.0.1:9999"
        std::uint32_t queue_batches = 0;
        std::uint64_t spool_bytes = 0;
        std::uint64_t acknowledged_seq = 0;
        std::uint64_t sent_bytes = 0;
    };
    [[nodiscard]] virtual Status status() const = 0;

    // Waits until everything is acknowledged or `timeout_ms` is over; true when nothing is left.
    virtual bool flush(std::uint32_t timeout_ms) = 0;
    virtual void stop() = 0;
};

}  // namespace flamewire::agent
