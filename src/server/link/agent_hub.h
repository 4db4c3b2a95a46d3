// The server's side of the link to all agents. Connects the classes that do the work: routes each frame of a connection
// to one of them, and keeps the registry of agents current. Everything runs on the io thread and never blocks, except
// where a comment states otherwise.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
#include "server/link/module_fetcher.h"
#include "server/link/perflens_adapter.h"
#include "server/link/turned_away_list.h"
#include "server/rate_limited_log.h"
#include "server/session/catalog.h"
#include "wire/control.h"

namespace flamewire::server {

class AgentHub {
public:
    AgentHub(asio::io_context& io, asio::thread_pool& pool, Catalog& catalog, Ingest& ingest, PairingPolicy pairing,
             ModuleFetcher::Policy fetch, PerfLensAdapter::Policy perflens, AgentEvents events);

    // Starts accepting and returns the port (chosen by the kernel for 0). busy or permission: one sentence with the
    // remedy.
    Result<std::uint16_t> listen(const std::string& bind, std::uint16_t port) { return listener_.listen(bind, port); }
    [[nodiscard]] AgentDialer& dialer() { return dialer_; }
    [[nodiscard]] CommandRelay& commands() { return commands_; }
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
    bool admit(AgentPeer& peer, const wire::Hello& hello);
    void handle_hello(const PeerPtr& peer, const std::string& payload);
    void handle_reply(const PeerPtr& peer, const std::string& payload);
    void handle_close(const PeerPtr& peer, const std::string& reason);
    void apply_reply(AgentRegistry::Agent& agent, const std::string& command, const rapidjson::Document& reply);
    void tick();
    void watch_sessions();

    const LinkThreads threads_;
    Catalog& catalog_;
    const AgentEvents events_;
    asio::steady_timer timer_;
    std::map<std::string, SessionState> session_states_;  // at the last tick
    RateLimitedLog log_;                                  // for lines that any peer can trigger
    // For agents that connect and disconnect, so that these lines hide no warning.
    RateLimitedLog connection_log_{limits::agent_connections};
    TurnedAwayList turned_away_;
    AgentRegistry registry_;
    AgentPeers peers_;
    Admission admission_;
    AgentListener listener_;
    CommandRelay commands_;
    IngestPipeline pipeline_;
    ModuleFetcher modules_;
    PerfLensAdapter perflens_;
    AgentDialer dialer_;
    bool stopping_ = false;
};

}  // namespace flamewire::server
