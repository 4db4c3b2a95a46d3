// A listening agent's address that the server dials, and the state of its attempts. Belongs to AgentDialer.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "secure/pairing_key.h"
#include "server/link/agent_connection.h"
#include "server/link/agent_info.h"

namespace flamewire::server {

struct Dial {
    static constexpr std::chrono::milliseconds first_backoff{1000};

    Dial(asio::io_context& io, std::string agent_host, std::uint16_t agent_port)
        : host(std::move(agent_host)), port(agent_port), timer(io) {}
    [[nodiscard]] std::string address() const { return fmt::format("{}:{}", host, port); }

    std::string host;
    std::uint16_t port;
    asio::steady_timer timer;
    std::chrono::milliseconds backoff = first_backoff;
    bool kept = false;       // redialed if it fails or closes
    bool waiting = false;    // for its next attempt
    bool cancelled = false;  // discard the result of the attempt under way
    std::string problem;     // of the last attempt
    std::uint64_t attempts = 0;
    std::chrono::steady_clock::time_point next_at{};
    std::weak_ptr<asio::ip::tcp::socket> attempt;   // under way
    std::shared_ptr<AgentConnection> connection;    // until it ends
    std::string agent;                              // id of the connected agent; empty until its hello
    std::function<void(Result<AgentInfo>)> answer;  // of connect(), until hello or failure
    std::optional<secure::PairingKey> offered_key;  // the offered code that this attempt uses
};

}  // namespace flamewire::server
