#include "server/link/agent_listener.h"

#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include <memory>

#include "server/link/agent_connection.h"

namespace flamewire::server {

Result<std::uint16_t> AgentListener::listen(const std::string& bind, std::uint16_t port) {
    std::error_code error;
    const auto address = asio::ip::make_address(bind, error);
    if (error) return fail(ErrorCode::invalid, fmt::format("--bind {} is not an IP address", bind));
    const asio::ip::tcp::endpoint endpoint(address, port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::busy,
                    fmt::format("port {} on {} is in use: stop the program that has it, or choose another "
                                "with --port",
                                port, bind));
    if (error) return fail_errno(fmt::format("cannot listen for agents on {}", address_text(endpoint)), error.value());
    const std::uint16_t chosen = acceptor_.local_endpoint(error).port();
    accept();
    return chosen;
}

void AgentListener::accept() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
        if (!acceptor_.is_open() || error == asio::error::operation_aborted) return;
        if (error) {
            // Out of descriptors or memory: pause before the next accept, do not spin.
            log_.warn(fmt::format("cannot accept an agent: {}", error.message()));
            auto pause = std::make_shared<asio::steady_timer>(acceptor_.get_executor(), std::chrono::seconds(1));
            pause->async_wait([this, pause](const std::error_code&) { accept(); });
            return;
        }
        accepted_(std::move(socket));
        accept();
    });
}

void AgentListener::stop() {
    std::error_code ignored;
    acceptor_.close(ignored);
}

}  // namespace flamewire::server
