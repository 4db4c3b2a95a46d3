// Connects to a host, and retries until stop(). Each attempt resolves the name and tries every address. The pause
// between attempts doubles, with jitter.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "agent/link/resolve.h"

namespace flamewire::agent {

class Dialer {
public:
    using Connected = std::function<void(asio::ip::tcp::socket)>;

    // `connected` receives each socket. The next attempt waits until again() is called. Prints the first failure of a
    // series to stderr.
    Dialer(asio::io_context& io, std::string host, std::uint16_t port, std::uint32_t retry_ms, Connected connected);

    void dial();
    // The last connection ended. `useful`: the server had answered, so the pause is reset, and the connection's owner
    // has already reported the reason.
    void again(bool useful, const std::string& reason);
    // The server answered.
    void succeeded();
    void stop();

private:
    void try_next_endpoint();
    void failed(const std::string& reason);
    void pause();
    [[nodiscard]] std::uint32_t next_pause_ms();

    asio::io_context& io_;
    std::string host_;
    std::uint16_t port_;
    std::uint32_t first_pause_ms_, pause_ms_;
    Connected connected_;
    std::optional<Resolution> resolution_;
    Endpoints endpoints_;
    std::size_t next_endpoint_ = 0;
    std::string last_error_;
    asio::ip::tcp::socket socket_;
    asio::steady_timer timer_;
    std::minstd_rand random_;
    bool failure_logged_ = false, stopped_ = false;
};

}  // namespace flamewire::agent
