#include "server/link/ingest_pipeline.h"

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "server/limits.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::seconds disk_retry{1};

}  // namespace

void IngestPipeline::add(const PeerPtr& peer, wire::Frame frame) {
    peer->inbox_bytes += frame.payload.size();
    peer->inbox.push_back({std::move(frame), realtime_ns()});
    process(peer);
}

void IngestPipeline::resume(const PeerPtr& peer, const wire::RecordingId& recording, const std::string& hello) {
    peer->recording = recording;
    peer->hello_waiting = true;
    peer->hello = {{wire::Flag::reply, hello}, realtime_ns()};
    process(peer);
}

void IngestPipeline::process(const PeerPtr& peer) {
    const bool full = peer->inbox_bytes > limits::inbox_bytes;
    if (full && !peer->inbox_full) limit_reached(Limit::inbox_bytes);
    peer->inbox_full = full;
    peer->connection->pause_reading(full);
    if (peer->busy || !peer->open || stopping_) return;
    if (!peer->inbox.empty()) {
        if (Clock::now() >= peer->retry_at) store(peer, {});
        return;
    }
    if (!std::exchange(peer->hello_waiting, false)) return;
    peer->busy = true;  // batches that arrive now wait in the inbox
    threads_.run([this, recording = *peer->recording, hello = std::move(peer->hello),
                  sender = peer->sender()] { return ingest_.resume(recording, hello, sender); },
                 [this, peer](Result<std::shared_ptr<Session>> session) { resumed(peer, std::move(session)); });
}

void IngestPipeline::resumed(const PeerPtr& peer, Result<std::shared_ptr<Session>> session) {
    peer->busy = false;
    if (!peer->open) return;
    if (!session) {
        if (is_foreign(session.error())) return refuse_foreign(*peer, session.error().message);
        spdlog::error("agent {}: its session cannot be continued: {}", peer->agent_id, session.error().message);
        return peer->connection->close("its session cannot be continued: " + session.error().message);
    }
    if (*session && !(*session)->status().ended()) {
        assign_session(*peer, *session);
        (*session)->status().set_paused(registry_.entry(peer->agent_id).info.state == "paused");
    } else if (*session) {
        peer->session = *session;
    }
    peer->connection->send(wire::Flag::acknowledgement,
                           wire::encode_ack({peer->recording, *session ? (*session)->stream().last_seq() : 0}));
    process(peer);
}

// Not a protocol error: the peer names a recording that belongs to another agent.
void IngestPipeline::refuse_foreign(const AgentPeer& peer, const std::string& why) {
    log_.warn(fmt::format("security: agent {} at {} with key {}: {}", peer.agent_id, peer.connection->address(),
                          peer.connection->key_id().empty() ? "none" : peer.connection->key_id(), why));
    peer.connection->refuse(why);
}

void IngestPipeline::end_recording(const PeerPtr& peer, const std::string& reason) {
    if (!peer->perflens) return;
    peer->perflens->end_at = {};
    if (peer->busy)
        peer->perflens->end_reason = reason;
    else
        store(peer, reason);
}

// `end_reason`: also ends the recording of an agent of PerfLens.
void IngestPipeline::store(const PeerPtr& peer, std::optional<std::string> end_reason) {
    peer->busy = true;
    threads_.run(
        [this, frames = std::exchange(peer->inbox, {}), session = peer->session, sender = peer->sender(),
         perflens = peer->perflens, end_reason = std::move(end_reason)]() mutable {
            if (perflens) frames = perflens->recording.convert(std::move(frames));
            if (end_reason)
                for (ArrivedFrame& last : perflens->recording.end(*end_reason, realtime_ns()))
                    frames.push_back(std::move(last));
            return ingest_.store(std::move(frames), std::move(session), sender);
        },
        [this, peer](Ingested result) { stored(peer, std::move(result)); });
}

void IngestPipeline::stored(const PeerPtr& peer, Ingested result) {
    peer->busy = false;
    if (peer->perflens && !peer->perflens->end_reason.empty())
        end_recording(peer, std::exchange(peer->perflens->end_reason, {}));
    if (result.session) update_session(*peer, result);
    if (result.foreign) return refuse_foreign(*peer, result.protocol_error);
    if (!result.protocol_error.empty()) {
        log_.warn(fmt::format("agent {}: {}", peer->agent_id, result.protocol_error));
        return peer->connection->close(result.protocol_error);
    }
    if (peer->disk_error_reported != !result.unstored.empty()) report_disk_error(*peer, result);
    if (!result.unstored.empty()) {
        peer->retry_at = Clock::now() + disk_retry;
        peer->inbox.insert(peer->inbox.begin(), std::make_move_iterator(result.unstored.begin()),
                           std::make_move_iterator(result.unstored.end()));
    }
    peer->inbox_bytes = 0;
    for (const ArrivedFrame& frame : peer->inbox) peer->inbox_bytes += frame.frame.payload.size();
    process(peer);
}

void IngestPipeline::update_session(AgentPeer& peer, const Ingested& result) {
    if (peer.open && peer.session != result.session) {
        assign_session(peer, result.session);
        // The disk sync may have finished before the session had a peer. Its acknowledgment was then not sent, so send
        // it now.
        if (const std::uint64_t seq = result.session->stream().synced_seq(); seq != 0) acknowledge(peer, seq);
    }
    if (!peer.open && result.session->status().attached()) {
        // The connection closed while its last frames were stored. A new connection attaches itself with its next frame.
        const auto* agent = registry_.find(peer.agent_id);
        if (agent == nullptr || !agent->peer || agent->peer->session != result.session)
            result.session->status().detach_agent();
    }
    if (result.last) update_agent(peer, *result.last);
    events_.session_changed(result.session);
    if (result.last && result.last->end) events_.sessions_changed();
}

void IngestPipeline::report_disk_error(AgentPeer& peer, const Ingested& result) {
    peer.disk_error_reported = !result.unstored.empty();
    if (auto* agent = registry_.find(peer.agent_id)) {
        agent->info.problem =
            peer.disk_error_reported
                ? fmt::format("What it records cannot be stored: {}. It waits with the agent.", result.disk_error)
                : "";
        registry_.publish(*agent);
    }
    if (peer.disk_error_reported)
        spdlog::error("agent {}: {}; its batches wait", peer.agent_id, result.disk_error);
    else
        spdlog::info("agent {}: its batches are written again", peer.agent_id);
}

void IngestPipeline::assign_session(AgentPeer& peer, const std::shared_ptr<Session>& session) {
    if (peer.session && peer.session != session) peer.session->status().detach_agent();
    peer.session = session;
    peer.recording = session->recording();
    peer.fetch_refused.clear();
    peer.kernel_names.reset();
    peer.statistics.reset_cpu();
    if (session->status().ended()) return;
    session->status().attach_agent(peer.connection->address());
    AgentRegistry::Agent& agent = registry_.entry(peer.agent_id);
    agent.info.session = session->id();
    agent.info.target = session->info().target;
    if (agent.info.state != "paused") agent.info.state = "profiling";
    registry_.publish(agent);
    events_.sessions_changed();
}

void IngestPipeline::update_agent(AgentPeer& peer, const IngestResult& taken) {
    auto* const agent = registry_.find(peer.agent_id);
    // The last batches may be stored after their connection has closed, but a newer connection has newer figures.
    if (agent == nullptr || (agent->peer && agent->peer.get() != &peer)) return;
    peer.statistics.update(taken, taken.same_boot || agent->same_boot, agent->info);
    if (taken.end && agent->peer) {
        spdlog::info("session {} ended: {}", peer.session ? peer.session->id() : "",
                     wire::refusal_text(taken.end->reason));
        agent->info.state = "idle";
        agent->info.session.clear();
        agent->info.target.clear();
        if (peer.session) peer.session->status().detach_agent();
    }
    registry_.publish(*agent, !taken.end);
}

void IngestPipeline::synced(std::shared_ptr<Session> session, std::uint64_t seq) {
    asio::post(threads_.io, [this, session = std::move(session), seq] {
        for (const auto& [id, agent] : registry_.agents())
            if (agent.peer && agent.peer->session == session) acknowledge(*agent.peer, seq);
    });
}

void IngestPipeline::acknowledge(const AgentPeer& peer, std::uint64_t seq) {
    if (peer.perflens) return;
    peer.connection->send(wire::Flag::acknowledgement, wire::encode_ack({peer.session->recording(), seq}));
}

}  // namespace flamewire::server
