// Manages all agents: accepts and dials connections, greets, routes frames to sessions, relays commands and
// acknowledges durable batches. Everything runs on the io thread and never blocks; work on frames goes to the pool.
// agents() and id lookups are safe to call from any thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/limits.h"
#include "server/link/admission.h"
#include "server/link/agent_dialer.h"
#include "server/link/agent_events.h"
#include "server/link/agent_listener.h"
#include "server/link/agent_peers.h"
#include "server/link/agent_registry.h"
#include "server/link/command_relay.h"
#include "server/link/ingest_pipeline.h"
#include "server/link/key_ring.h"
#include "server/link/link_threads.h"
#include "server/link/turned_away_list.h"
#include "server/rate_limited_log.h"
#include "server/session/module_store.h"
#include "wire/control.h"

namespace flamewire::server {

class AgentHub {
public:
    // Whether to fetch modules that this machine lacks from their agents.
    struct FetchPolicy {
        ModuleStore* store = nullptr;  // null: never
        std::uint64_t cap_bytes = 0;   // limit of one module's stream
    };

    // Whether agents of PerfLens are accepted.
    struct PerfLensPolicy {
        bool accept = false;
        std::string token;  // their pairing code; empty: do not ask them for one
    };

    AgentHub(asio::io_context& io, asio::thread_pool& pool, Catalog& catalog, Ingest& ingest, PairingPolicy pairing,
             FetchPolicy fetch, PerfLensPolicy perflens, AgentEvents events);
    ~AgentHub();

    // Starts accepting and returns the port (chosen by the kernel for 0). busy or permission: one sentence with the
    // remedy.
    Result<std::uint16_t> listen(const std::string& bind, std::uint16_t port) { return listener_.listen(bind, port); }
    // The listening agents that the server dials.
    [[nodiscard]] AgentDialer& dialer() { return dialer_; }
    [[nodiscard]] CommandRelay& commands() { return relay_; }
    // Called from the disk thread: all batches up to seq are durable.
    void synced(std::shared_ptr<Session> session, std::uint64_t seq) { pipeline_.synced(std::move(session), seq); }
    // Closes everything.
    void stop();

    // Connected agents first, then those that disconnected in the last minutes; sorted by id. Any thread.
    [[nodiscard]] std::vector<AgentPtr> agents() const { return registry_.snapshots(); }
    // Null if there is no such agent. Any thread.
    [[nodiscard]] AgentPtr agent(const std::string& id) const { return registry_.snapshot(id); }
    // The most recent ones, newest first. Any thread.
    [[nodiscard]] std::vector<TurnedAway> turned_away() const { return turned_away_.recent(); }

private:
    using Clock = std::chrono::steady_clock;
    PeerPtr add_peer(asio::ip::tcp::socket socket, std::shared_ptr<Dial> dial, secure::Carrier carrier);
    void add_accepted(asio::ip::tcp::socket socket);
    void handle_frame(const PeerPtr& peer, wire::Frame frame);
    void handle_hello(const PeerPtr& peer, const std::string& payload);
    void handle_perflens_hello(const PeerPtr& peer, const rapidjson::Document& hello);
    void handle_pairing_reply(const PeerPtr& peer, const rapidjson::Document& reply);
    void translate_reply(const PeerPtr& peer, const std::string& command, const rapidjson::Document& reply,
                         CommandAnswer& answer);
    void send_perflens_command(const PeerPtr& peer, const std::string& id, const std::string& name,
                               const rapidjson::Value& args);
    void handle_reply(const PeerPtr& peer, const std::string& payload);
    void handle_close(const PeerPtr& peer, const std::string& reason);
    void apply_reply(AgentRegistry::Agent& agent, const std::string& command, const rapidjson::Document& reply);
    void tick();
    void fetch_modules(AgentRegistry::Agent& agent);
    [[nodiscard]] bool is_fetching(const symbol::ModuleIdentity& module) const;
    void request_part(const PeerPtr& peer, std::uint64_t offset);
    void handle_fetch_failure(const PeerPtr& peer, const CommandAnswer& answer);
    void mark_refused(const PeerPtr& peer, const std::string& why);
    void handle_chunk(const PeerPtr& peer, const std::string& payload);
    void chunk_stored(const PeerPtr& peer, Result<ModuleStore::Progress> added, std::uint64_t total);
    void end_fetch(const PeerPtr& peer, ModuleFetch::State state, const std::string& why);
    void report_fetch(const AgentPeer::Fetching& fetching);

    const LinkThreads threads_;
    Catalog& catalog_;
    const FetchPolicy fetch_;
    const PerfLensPolicy perflens_;
    const AgentEvents events_;
    asio::steady_timer timer_;
    std::map<std::string, SessionState> states_seen_;
    RateLimitedLog log_;  // for lines that any peer can trigger
    // For agents that connect and disconnect, so that these lines hide no warning.
    RateLimitedLog connection_log_{limits::agent_connections};
    TurnedAwayList turned_away_;
    AgentRegistry registry_;
    AgentPeers peers_;
    Admission admission_;
    AgentListener listener_;
    CommandRelay relay_;
    IngestPipeline pipeline_;
    AgentDialer dialer_;
    bool stopping_ = false;
};

}  // namespace flamewire::server
