// Accepts agents that dial, and checks their keys.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <list>

#include "base/clock.h"
#include "secure/host.h"
#include "secure/this_machine.h"
#include "server/limits.h"
#include "server/link/agent_hub.h"
#include "server/link/agent_hub_state.h"

namespace flamewire::server {

Result<std::uint16_t> AgentHub::listen(const std::string& bind, std::uint16_t port) {
    std::error_code error;
    const auto address = asio::ip::make_address(bind, error);
    if (error) return fail(ErrorCode::invalid, fmt::format("--bind {} is no IP address", bind));
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

void AgentHub::accept() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
        if (stopping_ || error == asio::error::operation_aborted) return;
        if (error) {
            // Out of descriptors or memory: pause before the next accept, do not spin.
            log_.warn(fmt::format("cannot accept an agent: {}", error.message()));
            auto pause = std::make_shared<asio::steady_timer>(io_, std::chrono::seconds(1));
            pause->async_wait([this, pause](const std::error_code&) { accept(); });
            return;
        }
        adopt_accepted(std::move(socket));
        accept();
    });
}

AgentHub::PeerPtr AgentHub::adopt_accepted(asio::ip::tcp::socket socket) {
    std::error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (gone) return nullptr;
    // Closes the socket without a message: none can be sent before a handshake.
    const std::string host = secure::host_of(remote.address());
    if (attempts_.wait_left_ns(host, monotonic_ns()) != 0) {
        turn_away(address_text(remote), "too many wrong pairing codes come from there, so it has to wait for a moment");
        return nullptr;
    }
    if (peers_.size() >= limits::agent_connections) {
        limit_reached(Limit::agent_connections);
        turn_away(address_text(remote), fmt::format("{} are connected already", peers_.size()));
        return nullptr;
    }
    std::size_t unnamed = 0, of_host = 0;
    for (const PeerPtr& peer : peers_) {
        if (!peer->agent_id.empty()) continue;
        ++unnamed;
        if (peer->host == host) ++of_host;
    }
    if (unnamed >= limits::unnamed_connections || of_host >= limits::unnamed_connections_of_host) {
        limit_reached(Limit::unnamed_connections);
        turn_away(address_text(remote),
                  fmt::format("{} connections have not said who they are yet, {} from there", unnamed, of_host));
        return nullptr;
    }
    // Every user of this machine can connect on loopback, so the key is required there too.
    const auto plain = pairing_.insecure ? secure::Carrier::Plain::allowed : secure::Carrier::Plain::refused;
    return adopt(std::move(socket), nullptr,
                 secure::Carrier::accepted([this](std::string_view id) { return key_of(id); }, plain));
}

// A key that was just made, possibly by another process, must work before the next check of the file.
std::optional<secure::PairingKey> AgentHub::key_of(std::string_view id) {
    if (!pairing_.keys.has(id)) (void)pairing_.keys.refresh();
    return pairing_.keys.find(id);
}

// Keys can be added and withdrawn while agents are connected.
void AgentHub::check_keys() {
    if (const auto read = pairing_.keys.refresh(); !read && read.error().message != key_trouble_) {
        key_trouble_ = read.error().message;
        spdlog::error("the pairing keys stay as they were: {}", key_trouble_);
    } else if (read) {
        key_trouble_.clear();
    }
    for (const PeerPtr& peer : std::list<PeerPtr>(peers_))
        if (const std::string key = peer->connection->key_id(); !key.empty() && !pairing_.keys.has(key))
            peer->connection->close("its pairing key was withdrawn");
}

void AgentHub::turn_away(const std::string& address, const std::string& reason) {
    log_.warn(fmt::format("connection from {} closed: {}", address, reason));
    {
        const std::lock_guard lock(snapshot_mutex_);
        turned_away_.push_front({address, reason, realtime_ns()});
        if (turned_away_.size() > limits::turned_away) turned_away_.pop_back();
    }
    events_.turned_away();
}

}  // namespace flamewire::server
