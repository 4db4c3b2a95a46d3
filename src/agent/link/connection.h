// One TCP connection to a server, encrypted or not: frames in, bytes out. Use it only on the link thread. Recordings
// are handled in link.cc.
#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "secure/carrier.h"
#include "wire/batch.h"
#include "wire/frame.h"

namespace flamewire::agent {

class Connection : public std::enable_shared_from_this<Connection> {
public:
    struct Callbacks {
        // A complete frame was received.
        std::function<void(wire::Frame)> frame;
        // Everything is written, so there is room for more. May call write().
        std::function<void()> writable;
        // The connection ended; the argument is the reason, as text. No callback follows it, or close().
        std::function<void(std::string)> closed;
    };

    // A peer that connects and sends nothing is treated as a server that waits for an unencrypted hello. If `carrier`
    // refuses that, the peer receives a refusal with the reason. `patient`: allow time for a handshake over a network.
    Connection(asio::ip::tcp::socket socket, secure::Carrier carrier, bool patient);
    // Sets keepalive and no-delay and begins to read.
    void start(Callbacks callbacks);
    // Call it after sending a hello. Closes the connection unless answered() is called within `answer_ms`.
    void expect_answer(std::uint32_t answer_ms);
    // Call it when the answer arrives.
    void answered() { deadline_.cancel(); }

    // Queues the bytes of complete frames. Frequent calls are cheap. More than max_waiting_bytes in the queue close the
    // connection.
    void write(std::string_view bytes);
    // Queued bytes, without those that are being written.
    [[nodiscard]] std::size_t waiting_bytes() const { return waiting_.size(); }
    [[nodiscard]] bool writing() const { return writing_; }
    void close();
    // Closes and reports why.
    void fail_with(const std::string& reason);

    [[nodiscard]] const std::string& peer() const { return peer_; }
    [[nodiscard]] bool encrypted() const { return carrier_.kind() == secure::Carrier::Kind::encrypted; }
    // It ended because the keys differed.
    [[nodiscard]] bool wrong_key() const { return wrong_key_; }
    // Both ends have the same key.
    [[nodiscard]] bool paired() const { return !carrier_.key_id().empty(); }
    [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_; }

    // State that the link stores with this connection.
    std::optional<wire::RecordingId> recording;  // named in the last hello, or started on this connection
    bool ready = false;                          // the hello was answered

private:
    void read();
    [[nodiscard]] std::string why_ended(const asio::error_code& error) const;
    void on_read(std::size_t size);
    void write_as_it_is(std::string_view bytes);
    void write_waiting();
    void wait_for_first_byte();
    void refuse_plain();
    void fail_carrying(const Error& error);
    void write_last(const std::string& bytes);

    asio::ip::tcp::socket socket_;
    secure::Carrier carrier_;
    const bool patient_;
    asio::steady_timer deadline_, first_byte_;
    Callbacks callbacks_;
    wire::FrameDecoder decoder_{wire::max_payload_to_agent};
    std::array<std::byte, 4096> incoming_;
    std::string waiting_, under_way_;  // swapped, so that both keep their capacity
    bool writing_ = false, open_ = true, wrong_key_ = false, received_ = false;
    std::string peer_;
    std::uint64_t sent_bytes_ = 0;
};

}  // namespace flamewire::agent
