#include "server/link/agent_info.h"

namespace flamewire::server {

void write_agent(JsonWriter& json, const AgentInfo& agent) {
    json.object();
    json.member("id", agent.id);
    json.member("address", agent.address);
    json.member("connected", agent.connected);
    json.member("direction", agent.outgoing ? "outgoing" : "incoming");
    static constexpr std::string_view links[] = {"encrypted", "insecure"};
    json.member("link", links[static_cast<std::size_t>(agent.link)]);
    json.member("key", agent.key);
    json.member("state", agent.state);
    json.member("session", agent.session);
    json.member("target", agent.target);
    json.member("problem", agent.problem);
    json.key("hello");
    json.raw(agent.hello);
    json.key("stats");
    if (agent.stats) {
        json.object();
        json.member("cpu_percent", agent.cpu_percent);
        json.member("rss_bytes", agent.stats->rss_bytes);
        json.member("ring_bytes", agent.stats->ring_bytes);
        json.member("samples_read", agent.stats->samples_read);
        json.member("samples_lost", agent.stats->samples_lost);
        json.member("samples_duplicate", agent.stats->samples_duplicate);
        json.member("queue_batches", agent.stats->queue_batches);
        json.member("spool_bytes", agent.stats->spool_bytes);
        json.end_object();
    } else {
        json.null();
    }
    json.member("clock_offset_ms", agent.clock_offset_ms);
    json.key("latency_ms");
    if (agent.latency_ms)
        json.number(*agent.latency_ms);
    else
        json.null();
    json.end_object();
}

}  // namespace flamewire::server
