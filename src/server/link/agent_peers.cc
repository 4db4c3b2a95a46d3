#include "server/link/agent_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/clock.h"
#include "secure/host.h"
#include "server/limits.h"

namespace flamewire::server {

PeerPtr AgentPeers::add(asio::ip::tcp::socket socket, std::shared_ptr<Dial> dial, secure::Carrier carrier) {
    std::error_code error;
    const auto remote = socket.remote_endpoint(error);
    auto peer = std::make_shared<AgentPeer>();
    peer->dial = std::move(dial);
    peer->address = error ? "unknown" : remote.address().to_string();
    peer->host = error ? "unknown" : secure::host_of(remote.address());
    peer->connection = std::make_shared<AgentConnection>(std::move(socket), error ? "unknown" : address_text(remote),
                                                         std::move(carrier), unfinished_);
    peers_.push_back(peer);
    if (!peer->dial && attempts_.exceeded(peer->host, monotonic_ns())) {
        peer->connection->delay_handshake();
        if (!std::exchange(handshakes_pending_, true)) run_delayed_handshakes();
    }
    return peer;
}

void AgentPeers::remove(const PeerPtr& peer) {
    peers_.remove(peer);
    // A handshake costs CPU time, so a peer that gives up before its end counts as a failed attempt.
    if (peer->connection->handshake_failed() && !peer->dial) attempts_.failed(peer->host, monotonic_ns());
}

std::size_t AgentPeers::count_with_key(std::string_view key) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        peers_, [&](const PeerPtr& peer) { return !peer->agent_id.empty() && peer->connection->key_id() == key; }));
}

// Connecting is free, so connections that have proved nothing never keep out a new one: a random one of the host that
// has the most is closed. A random one, because the oldest would be closed before its handshake ends if others come
// fast. False: all connections belong to agents.
bool AgentPeers::make_room(const std::string& host) {
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
    const auto& [crowded_host, candidates] = host_full ? *by_host.find(host) : *most;
    if (candidates.empty()) return false;
    std::vector<PeerPtr> chosen;
    std::ranges::copy_if(candidates, std::back_inserter(chosen),
                         [](const PeerPtr& peer) { return peer->connection->key_id().empty(); });
    if (chosen.empty()) chosen = candidates;
    const PeerPtr closed = chosen[std::random_device{}() % chosen.size()];
    limit_reached(Limit::unnamed_connections);
    closed->connection->close(
        fmt::format("closed to make room: {} connections have not sent a hello yet, {} of them from there", unnamed,
                    candidates.size()));
    peers_.remove(closed);  // before its callback, so that it does not count any more
    return true;
}

// Delayed handshakes run one after the other for each host, so that they leave time for everything else.
void AgentPeers::run_delayed_handshakes() {
    std::set<std::string> served;
    bool more = false;
    for (const PeerPtr& peer : all()) {
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

void AgentPeers::stop() {
    stopping_ = true;
    handshake_timer_.cancel();
    for (const PeerPtr& peer : all()) peer->connection->close("the server is shutting down");
}

}  // namespace flamewire::server
