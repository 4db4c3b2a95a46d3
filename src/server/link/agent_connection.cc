#include "server/link/agent_connection.h"

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <netinet/tcp.h>
#include <span>
#include <utility>

#include "server/limits.h"

namespace flamewire::server {
void tune_socket(asio::ip::tcp::socket& socket) {
    const int fd = socket.native_handle();
    const auto set = [fd](int level, int option, int value) {
        (void)::setsockopt(fd, level, option, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

std::string address_text(const asio::ip::tcp::endpoint& endpoint) {
    const std::string host = endpoint.address().to_string();
    return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                      : fmt::format("{}:{}", host, endpoint.port());
}

void AgentConnection::start(Callbacks callbacks) {
    callbacks_ = std::move(callbacks);
    tune_socket(socket_);
    queue(carrier_.take_outgoing());
    read();
}

void AgentConnection::read() {
    if (closed_ || paused_ || reading_) return;
    reading_ = true;
    socket_.async_read_some(asio::buffer(buffer_.data(), buffer_.size()),
                            [self = shared_from_this()](const std::error_code& error, std::size_t count) {
                                self->reading_ = false;
                                self->silent_ = self->silent_ && count == 0;
                                if (error)
                                    self->close(error == asio::error::eof ? "closed by the agent" : error.message());
                                else
                                    self->received(count);
                            });
}

// Checks the first header before the decoder does: a hello is a reply of moderate size. Returns the problem, or "".
std::string AgentConnection::check_first_header() {
    if (first_bytes_.size() < wire::header_bytes) return {};
    const auto bytes = std::as_bytes(std::span(first_bytes_)).first<wire::header_bytes>();
    const wire::FrameHeader header = wire::decode_header(bytes);
    header_checked_ = true;
    if (header.flag != wire::Flag::reply && header.flag != wire::Flag::refusal)
        return "does not speak this protocol: its first frame is not a hello";
    if (header.payload_bytes > limits::hello_bytes)
        return fmt::format("its hello has {} bytes, more than {}", header.payload_bytes, limits::hello_bytes);
    return {};
}

void AgentConnection::resume_handshake() {
    handshake_delayed_ = false;
    if (const std::size_t count = std::exchange(held_bytes_, 0); count > 0 && !closed_) received(count);
}

void AgentConnection::received(std::size_t count) {
    if (handshake_delayed_ && buffer_.front() == secure::first_tls_byte) {
        held_bytes_ = count;
        return;
    }
    const Result<Bytes> plain = carrier_.receive(std::span(buffer_).first(count));
    if (!plain)
        return carrier_.kind() == secure::Carrier::Kind::refused ? refuse_plain(plain.error().message)
                                                                 : close_with(plain.error());
    queue(carrier_.take_outgoing());
    const Bytes bytes = *plain;
    if (!header_checked_) {
        const std::string_view text = as_text(bytes);
        first_bytes_ += text.substr(0, wire::header_bytes - std::min(first_bytes_.size(), wire::header_bytes));
        if (const std::string wrong = check_first_header(); !wrong.empty()) return close(wrong);
    }
    decoder_.feed(bytes);
    while (!closed_) {
        auto frame = decoder_.next();
        if (!frame) return close(frame.error().message);
        if (!*frame) break;
        callbacks_.frame(std::move(**frame));
    }
    if (too_much_unfinished()) {
        limit_reached(Limit::unfinished_bytes);
        return close("its frame does not end, and too many others have begun one");
    }
    read();
}

bool AgentConnection::too_much_unfinished() {
    *unfinished_ += decoder_.held() - own_unfinished_;
    own_unfinished_ = decoder_.held();
    return *unfinished_ > limits::unfinished_bytes && own_unfinished_ > limits::unfinished_bytes_of_one;
}

void AgentConnection::pause_reading(bool pause) {
    paused_ = pause;
    if (!pause) read();
}

void AgentConnection::send(wire::Flag flag, std::string_view payload) {
    if (closed_) return;
    Result<std::string> bytes = carrier_.carry(wire::encode_frame(flag, payload));
    if (!bytes) return close_with(bytes.error());
    queue(std::move(*bytes));
}

void AgentConnection::queue(std::string bytes) {
    if (closed_ || bytes.empty()) return;
    outbox_.push_back(std::move(bytes));
    outbox_bytes_ += outbox_.back().size();
    if (outbox_bytes_ > limits::outbox_bytes) {
        limit_reached(Limit::outbox_bytes);
        return close("does not read what it is sent");
    }
    if (outbox_.size() == 1) write();
}

void AgentConnection::refuse(const std::string& reason) {
    if (closed_) return;
    if (const auto bytes = carrier_.carry(wire::encode_frame(wire::Flag::refusal, reason))) write_before_close(*bytes);
    close(reason);
}

void AgentConnection::refuse_plain(const std::string& reason) {
    write_before_close(wire::encode_frame(
        wire::Flag::refusal,
        "this server accepts only encrypted connections: start the agent with the line that the server's "
        "page shows (--pair), or both with --insecure"));
    close(reason);
}

void AgentConnection::close_with(const Error& error) {
    wrong_key_ = error.code == ErrorCode::permission;
    close(error.message);
}

// Sends bytes before the connection closes, as far as the socket takes them at once.
void AgentConnection::write_before_close(const std::string& bytes) {
    std::error_code ignored;
    socket_.non_blocking(true, ignored);
    if (!bytes.empty() && outbox_.empty()) socket_.write_some(asio::buffer(bytes), ignored);
}

void AgentConnection::write() {
    asio::async_write(socket_, asio::buffer(outbox_.front()),
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                          if (self->closed_) return;
                          if (error) return self->close(error.message());
                          self->outbox_bytes_ -= self->outbox_.front().size();
                          self->outbox_.pop_front();
                          if (!self->outbox_.empty()) self->write();
                      });
}

void AgentConnection::close(const std::string& reason) {
    if (closed_) return;
    closed_ = true;
    carrier_.end();
    write_before_close(carrier_.take_outgoing());  // a close notice or an alert, so that the other end can report it
    std::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    // Post the callback: the caller may be in its own loop over frames or peers.
    asio::post(socket_.get_executor(), [self = shared_from_this(), reason] {
        auto callbacks = std::move(self->callbacks_);
        self->callbacks_ = {};
        if (callbacks.closed) callbacks.closed(reason);
    });
}

}  // namespace flamewire::server
