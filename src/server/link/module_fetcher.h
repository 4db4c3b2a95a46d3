// Fetches module files from the agent if nothing on this machine can symbolize them. It requests the next part when the
// previous one is on disk. The agent sends batches first, and part sizes follow the speed of the link, so samples do
// not wait. Runs on the io thread; the store is used on the pool.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/link/agent_events.h"
#include "server/link/agent_peer.h"
#include "server/link/agent_registry.h"
#include "server/link/command_relay.h"
#include "server/link/link_threads.h"
#include "server/session/module_store.h"
#include "symbol/types/module_identity.h"

namespace flamewire::server {

class ModuleFetcher {
public:
    // Whether to fetch modules that this machine lacks from their agents.
    struct Policy {
        ModuleStore* store = nullptr;  // null: never
        std::uint64_t cap_bytes = 0;   // limit of one module's stream
    };

    ModuleFetcher(const LinkThreads& threads, Policy policy, const AgentRegistry& registry, CommandRelay& commands,
                  const AgentEvents& events)
        : threads_(threads), policy_(policy), registry_(registry), commands_(commands), events_(events) {}

    // Begins to fetch the next module of the connection's session, if any. Call it periodically.
    void fetch(const PeerPtr& peer);
    // A part of a module arrived.
    void handle_chunk(const PeerPtr& peer, const std::string& payload);
    // Requests no more parts.
    void stop() { stopping_ = true; }

private:
    [[nodiscard]] bool is_fetching(const symbol::ModuleIdentity& module) const;
    void request_part(const PeerPtr& peer, std::uint64_t offset);
    void handle_failure(AgentPeer& peer, const CommandAnswer& answer);
    void mark_refused(AgentPeer& peer, const std::string& why);
    void chunk_stored(const PeerPtr& peer, const Result<ModuleStore::Progress>& added, std::uint64_t total);
    void end(AgentPeer& peer, ModuleFetch::State state, const std::string& why);
    void report(const AgentPeer::Fetching& fetching);

    const LinkThreads& threads_;
    const Policy policy_;
    const AgentRegistry& registry_;
    CommandRelay& commands_;
    const AgentEvents& events_;
    bool stopping_ = false;
};

}  // namespace flamewire::server
