#include "agent/link/acceptor.h"

#include <chrono>
#include <utility>

namespace flamewire::agent {

using asio::ip::tcp;

namespace {

// Time between two accepts. It limits the work of handshakes; connections wait in the kernel's queue, which is short, so
// that none waits for long. Nobody is refused by address: the right key may come from where wrong ones do.
constexpr std::chrono::milliseconds between_accepts{20};
constexpr int max_backlog = 16;

std::unexpected<Error> listen_error(const tcp::endpoint& endpoint, const asio::error_code& error) {
    const std::string where = "port " + std::to_string(endpoint.port()) + " on " + endpoint.address().to_string();
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::busy, where + " is in use: choose another with --port");
    if (error == asio::error::access_denied)
        return fail(ErrorCode::permission, "this user may not use " + where + ": choose one above 1023 with --port");
    return fail(ErrorCode::io, "cannot listen on " + where + ": " + error.message());
}

}  // namespace

Result<std::uint16_t> Acceptor::listen(const std::string& address, std::uint16_t port) {
    asio::error_code error;
    const asio::ip::address local = asio::ip::make_address(address.empty() ? "0.0.0.0" : address, error);
    if (error) return fail(ErrorCode::invalid, address + " is not an IP address to listen on");
    const tcp::endpoint endpoint(local, port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(max_backlog, error);
    if (error) return listen_error(endpoint, error);
    return acceptor_.local_endpoint(error).port();
}

void Acceptor::accept() {
    acceptor_.async_accept([this](asio::error_code error, tcp::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (!error) on_socket_(std::move(socket));
        // An error: most likely out of descriptors.
        pause_.expires_after(error ? std::chrono::seconds(1) : between_accepts);
        pause_.async_wait([this](asio::error_code cancelled) {
            if (!cancelled) accept();
        });
    });
}

void Acceptor::stop() {
    asio::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
}

}  // namespace flamewire::agent
