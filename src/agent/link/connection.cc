#include "agent/link/connection.h"

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include <chrono>
#include <netinet/tcp.h>

namespace flamewire::agent {
namespace {

// Far more than replies and one burst of batches. A server that sends requests but never reads is disconnected.
constexpr std::size_t max_waiting_bytes = std::size_t{8} << 20;

// Buffer capacity that a connection keeps for the next frames. More, after a long reply, is freed.
constexpr std::size_t max_kept_bytes = std::size_t{256} << 10;

// A server that connects without encryption waits for the hello, so silence identifies it. The timeout is shorter if no
// handshake crosses a slow network.
constexpr std::chrono::milliseconds silence_here{300}, silence_over_network{3000};

// These options detect a server that lost power after 60 + 6 x 10 seconds.
void set_options(asio::ip::tcp::socket& socket) {
    using Option = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
    asio::error_code ignored;  // a socket works without these options, too
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    socket.set_option(Option(60), ignored);
    socket.set_option(asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>(10), ignored);
    socket.set_option(asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>(6), ignored);
}

std::string describe_peer(const asio::ip::tcp::socket& socket) {
    asio::error_code error;
    const asio::ip::tcp::endpoint endpoint = socket.remote_endpoint(error);
    if (error) return "a server that has gone";
    const std::string address = endpoint.address().to_string();
    const std::string port = std::to_string(endpoint.port());
    return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, secure::Carrier carrier, bool patient)
    : socket_(std::move(socket)),
      carrier_(std::move(carrier)),
      patient_(patient),
      deadline_(socket_.get_executor()),
      first_byte_(socket_.get_executor()),
      peer_(describe_peer(socket_)) {}

void Connection::start(Callbacks callbacks) {
    callbacks_ = std::move(callbacks);
    set_options(socket_);
    write_as_it_is(carrier_.take_outgoing());
    if (carrier_.kind() == secure::Carrier::Kind::undecided) wait_for_first_byte();
    read();
}

void Connection::wait_for_first_byte() {
    first_byte_.expires_after(patient_ ? silence_over_network : silence_here);
    first_byte_.async_wait([self = shared_from_this()](asio::error_code error) {
        if (error || !self->open_ || self->carrier_.kind() != secure::Carrier::Kind::undecided) return;
        if (!self->carrier_.settle_plain()) return self->refuse_plain();
        self->write_as_it_is(self->carrier_.take_outgoing());
    });
}

void Connection::refuse_plain() {
    write_last(wire::encode_frame(wire::Flag::refusal,
                                  "this agent accepts only encrypted connections: give the server its pairing code, "
                                  "which it printed when it started, or start it with --insecure"));
    fail_with("it sent data without encryption, which only --insecure allows");
}

// Writes what the socket accepts without blocking, before the connection is closed.
void Connection::write_last(const std::string& bytes) {
    asio::error_code ignored;
    socket_.non_blocking(true, ignored);
    if (!bytes.empty() && !writing_) socket_.write_some(asio::buffer(bytes), ignored);
}

void Connection::fail_carrying(const Error& error) {
    wrong_key_ = error.code == ErrorCode::permission;
    write_last(carrier_.take_outgoing());  // an alert, so that the peer learns the reason
    fail_with(error.message);
}

void Connection::expect_answer(std::uint32_t answer_ms) {
    deadline_.expires_after(std::chrono::milliseconds(answer_ms));
    deadline_.async_wait([self = shared_from_this()](asio::error_code error) {
        if (!error && !self->ready) self->fail_with("it did not answer the hello");
    });
}

void Connection::read() {
    socket_.async_read_some(asio::buffer(incoming_),
                            [self = shared_from_this()](asio::error_code error, std::size_t size) {
                                if (!self->open_) return;
                                if (error) return self->fail_with(self->why_ended(error));
                                self->received_ = true;
                                self->on_read(size);
                            });
}

std::string Connection::why_ended(const asio::error_code& error) const {
    if (!received_ && (error == asio::error::eof || error == asio::error::connection_reset))
        return "it closed the connection unexpectedly: it may not be flamewire-server (its page has another port), "
               "or it is too busy";
    return error == asio::error::eof ? "it closed the connection" : error.message();
}

void Connection::on_read(std::size_t size) {
    const Result<Bytes> plain = carrier_.receive(std::span(incoming_).first(size));
    if (!plain)
        return carrier_.kind() == secure::Carrier::Kind::refused ? refuse_plain() : fail_carrying(plain.error());
    write_as_it_is(carrier_.take_outgoing());
    decoder_.feed(*plain);
    while (open_) {
        Result<std::optional<wire::Frame>> frame = decoder_.next();
        if (!frame) return fail_with("it sent something that is not a frame (" + frame.error().message + ")");
        if (!*frame) break;
        callbacks_.frame(std::move(**frame));
    }
    if (open_) read();
}

void Connection::write(std::string_view bytes) {
    if (!open_) return;
    const Result<std::string> carried = carrier_.carry(std::string(bytes));
    if (!carried) return fail_carrying(carried.error());
    write_as_it_is(*carried);
}

void Connection::write_as_it_is(std::string_view bytes) {
    if (!open_ || bytes.empty()) return;
    if (waiting_.size() + bytes.size() > max_waiting_bytes) return fail_with("it does not read what it requested");
    waiting_ += bytes;
    if (!writing_) write_waiting();
}

void Connection::write_waiting() {
    std::swap(waiting_, under_way_);
    waiting_.clear();
    writing_ = true;
    asio::async_write(socket_, asio::buffer(under_way_),
                      [self = shared_from_this()](asio::error_code error, std::size_t size) {
                          self->sent_bytes_ += size;
                          self->writing_ = false;
                          if (self->under_way_.capacity() > max_kept_bytes) self->under_way_ = {};
                          if (!self->open_) return;
                          if (error) return self->fail_with(error.message());
                          if (!self->waiting_.empty()) return self->write_waiting();
                          self->callbacks_.writable();
                      });
}

void Connection::fail_with(const std::string& reason) {
    if (!open_) return;
    const auto closed = callbacks_.closed;
    close();
    if (closed) closed(reason);
}

void Connection::close() {
    if (!open_) return;
    open_ = false;
    deadline_.cancel();
    first_byte_.cancel();
    carrier_.end();
    write_last(carrier_.take_outgoing());
    asio::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
}

}  // namespace flamewire::agent
