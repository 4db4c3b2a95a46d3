// One socket to an agent, encrypted or not. It reads and writes frames within limits. It handles only the framing, plus
// one check: the first frame must be a hello-sized reply. A peer of another protocol is disconnected before any of its
// bytes are stored. Lives on the io thread. Each event of the socket and of a handshake has a function.
#pragma once

#include <asio/ip/tcp.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "secure/carrier.h"
#include "wire/frame.h"

namespace flamewire::server {

class AgentConnection : public std::enable_shared_from_this<AgentConnection> {
public:
    struct Callbacks {
        std::function<void(wire::Frame)> frame;
        std::function<void(const std::string& reason)> closed;  // once, also after close()
    };

    // `unfinished`: bytes of incomplete frames, of all connections together. Shared by all connections.
    AgentConnection(asio::ip::tcp::socket socket, std::string address, secure::Carrier carrier,
                    std::shared_ptr<std::size_t> unfinished)
        : socket_(std::move(socket)),
          address_(std::move(address)),
          carrier_(std::move(carrier)),
          unfinished_(std::move(unfinished)) {}
    ~AgentConnection() { *unfinished_ -= own_unfinished_; }
    AgentConnection(const AgentConnection&) = delete;
    AgentConnection& operator=(const AgentConnection&) = delete;

    void start(Callbacks callbacks);
    // Queues a frame. If more than limits::outbox_bytes (4 MiB) are unread, the connection closes.
    void send(wire::Flag flag, std::string_view payload);
    void close(const std::string& reason);
    // Sends the reason, as far as the socket takes it at once, and closes.
    void refuse(const std::string& reason);
    // Call it before start(): the handshake waits for resume_handshake(). Other bytes do not wait.
    void delay_handshake() { handshake_delayed_ = true; }
    // delay_handshake() was called, and resume_handshake() was not.
    [[nodiscard]] bool handshake_delayed() const { return handshake_delayed_; }
    // A delayed handshake whose first bytes have arrived.
    [[nodiscard]] bool handshake_waits() const { return handshake_delayed_ && held_bytes_ > 0 && !closed_; }
    void resume_handshake();
    // Back-pressure: while paused, nothing is read, so the peer's writes stall.
    void pause_reading(bool pause);

    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] bool encrypted() const { return carrier_.kind() == secure::Carrier::Kind::encrypted; }
    // The pairing key that both ends have. Empty: not encrypted, or the handshake is not complete.
    [[nodiscard]] std::string key_id() const { return carrier_.key_id(); }
    // No bytes have arrived from the other end.
    [[nodiscard]] bool silent() const { return silent_; }
    // The connection ended because the two keys differ.
    [[nodiscard]] bool wrong_key() const { return wrong_key_; }
    // The handshake cost public-key work and did not complete.
    [[nodiscard]] bool handshake_failed() const { return carrier_.key_exchange_begun() && key_id().empty(); }

private:
    void read();
    void received(std::size_t count);
    std::string check_first_header();
    bool too_much_unfinished();
    void refuse_plain(const std::string& reason);
    void close_with(const Error& error);
    void write_before_close(const std::string& bytes);
    void queue(std::string bytes);
    void write();

    asio::ip::tcp::socket socket_;
    const std::string address_;
    secure::Carrier carrier_;
    Callbacks callbacks_;
    wire::FrameDecoder decoder_{wire::max_payload_from_agent};
    std::array<std::byte, 65536> buffer_{};
    std::string first_bytes_;
    bool header_checked_ = false, silent_ = true, handshake_delayed_ = false;
    std::size_t held_bytes_ = 0;  // bytes in buffer_ that wait for resume_handshake()
    bool paused_ = false, reading_ = false, closed_ = false, wrong_key_ = false;
    const std::shared_ptr<std::size_t> unfinished_;
    std::size_t own_unfinished_ = 0;
    std::deque<std::string> outbox_;
    std::size_t outbox_bytes_ = 0;
};

// Sets keepalive and user timeout, so that a board that lost power is detected within half a minute. Disables Nagle's
// algorithm.
void tune_socket(asio::ip::tcp::socket& socket);
// For example, "192.0.2.1:9999" or "[::1]:9999".
std::string address_text(const asio::ip::tcp::endpoint& endpoint);

}  // namespace flamewire::server
