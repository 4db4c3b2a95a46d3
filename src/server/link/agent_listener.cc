// Accepts agents that dial, and checks their keys.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <random>
#include <set>

#include "base/clock.h"
#include "secure/host.h"
#include "server/limits.h"
#include "server/link/agent_hub.h"
#include "server/link/agent_peer.h"

namespace flamewire::server {

Result<std::uint16_t> AgentHub::listen(const std::string& bind, std::uint16_t port) {
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

void AgentHub::accept() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
        if (stopping_ || error == asio::error::operation_aborted) return;
        if (error) {
            // Out of descriptors or memory: pause before the next accept, do not spin.
            log_.warn(fmt::format("cannot accept an agent: {}", error.message()));
            auto pause = std::make_shared<asio::steady_timer>(threads_.io, std::chrono::seconds(1));
            pause->async_wait([this, pause](const std::error_code&) { accept(); });
            return;
        }
        add_accepted(std::move(socket));
        accept();
    });
}

PeerPtr AgentHub::add_accepted(asio::ip::tcp::socket socket) {
    std::error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (gone) return nullptr;
    if (!make_room(secure::host_of(remote.address()))) {
        limit_reached(Limit::agent_connections);
        turned_away_.add(address_text(remote), fmt::format("{} are connected already", peers_.size()));
        return nullptr;
    }
    // Every user of this machine can connect on loopback, so the key is required there too.
    const auto plain = pairing_.insecure ? secure::Carrier::Plain::allowed : secure::Carrier::Plain::refused;
    return add_peer(std::move(socket), nullptr,
                    secure::Carrier::accepted([this](std::string_view id) { return key_of(id); }, plain));
}

// Connecting is free, so connections that have proved nothing never keep out a new one: a random one of the host that
// has the most is closed. A random one, because the oldest would be closed before its handshake ends if others come
// fast. False: all connections belong to agents.
bool AgentHub::make_room(const std::string& host) {
    std::map<std::string, std::vector<PeerPtr>> by_host;
    std::size_t unnamed = 0;
    for (const PeerPtr& peer : peers_) {
        if (!peer->agent_id.empty() || peer->dial) continue;
        ++unnamed;
        by_host[peer->host].push_back(peer);
    }
    const bool host_full = by_host[host].size() >= limits::unnamed_connections_of_host;
    if (!host_full && unnamed < limits::unnamed_connections && peers_.size() < limits::agent_connections) return true;
    const auto most = std::ranges::max_element(by_host, {}, [](const auto& one) { return one.second.size(); });
    const auto& [crowded_host, all] = host_full ? *by_host.find(host) : *most;
    if (all.empty()) return false;
    std::vector<PeerPtr> chosen;
    std::ranges::copy_if(all, std::back_inserter(chosen),
                         [](const PeerPtr& peer) { return peer->connection->key_id().empty(); });
    if (chosen.empty()) chosen = all;
    const PeerPtr closed = chosen[std::random_device{}() % chosen.size()];
    limit_reached(Limit::unnamed_connections);
    closed->connection->close(fmt::format(
        "closed to make room: {} connections have not sent a hello yet, {} of them from there", unnamed, all.size()));
    peers_.remove(closed);  // before its callback, so that it does not count any more
    return true;
}

// Delayed handshakes run one after the other for each host, so that they leave time for everything else.
void AgentHub::run_delayed_handshakes() {
    std::set<std::string> served;
    bool more = false;
    for (const PeerPtr& peer : std::list<PeerPtr>(peers_)) {
        if (peer->connection->handshake_waits() && served.insert(peer->host).second)
            peer->connection->resume_handshake();
        more = more || peer->connection->handshake_delayed();
    }
    handshakes_pending_ = more;
    if (!more) return;
    handshake_timer_.expires_after(limits::handshake_pause);
    handshake_timer_.async_wait([this](const std::error_code& error) {
        if (!error && !stopping_) run_delayed_handshakes();
    });
}

// A key that was just made, possibly by another process, must work before the next check of the file.
std::optional<secure::PairingKey> AgentHub::key_of(std::string_view id) {
    if (!pairing_.keys.has(id)) (void)pairing_.keys.refresh();
    return pairing_.keys.find(id);
}

// Keys can be added and withdrawn while agents are connected.
void AgentHub::check_keys() {
    if (const auto read = pairing_.keys.refresh(); !read && read.error().message != key_error_) {
        key_error_ = read.error().message;
        spdlog::error("the pairing keys were not changed: {}", key_error_);
    } else if (read) {
        key_error_.clear();
    }
    for (const PeerPtr& peer : std::list<PeerPtr>(peers_))
        if (const std::string key = peer->connection->key_id(); !key.empty() && !pairing_.keys.has(key))
            peer->connection->close("its pairing key was withdrawn");
}

}  // namespace flamewire::server
