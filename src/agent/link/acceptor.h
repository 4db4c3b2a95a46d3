// Accepts connections of servers, not too many at a time. Runs on the link thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace flamewire::agent {

class Acceptor {
public:
    Acceptor(asio::io_context& io, std::function<void(asio::ip::tcp::socket)> on_socket)
        : acceptor_(io), pause_(io), on_socket_(std::move(on_socket)) {}

    // Returns the port. `address` is empty for all addresses; `port` 0 is any free one.
    Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);
    // Accepts connections until stop().
    void accept();
    void stop();

private:
    asio::ip::tcp::acceptor acceptor_;
    asio::steady_timer pause_;
    std::function<void(asio::ip::tcp::socket)> on_socket_;
};

}  // namespace flamewire::agent
