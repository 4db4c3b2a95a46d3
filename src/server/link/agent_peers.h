// All connections to agents, with the limits for those that have not sent a hello yet: their number, and the pace of
// their handshakes. Everything runs on the io thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "secure/attempts.h"
#include "secure/carrier.h"
#include "server/link/agent_peer.h"

namespace flamewire::server {

class AgentPeers {
public:
    explicit AgentPeers(asio::io_context& io) : handshake_timer_(io) {}

    // Adds a connection, which the caller starts. `dial`: null for incoming.
    PeerPtr add(asio::ip::tcp::socket socket, std::shared_ptr<Dial> dial, secure::Carrier carrier);
    // Removes a connection that ended.
    void remove(const PeerPtr& peer);
    // Makes room for a connection of this host. False: all connections belong to agents.
    bool make_room(const std::string& host);
    // A copy, because a caller may close connections.
    [[nodiscard]] std::list<PeerPtr> all() const { return peers_; }
    [[nodiscard]] std::size_t size() const { return peers_.size(); }
    // The number of agents that are connected with this pairing key.
    [[nodiscard]] std::size_t count_with_key(std::string_view key) const;
    // Closes all connections.
    void stop();

private:
    void run_delayed_handshakes();

    std::list<PeerPtr> peers_;
    const std::shared_ptr<std::size_t> unfinished_ = std::make_shared<std::size_t>(0);  // of all connections
    secure::Attempts attempts_;  // with wrong keys, by peers that dial
    asio::steady_timer handshake_timer_;
    bool handshakes_pending_ = false;  // run_delayed_handshakes() is due
    bool stopping_ = false;
};

}  // namespace flamewire::server
