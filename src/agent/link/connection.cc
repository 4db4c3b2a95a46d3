#include "agent/link/connection.h"

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include <chrono>
#include <netinet/tcp.h>

namespace flamewire::agent {
namespace {

// Replies and one burst of batches are far below; a server that reads nothing while it asks and asks is not served.
constexpr std::size_t max_waiting_bytes = std::size_t{8} << 20;

// Memory that a connection keeps for the next frames; a long reply gives its own back.
constexpr std::size_t max_kept_bytes = std::size_t{256} << 10;

// A server that lost power is noticed after 60 + 6 x 10 seconds.
void set_options(asio::ip::tcp::socket& socket) {
    using Option = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
    asio::error_code ignored;  // a socket without them works too
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

Connection::Connection(asio::ip::tcp::socket socket)
    : socket_(std::move(socket)), deadline_(socket_.get_executor()), peer_(describe_peer(socket_)) {}

void Connection::start(Callbacks callbacks) {
    callbacks_ = std::move(callbacks);
    set_options(socket_);
    read();
}

void Connection::expect_answer(std::uint32_t answer_ms) {
    deadline_.expires_after(std::chrono::milliseconds(answer_ms));
    deadline_.async_wait([self = shared_from_this()](asio::error_code error) {
        if (!error && !self->ready) self->fail_with("it did not answer the hello");
    });
}

void Connection::read() {
    socket_.async_read_some(
        asio::buffer(incoming_), [self = shared_from_this()](asio::error_code error, std::size_t size) {
            if (!self->open_) return;
            if (error) return self->fail_with(error == asio::error::eof ? "it closed the connection" : error.message());
            self->on_read(size);
        });
}

void Connection::on_read(std::size_t size) {
    decoder_.feed(std::span(incoming_).first(size));
    while (open_) {
        Result<std::optional<wire::Frame>> frame = decoder_.next();
        if (!frame) return fail_with("it sent what is no frame (" + frame.error().message + ")");
        if (!*frame) break;
        callbacks_.frame(std::move(**frame));
    }
    if (open_) read();
}

void Connection::write(std::string_view bytes) {
    if (!open_) return;
    if (waiting_.size() + bytes.size() > max_waiting_bytes) return fail_with("it does not read what it asked for");
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
    asio::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
}

}  // namespace flamewire::agent
