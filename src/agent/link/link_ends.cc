// Connects to a server or accepts connections, with the key that the pairing file contains at that time.
#include <algorithm>
#include <chrono>
#include <string_view>

#include "agent/link/tcp_link.h"
#include "agent/log.h"
#include "secure/this_machine.h"

namespace flamewire::agent {

using asio::ip::tcp;

namespace {

constexpr std::string_view no_key =
    "a pairing code is needed: give the code from the line that the server prints for agents (--pair "
    "or --pair-file), or start both with --insecure";
constexpr std::chrono::seconds key_check_interval{2};
// With listen: connections that have not answered the hello yet. The first ones are closed for new ones.
constexpr std::size_t max_candidates = 32;
// Time between two accepts. It limits the work of handshakes; connections wait in the kernel's queue, which is short, so
// that none waits for long. Nobody is refused by address: the right key may come from where wrong ones do.
constexpr std::chrono::milliseconds between_accepts{20};
constexpr int max_backlog = 16;

bool is_here(const tcp::socket& socket) {
    asio::error_code gone;
    const asio::ip::address address = socket.remote_endpoint(gone).address();
    return !gone && secure::on_this_machine(address);
}

}  // namespace

Result<bool> TcpLink::listen() {
    asio::error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.host.empty() ? "0.0.0.0" : options_.host, error);
    if (error) return fail(ErrorCode::invalid, options_.host + " is not an IP address to listen on");
    const tcp::endpoint endpoint(address, options_.port);
    const std::string where = "port " + std::to_string(options_.port) + " on " + address.to_string();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(max_backlog, error);
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::busy, where + " is in use: choose another with --port");
    if (error == asio::error::access_denied)
        return fail(ErrorCode::permission, "this user may not use " + where + ": choose one above 1023 with --port");
    if (error) return fail(ErrorCode::io, "cannot listen on " + where + ": " + error.message());
    status_.listen_port = acceptor_.local_endpoint(error).port();
    return true;
}

// If the agent listens, a new pairing code closes the connection that uses the old one.
void TcpLink::read_key() {
    if (options_.key_file.empty()) return;
    Result<secure::PairingKey> read = secure::read_pairing_file(options_.key_file);
    if (!read && !key_trouble_logged_) log("the pairing code was not changed: {}", read.error().message);
    key_trouble_logged_ = !read;
    if (!read || *read == options_.key) return;
    options_.key = *std::move(read);
    log("{} has another pairing code now", options_.key_file);
    if (options_.listen && current_ && current_->encrypted()) current_->fail_with("its pairing code was changed");
}

void TcpLink::check_key_later() {
    key_timer_.expires_after(key_check_interval);
    key_timer_.async_wait([this](asio::error_code cancelled) {
        if (cancelled) return;
        read_key();
        check_key_later();
    });
}

void TcpLink::accept() {
    acceptor_.async_accept([this](asio::error_code error, tcp::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (!error) accepted(std::move(socket));
        // An error: most likely out of descriptors.
        accept_pause_.expires_after(error ? std::chrono::seconds(1) : between_accepts);
        accept_pause_.async_wait([this](asio::error_code cancelled) {
            if (!cancelled) accept();
        });
    });
}

void TcpLink::accepted(tcp::socket socket) {
    if (candidates_.size() >= max_candidates) {
        // The first one that has not proved its key.
        auto closed = std::ranges::find_if(candidates_, [](const ConnectionPtr& one) { return !one->paired(); });
        if (closed == candidates_.end()) closed = candidates_.begin();
        (*closed)->close();
        candidates_.erase(closed);
    }
    // Every user of this machine can connect over loopback, so the key is required there, too.
    const auto plain = options_.insecure ? secure::Carrier::Plain::allowed : secure::Carrier::Plain::refused;
    const bool quick = options_.insecure && is_here(socket);
    adopt(std::move(socket),
          secure::Carrier::accepted(
              [this](std::string_view id) {
                  return options_.key && options_.key->id == id ? options_.key : std::nullopt;
              },
              plain),
          !quick);
}

void TcpLink::dialled(tcp::socket socket) {
    read_key();
    if (options_.key) {
        Result<secure::Carrier> carrier = secure::Carrier::dialled(*options_.key);
        if (!carrier) return dialer_.again(false, carrier.error().message);
        return adopt(std::move(socket), std::move(*carrier), true);
    }
    if (!options_.insecure) return dialer_.again(false, std::string(no_key));
    adopt(std::move(socket), secure::Carrier::plain(), true);
}

void TcpLink::adopt(tcp::socket socket, secure::Carrier carrier, bool patient) {
    const auto connection = std::make_shared<Connection>(std::move(socket), std::move(carrier), patient);
    candidates_.push_back(connection);
    const std::weak_ptr<Connection> weak = connection;
    const auto with = [weak](auto&& action) {
        if (const ConnectionPtr self = weak.lock()) action(self);
    };
    connection->start({
        .frame = [this,
                  with](const wire::Frame& frame) { with([&](const ConnectionPtr& self) { on_frame(self, frame); }); },
        .writable =
            [this] {
                pump();
                publish();
            },
        .closed = [this, with](
                      const std::string& reason) { with([&](const ConnectionPtr& self) { on_closed(self, reason); }); },
    });
    send_hello(connection);
}

}  // namespace flamewire::agent
