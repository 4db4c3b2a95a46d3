#include "server/link/admission.h"

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "server/limits.h"

namespace flamewire::server {

// Every user of this machine can connect on loopback, so the key is required there too.
secure::Carrier Admission::accepted_carrier() {
    const auto plain = pairing_.insecure ? secure::Carrier::Plain::allowed : secure::Carrier::Plain::refused;
    return secure::Carrier::accepted([this](std::string_view id) { return key_of(id); }, plain);
}

// A key that was just made, possibly by another process, must work before the next check of the file.
std::optional<secure::PairingKey> Admission::key_of(std::string_view id) {
    if (!pairing_.keys.has(id)) (void)pairing_.keys.refresh();
    return pairing_.keys.find(id);
}

// A code that replaced another one continues the recordings of that key. A listening agent's new code enters the key
// ring only after it has worked, so until then the owner comes from the key of the same address.
std::string Admission::owner_of(const AgentPeer& peer) const {
    std::string key = peer.connection->key_id();
    if (key.empty()) return key;
    if (peer.dial && peer.dial->offered_key)
        if (const auto before = pairing_.keys.of_address(peer.dial->address())) key = before->id;
    return pairing_.keys.owner_of(key);
}

// An agent id belongs to its key while the agent is listed, and the connections per key are limited. Empty: not
// refused.
std::string Admission::refusal_reason(const AgentPeer& peer, const std::string& agent_id) const {
    const std::string key = peer.connection->key_id();
    if (const auto* known = registry_.find(agent_id)) {
        const AgentInfo& info = known->info;
        if (info.owner != peer.owner && (info.connected || !info.owner.empty())) {
            limit_reached(Limit::foreign_recordings);
            return "an agent of this name is known already, with another pairing key: start this one again";
        }
        return {};
    }
    if (key.empty() || peers_.count_with_key(key) < limits::connections_of_key) return {};
    limit_reached(Limit::connections_of_key);
    return fmt::format("{} agents are connected with this pairing key already: give this one its own",
                       limits::connections_of_key);
}

void Admission::key_used(const AgentPeer& peer) {
    const std::string id = peer.connection->key_id();
    if (id.empty()) return;
    pairing_.keys.reserve(id);
    asio::post(threads_.pool, [this, id, address = peer.address] { pairing_.keys.used(id, address, realtime_ns()); });
}

// Keys can be added and withdrawn while agents are connected.
void Admission::check_keys() {
    if (const auto read = pairing_.keys.refresh(); !read && read.error().message != key_error_) {
        key_error_ = read.error().message;
        spdlog::error("the pairing keys were not changed: {}", key_error_);
    } else if (read) {
        key_error_.clear();
    }
    for (const PeerPtr& peer : peers_.all())
        if (const std::string key = peer->connection->key_id(); !key.empty() && !pairing_.keys.has(key))
            peer->connection->close("its pairing key was withdrawn");
}

}  // namespace flamewire::server
