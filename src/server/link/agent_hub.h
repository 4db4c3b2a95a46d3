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
    struct Peer;
    struct Dial;
    using PeerPtr = std::shared_ptr<Peer>;
    // A module file that is being fetched.
    struct Fetching {
        std::shared_ptr<Session> session;
        profile::ModuleId module = 0;
        symbol::ModuleIdentity identity;
        std::string command;    // that requested the current part
        std::size_t bytes = 0;  // to request next
        ModuleFetch progress;
        Clock::time_point asked_at{};
    };
    struct Agent {
        AgentInfo info;
        PeerPtr peer;
        Clock::time_point left{};
        Clock::time_point told{};  // last agent_changed for statistics alone
        bool same_boot = false;
    };

    void accept();
    PeerPtr adopt(asio::ip::tcp::socket socket, std::shared_ptr<Dial> dial, secure::Carrier carrier);
    bool make_room(const std::string& host);
    void give_turns();
    PeerPtr adopt_accepted(asio::ip::tcp::socket socket);
    void adopt_dialled(const std::shared_ptr<Dial>& dial, asio::ip::tcp::socket socket);
    std::optional<secure::PairingKey> key_of(std::string_view id);
    void check_keys();
    void frame_arrived(const PeerPtr& peer, wire::Frame frame);
    void greet(const PeerPtr& peer, const std::string& payload);
    [[nodiscard]] std::string owner_of(const Peer& peer) const;
    [[nodiscard]] std::string why_refused(const Peer& peer, const std::string& agent_id) const;
    void greet_perflens(const PeerPtr& peer, const rapidjson::Document& hello);
    void perflens_paired(const PeerPtr& peer, const rapidjson::Document& reply);
    void perflens_replied(const PeerPtr& peer, const std::string& command, const rapidjson::Document& reply,
                          CommandAnswer& answer);
    void perflens_command(const PeerPtr& peer, const std::string& id, const std::string& name,
                          const rapidjson::Value& args);
    void end_perflens(const PeerPtr& peer, const std::string& reason);
    void greeted(const PeerPtr& peer, Result<std::shared_ptr<Session>> session);
    void reply_arrived(const PeerPtr& peer, const std::string& payload);
    void refuse_foreign(const PeerPtr& peer, const std::string& why);
    static Sender sender_of(const Peer& peer);
    void ingest(const PeerPtr& peer);
    void ingested(const PeerPtr& peer, Ingested result);
    void take_session(const PeerPtr& peer, const std::shared_ptr<Session>& session);
    void learn_from(const PeerPtr& peer, const IngestResult& taken);
    void keep_offered(Dial& dial);
    void turn_away(const std::string& address, const std::string& reason);
    void peer_closed(const PeerPtr& peer, const std::string& reason);
    void acknowledge(const PeerPtr& peer, std::uint64_t seq);
    Result<std::shared_ptr<Dial>> new_dial(const std::string& host, std::uint16_t port);
    void start_dial(const std::shared_ptr<Dial>& dial);
    void dial_failed(const std::shared_ptr<Dial>& dial, const std::string& reason);
    void finish_command(const std::string& id, CommandAnswer answer);
    void apply_reply(Agent& agent, const std::string& command, const rapidjson::Document& reply);
    void changed(Agent& agent, bool numbers_only);
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
