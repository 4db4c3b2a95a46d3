#include "server/link/agent_hub.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "secure/host.h"
#include "server/link/perflens_messages.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::seconds kernel_names_time{30};

// Sets what the connection shows about its agent.
void describe(AgentInfo& info, const AgentPeer& peer) {
    info.id = peer.agent_id;
    info.address = peer.connection->address();
    info.connected = true;
    info.outgoing = peer.dial != nullptr;
    info.link = peer.connection->encrypted() ? AgentInfo::Link::encrypted : AgentInfo::Link::insecure;
    info.key = peer.connection->key_id();
    info.owner = peer.owner;
    info.problem.clear();
}

}  // namespace

AgentHub::AgentHub(asio::io_context& io, asio::thread_pool& pool, Catalog& catalog, Ingest& ingest,
                   PairingPolicy pairing, ModuleFetcher::Policy fetch, PerfLensAdapter::Policy perflens,
                   AgentEvents events)
    : threads_{io, pool},
      catalog_(catalog),
      events_(std::move(events)),
      timer_(io),
      turned_away_(log_, events_.turned_away),
      registry_(events_.agent_changed),
      peers_(io),
      admission_(threads_, pairing, peers_, registry_),
      listener_(io, log_, [this](asio::ip::tcp::socket socket) { add_accepted(std::move(socket)); }),
      commands_(registry_, [this](const PeerPtr& peer, const std::string& id, const std::string& name,
                                  const rapidjson::Value& args) { perflens_.send_command(peer, id, name, args); }),
      pipeline_(threads_, ingest, registry_, events_, log_),
      modules_(threads_, fetch, registry_, commands_, events_),
      perflens_(threads_, std::move(perflens), commands_, pipeline_),
      dialer_(threads_, pairing, registry_,
              [this](const std::shared_ptr<Dial>& dial, asio::ip::tcp::socket socket, secure::Carrier carrier) {
                  return add_peer(std::move(socket), dial, std::move(carrier))->connection;
              }) {
    tick();
}

PeerPtr AgentHub::add_peer(asio::ip::tcp::socket socket, std::shared_ptr<Dial> dial, secure::Carrier carrier) {
    const PeerPtr peer = peers_.add(std::move(socket), std::move(dial), std::move(carrier));
    peer->connection->start({.frame = [this, peer](wire::Frame frame) { handle_frame(peer, std::move(frame)); },
                             .closed = [this, peer](const std::string& reason) { handle_close(peer, reason); }});
    return peer;
}

void AgentHub::add_accepted(asio::ip::tcp::socket socket) {
    std::error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    if (gone) return;
    if (!peers_.make_room(secure::host_of(remote.address()))) {
        limit_reached(Limit::agent_connections);
        return turned_away_.add(address_text(remote), fmt::format("{} are connected already", peers_.size()));
    }
    add_peer(std::move(socket), nullptr, admission_.accepted_carrier());
}

void AgentHub::handle_frame(const PeerPtr& peer, wire::Frame frame) {
    if (frame.payload.empty()) return;
    if (frame.flag == wire::Flag::refusal)
        return peer->connection->close("it refuses: " + wire::refusal_text(frame.payload));
    if (peer->agent_id.empty()) return handle_hello(peer, frame.payload);
    switch (frame.flag) {
        case wire::Flag::reply: return handle_reply(peer, frame.payload);
        case wire::Flag::batch:
        case wire::Flag::batch_zstd:
        case wire::Flag::metrics: return pipeline_.add(peer, std::move(frame));
        case wire::Flag::module_chunk: return modules_.handle_chunk(peer, frame.payload);
        case wire::Flag::legacy_text:
        case wire::Flag::legacy_text_zstd:
            if (peer->perflens) return pipeline_.add(peer, std::move(frame));
            return peer->connection->close("sends perf script text, which this server does not read");
        default: return;  // a frame type of a newer agent: skipped
    }
}

void AgentHub::handle_hello(const PeerPtr& peer, const std::string& payload) {
    auto document = wire::parse_object(payload);
    auto hello = wire::parse_hello(payload);
    if (!document || !hello) {
        const std::string why = document ? hello.error().message : document.error().message;
        return peer->connection->close("no valid hello: " + why);
    }
    if (is_perflens_hello(*document) && !peer->perflens) {
        const auto translated = perflens_.accept(*peer, *document);
        if (!translated) return;
        handle_hello(peer, *translated);
        if (!peer->agent_id.empty()) perflens_.begin(*peer, *document);
        return;
    }
    if (hello->version > wire::protocol_version)
        return peer->connection->refuse(fmt::format(
            "this agent speaks version {} of the wire protocol and this server version {}: update the server",
            hello->version, wire::protocol_version));
    const bool first = peer->agent_id.empty();
    if (first && !admit(*peer, *hello)) return;
    AgentRegistry::Agent& agent = registry_.entry(peer->agent_id);
    if (agent.peer && agent.peer != peer)
        agent.peer->connection->close("replaced by a newer connection of the same agent");
    agent.peer = peer;
    agent.same_boot = !own_boot_id().empty() && hello->platform.boot_id == own_boot_id();
    describe(agent.info, *peer);
    agent.info.state = hello->state;
    agent.info.hello = to_json(*document);
    if (first) {
        admission_.key_used(*peer);
        connection_log_.info(fmt::format("agent {} connected from {} ({} {}{})", agent.info.id, agent.info.address,
                                         wire::refusal_text(hello->agent), wire::refusal_text(hello->agent_version),
                                         peer->connection->encrypted() ? ", encrypted" : ", NOT ENCRYPTED"));
    }
    if (peer->dial) dialer_.succeeded(*peer->dial, agent.info);
    registry_.publish(agent);
    if (peer->perflens) return;  // it does not use acknowledgments
    if (!hello->recording) return peer->connection->send(wire::Flag::acknowledgement, wire::encode_ack({}));
    pipeline_.resume(peer, hello->recording->id, payload);
}

// Sets the agent id of a connection, or refuses it.
bool AgentHub::admit(AgentPeer& peer, const wire::Hello& hello) {
    // The agent chooses this text, which appears in logs and answers. Limit it to one short line.
    const std::string sent_id = wire::refusal_text(hello.agent_id).substr(0, limits::agent_id_bytes);
    const std::string id = sent_id.empty() ? peer.connection->address() : sent_id;
    peer.owner = admission_.owner_of(peer);
    if (const std::string why = admission_.refusal_reason(peer, id); !why.empty()) {
        log_.warn(fmt::format("security: {} says it is agent {}: {}", peer.connection->address(), id, why));
        peer.connection->refuse(why);
        return false;
    }
    peer.agent_id = id;
    return true;
}

void AgentHub::handle_reply(const PeerPtr& peer, const std::string& payload) {
    const auto reply = wire::parse_object(payload);
    if (!reply) return peer->connection->close("a reply is not JSON: " + reply.error().message);
    if (peer->perflens && perflens_.handle_pairing_reply(*peer, *reply)) return;
    // The agent continues a recording that this server has not looked up yet.
    if (!peer->perflens && wire::text_member(*reply, "type") == "hello") return handle_hello(peer, payload);
    const std::string id = wire::text_member(*reply, "id");
    const auto command = commands_.pending(id, peer->agent_id);
    if (!command) return;
    const auto ok = reply->FindMember("ok");
    CommandAnswer answer{CommandAnswer::Kind::reply, payload,
                         ok != reply->MemberEnd() && ok->value.IsBool() && ok->value.GetBool()};
    if (peer->perflens) PerfLensAdapter::translate_reply(*peer, *command, *reply, answer);
    if (answer.ok) apply_reply(registry_.entry(peer->agent_id), *command, *reply);
    commands_.finish(id, std::move(answer));
}

void AgentHub::apply_reply(AgentRegistry::Agent& agent, const std::string& command, const rapidjson::Document& reply) {
    const std::string before = agent.info.state;
    if (command == "start" || command == "resume") agent.info.state = "profiling";
    if (command == "pause") agent.info.state = "paused";
    if (command == "stop") agent.info.state = "idle";
    if (command == "status" && !wire::text_member(reply, "state").empty())
        agent.info.state = wire::text_member(reply, "state");
    const std::string target = command == "configure" ? wire::text_member(reply, "target") : std::string{};
    const bool new_target = !target.empty() && target != agent.info.target;
    if (new_target) agent.info.target = target;
    if (agent.info.state == before && !new_target) return;
    if (agent.peer && agent.peer->session && agent.info.state != before) {
        agent.peer->session->status().set_paused(agent.info.state == "paused");
        events_.session_changed(agent.peer->session);
        events_.sessions_changed();
    }
    registry_.publish(agent);
}

void AgentHub::handle_close(const PeerPtr& peer, const std::string& reason) {
    peer->open = false;
    peers_.remove(peer);
    if (!stopping_) {
        const bool wrong_key = peer->connection->wrong_key() && !peer->dial;
        if (peer->agent_id.empty())
            turned_away_.add(peer->connection->address(),
                             wrong_key
                                 ? "its pairing code is not from this server, or was withdrawn: start that agent with "
                                   "the line that the page shows"
                                 : reason);
        else
            connection_log_.info(fmt::format("agent {} disconnected: {}", peer->agent_id, reason));
    }
    if (auto* agent = registry_.agent_of(*peer)) {
        agent->peer = nullptr;
        agent->info.connected = false;
        agent->info.state = "away";
        agent->disconnected_at = Clock::now();
        if (peer->session) {
            peer->session->status().detach_agent();
            events_.session_changed(peer->session);
            events_.sessions_changed();
        }
        commands_.agent_disconnected(peer->agent_id);
        registry_.publish(*agent);
    }
    pipeline_.end_recording(peer, "the agent disconnected");
    peer->session.reset();
    if (peer->dial) dialer_.ended(peer->dial, *peer->connection, reason);
}

// Once a second: handles everything that depends on elapsed time.
void AgentHub::tick() {
    const auto now = Clock::now();
    commands_.end_late();
    for (const PeerPtr& peer : peers_.all()) {
        if (peer->agent_id.empty() && now - peer->connected_at > limits::hello_time) {
            limit_reached(Limit::hello_time);
            peer->connection->close("sent no hello");
        }
        if (!peer->inbox.empty()) pipeline_.process(peer);
        perflens_.end_stopped(peer);
    }
    admission_.check_keys();
    log_.settle();
    connection_log_.settle();
    for (auto& [id, agent] : registry_.agents()) {
        if (!agent.peer || !agent.peer->session || agent.peer->perflens) continue;
        if (!agent.peer->session->status().ended() &&
            agent.peer->kernel_names.due(agent.peer->session->symbols().unresolved_kernel()))
            commands_.send(id, "resolve_kernel", rapidjson::Value(rapidjson::kObjectType), kernel_names_time,
                           [](const CommandAnswer&) {});
        modules_.fetch(agent.peer);
    }
    registry_.remove_old();
    watch_sessions();
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const std::error_code& error) {
        if (!error && !stopping_) tick();
    });
}

// A session starts to wait, or ends, also because time passes.
void AgentHub::watch_sessions() {
    std::map<std::string, SessionState> states;
    for (const auto& session : catalog_.all_loaded()) states[session->id()] = session->status().state();
    if (states != session_states_) events_.sessions_changed();
    session_states_ = std::move(states);
}

void AgentHub::stop() {
    stopping_ = true;
    listener_.stop();
    timer_.cancel();
    dialer_.stop();
    pipeline_.stop();
    modules_.stop();
    peers_.stop();
}

}  // namespace flamewire::server
