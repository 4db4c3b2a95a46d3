// Listens for agents that dial, and accepts their sockets. Everything runs on the io thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "server/rate_limited_log.h"

namespace flamewire::server {

class AgentListener {
public:
    using Accepted = std::function<void(asio::ip::tcp::socket)>;

    AgentListener(asio::io_context& io, RateLimitedLog& log, Accepted accepted)
        : acceptor_(io), log_(log), accepted_(std::move(accepted)) {}

    // Starts accepting and returns the port (chosen by the kernel for 0). busy or permission: one sentence with the
    // remedy.
    Result<std::uint16_t> listen(const std::string& bind, std::uint16_t port);
    void stop();

private:
    void accept();

    asio::ip::tcp::acceptor acceptor_;
    RateLimitedLog& log_;
    const Accepted accepted_;
};

}  // namespace flamewire::server
