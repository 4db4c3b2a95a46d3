// Decides by pairing keys which connections become agents. Everything runs on the io thread; uses of keys are written on
// the pool.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "secure/carrier.h"
#include "secure/pairing_key.h"
#include "server/link/agent_peers.h"
#include "server/link/agent_registry.h"
#include "server/link/key_ring.h"
#include "server/link/link_threads.h"

namespace flamewire::server {

class Admission {
public:
    Admission(const LinkThreads& threads, PairingPolicy pairing, const AgentPeers& peers, const AgentRegistry& registry)
        : threads_(threads), pairing_(pairing), peers_(peers), registry_(registry) {}

    // For a connection that an agent made.
    [[nodiscard]] secure::Carrier accepted_carrier();
    // The key that owns the recordings of this connection.
    [[nodiscard]] std::string owner_of(const AgentPeer& peer) const;
    // Why a connection cannot be the agent of this id, for which peer.owner is set. Empty: it can.
    [[nodiscard]] std::string refusal_reason(const AgentPeer& peer, const std::string& agent_id) const;
    // An agent connected with its key.
    void key_used(const AgentPeer& peer);
    // Reloads the keys if they changed, and closes the connections whose keys were withdrawn. Call it periodically.
    void check_keys();

private:
    std::optional<secure::PairingKey> key_of(std::string_view id);

    const LinkThreads& threads_;
    const PairingPolicy pairing_;
    const AgentPeers& peers_;
    const AgentRegistry& registry_;
    std::string key_error_;  // why the keys could not be reloaded; logged once
};

}  // namespace flamewire::server
