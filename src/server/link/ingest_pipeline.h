// The path of a batch: the connection's inbox, the pool, the session, the agent's statistics, the acknowledgment. Each
// connection has one job at a time on the pool, so its frames stay in order. The rest runs on the io thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/link/agent_events.h"
#include "server/link/agent_peer.h"
#include "server/link/agent_registry.h"
#include "server/link/ingest.h"
#include "server/link/link_threads.h"
#include "server/rate_limited_log.h"

namespace flamewire::server {

class IngestPipeline {
public:
    IngestPipeline(const LinkThreads& threads, Ingest& ingest, AgentRegistry& registry, const AgentEvents& events,
                   RateLimitedLog& log)
        : threads_(threads), ingest_(ingest), registry_(registry), events_(events), log_(log) {}

    // Puts a frame into the inbox.
    void add(const PeerPtr& peer, wire::Frame frame);
    // Continues the recording that a hello names, after the frames in the inbox.
    void resume(const PeerPtr& peer, const wire::RecordingId& recording, const std::string& hello);
    // Processes the inbox, unless a job runs, or the disk refused it a moment ago.
    void process(const PeerPtr& peer);
    // Ends the recording of an agent of PerfLens, after the texts in the inbox. Does nothing for our own agents.
    void end_recording(const PeerPtr& peer, const std::string& reason);
    // All batches up to seq are durable. Any thread.
    void synced(std::shared_ptr<Session> session, std::uint64_t seq);
    // Begins no more jobs for the inboxes.
    void stop() { stopping_ = true; }

private:
    using Clock = std::chrono::steady_clock;
    void resumed(const PeerPtr& peer, Result<std::shared_ptr<Session>> session);
    void store(const PeerPtr& peer, std::optional<std::string> end_reason);
    void stored(const PeerPtr& peer, Ingested result);
    void update_session(AgentPeer& peer, const Ingested& result);
    void report_disk_error(AgentPeer& peer, const Ingested& result);
    void assign_session(AgentPeer& peer, const std::shared_ptr<Session>& session);
    void update_agent(AgentPeer& peer, const IngestResult& taken);
    void refuse_foreign(const AgentPeer& peer, const std::string& why);
    static void acknowledge(const AgentPeer& peer, std::uint64_t seq);

    const LinkThreads& threads_;
    Ingest& ingest_;
    AgentRegistry& registry_;
    const AgentEvents& events_;
    RateLimitedLog& log_;
    bool stopping_ = false;
};

}  // namespace flamewire::server
