// The path of a batch: inbox, pool, session, statistics, acknowledgment.
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "server/limits.h"
#include "server/link/agent_hub.h"
#include "server/link/agent_peer.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t cpu_window_ns = 5'000'000'000;
constexpr std::chrono::seconds disk_retry{1};
constexpr std::chrono::seconds kernel_names_wait{1}, kernel_request_interval{10};

}  // namespace

void AgentHub::session_resumed(const PeerPtr& peer, Result<std::shared_ptr<Session>> session) {
    peer->busy = false;
    if (!peer->open) return;
    if (!session) {
        if (is_foreign(session.error())) return refuse_foreign(peer, session.error().message);
        spdlog::error("agent {}: its session cannot be continued: {}", peer->agent_id, session.error().message);
        return peer->connection->close("its session cannot be continued: " + session.error().message);
    }
    if (*session && !(*session)->ended()) {
        assign_session(peer, *session);
        (*session)->set_paused(registry_.entry(peer->agent_id).info.state == "paused");
    } else if (*session) {
        peer->session = *session;
    }
    peer->connection->send(wire::Flag::acknowledgement,
                           wire::encode_ack({peer->recording, *session ? (*session)->last_seq() : 0}));
    process_inbox(peer);
}

// Not a protocol error: the peer names a recording that belongs to another agent.
void AgentHub::refuse_foreign(const PeerPtr& peer, const std::string& why) {
    log_.warn(fmt::format("security: agent {} at {} with key {}: {}", peer->agent_id, peer->connection->address(),
                          peer->connection->key_id().empty() ? "none" : peer->connection->key_id(), why));
    peer->connection->refuse(why);
}

void AgentHub::process_inbox(const PeerPtr& peer) {
    const bool full = peer->inbox_bytes > limits::inbox_bytes;
    if (full && !peer->inbox_full) limit_reached(Limit::inbox_bytes);
    peer->inbox_full = full;
    peer->connection->pause_reading(full);
    if (peer->hello_waiting && !peer->busy && peer->inbox.empty() && peer->open && !stopping_) {
        peer->hello_waiting = false;
        peer->busy = true;  // batches that arrive now wait in the inbox
        asio::post(threads_.pool, [this, peer, recording = *peer->recording, hello = std::move(peer->hello)] {
            auto session = ingest_.resume(recording, hello, peer->sender());
            asio::post(threads_.io, [this, peer, session = std::move(session)]() mutable {
                session_resumed(peer, std::move(session));
            });
        });
        return;
    }
    if (peer->busy || peer->inbox.empty() || !peer->open || stopping_ || Clock::now() < peer->retry_at) return;
    peer->busy = true;
    std::deque<ArrivedFrame> frames = std::exchange(peer->inbox, {});
    asio::post(threads_.pool, [this, peer, frames = std::move(frames), session = peer->session]() mutable {
        if (peer->perflens) frames = peer->perflens->recording.convert(std::move(frames));
        auto result = ingest_.store(std::move(frames), std::move(session), peer->sender());
        asio::post(threads_.io,
                   [this, peer, result = std::move(result)]() mutable { finish_ingest(peer, std::move(result)); });
    });
}

void AgentHub::finish_ingest(const PeerPtr& peer, Ingested result) {
    peer->busy = false;
    if (peer->perflens && !peer->perflens->end_reason.empty())
        end_perflens_recording(peer, std::exchange(peer->perflens->end_reason, {}));
    if (result.session) {
        if (peer->open && peer->session != result.session) {
            assign_session(peer, result.session);
            // The disk sync may have finished before the session had a peer. Its acknowledgment was then not sent, so
            // send it now.
            if (const std::uint64_t seq = result.session->synced_seq(); seq != 0) acknowledge(peer, seq);
        }
        if (!peer->open && result.session->attached()) {
            // The connection closed while its last frames were stored. A new connection attaches itself with its next
            // frame.
            const auto* agent = registry_.find(peer->agent_id);
            if (agent == nullptr || !agent->peer || agent->peer->session != result.session)
                result.session->detach_agent();
        }
        if (result.last) update_agent(peer, *result.last);
        events_.session_changed(result.session);
        if (result.last && result.last->end) events_.sessions_changed();
    }
    if (result.foreign) return refuse_foreign(peer, result.protocol_error);
    if (!result.protocol_error.empty()) {
        log_.warn(fmt::format("agent {}: {}", peer->agent_id, result.protocol_error));
        return peer->connection->close(result.protocol_error);
    }
    if (peer->disk_error_reported != !result.unstored.empty()) {
        peer->disk_error_reported = !result.unstored.empty();
        if (auto* agent = registry_.find(peer->agent_id)) {
            agent->info.problem =
                peer->disk_error_reported
                    ? fmt::format("What it records cannot be stored: {}. It waits with the agent.", result.disk_error)
                    : "";
            registry_.publish(*agent);
        }
        if (peer->disk_error_reported)
            spdlog::error("agent {}: {}; its batches wait", peer->agent_id, result.disk_error);
        else
            spdlog::info("agent {}: its batches are written again", peer->agent_id);
    }
    if (!result.unstored.empty()) {
        peer->retry_at = Clock::now() + disk_retry;
        peer->inbox.insert(peer->inbox.begin(), std::make_move_iterator(result.unstored.begin()),
                           std::make_move_iterator(result.unstored.end()));
    }
    peer->inbox_bytes = 0;
    for (const ArrivedFrame& frame : peer->inbox) peer->inbox_bytes += frame.frame.payload.size();
    process_inbox(peer);
}

void AgentHub::assign_session(const PeerPtr& peer, const std::shared_ptr<Session>& session) {
    if (peer->session && peer->session != session) peer->session->detach_agent();
    peer->session = session;
    peer->recording = session->recording();
    peer->kernel_missing_at_request = 0;
    peer->fetch_refused.clear();
    peer->kernel_requested_at = {};
    peer->cpu.clear();
    if (session->ended()) return;
    session->attach_agent(peer->connection->address());
    AgentRegistry::Agent& agent = registry_.entry(peer->agent_id);
    agent.info.session = session->id();
    agent.info.target = session->info().target;
    if (agent.info.state != "paused") agent.info.state = "profiling";
    registry_.publish(agent);
    events_.sessions_changed();
}

void AgentHub::update_agent(const PeerPtr& peer, const Session::Taken& taken) {
    auto* const found = registry_.agent_of(*peer);
    if (found == nullptr) return;
    AgentRegistry::Agent& agent = *found;
    if (!peer->least_difference_ns || taken.clock_difference_ns < *peer->least_difference_ns)
        peer->least_difference_ns = taken.clock_difference_ns;
    // On the same machine, both ends read the same clock.
    const std::int64_t offset_ns = taken.same_boot || agent.same_boot ? 0 : *peer->least_difference_ns;
    agent.info.clock_offset_ms = static_cast<double>(offset_ns) / 1e6;
    agent.info.latency_ms = static_cast<double>(taken.clock_difference_ns - offset_ns) / 1e6;
    if (taken.stats) {
        agent.info.stats = taken.stats;
        peer->cpu.emplace_back(taken.monotonic_ns, taken.stats->cpu_ns);
        while (peer->cpu.size() > 2 && peer->cpu.back().first - peer->cpu.front().first > cpu_window_ns)
            peer->cpu.pop_front();
        const auto [first_ns, first_cpu] = peer->cpu.front();
        if (taken.monotonic_ns > first_ns && taken.stats->cpu_ns >= first_cpu)
            agent.info.cpu_percent = 100.0 * static_cast<double>(taken.stats->cpu_ns - first_cpu) /
                                     static_cast<double>(taken.monotonic_ns - first_ns);
    }
    if (taken.end) {
        spdlog::info("session {} ended: {}", peer->session ? peer->session->id() : "",
                     wire::refusal_text(taken.end->reason));
        agent.info.state = "idle";
        agent.info.session.clear();
        agent.info.target.clear();
        if (peer->session) peer->session->detach_agent();
    }
    registry_.publish(agent, !taken.end);
}

void AgentHub::synced(std::shared_ptr<Session> session, std::uint64_t seq) {
    asio::post(threads_.io, [this, session = std::move(session), seq] {
        for (const PeerPtr& peer : peers_.all())
            if (peer->session == session) acknowledge(peer, seq);
    });
}

void AgentHub::acknowledge(const PeerPtr& peer, std::uint64_t seq) {
    if (peer->perflens) return;
    peer->connection->send(wire::Flag::acknowledgement, wire::encode_ack({peer->session->recording(), seq}));
}

// The agent then adds names for the kernel addresses that it has seen to its next batch. Ask when the symbolizer has
// been unable to resolve some for a second. Ask again only if new ones appear.
void AgentHub::request_kernel_names(AgentRegistry::Agent& agent) {
    AgentPeer& peer = *agent.peer;
    const auto now = Clock::now();
    const std::size_t missing = peer.session->unresolved_kernel();
    peer.kernel_missing_at_request = std::min(peer.kernel_missing_at_request, missing);
    if (missing == 0) {
        peer.kernel_missing_since = {};
        return;
    }
    if (peer.kernel_missing_since == Clock::time_point{}) peer.kernel_missing_since = now;
    if (missing <= peer.kernel_missing_at_request || now - peer.kernel_missing_since < kernel_names_wait ||
        now - peer.kernel_requested_at < kernel_request_interval)
        return;
    peer.kernel_requested_at = now;
    peer.kernel_missing_at_request = missing;
    const rapidjson::Value none(rapidjson::kObjectType);
    relay_.send(agent.info.id, "resolve_kernel", none, std::chrono::seconds(30), [](const CommandAnswer&) {});
}

}  // namespace flamewire::server
