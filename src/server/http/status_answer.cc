#include "server/http/status_answer.h"

#include <algorithm>

#include "server/http/module_answers.h"
#include "server/session/iso_time.h"

namespace flamewire::server {
namespace {

void write_agents(JsonWriter& json, const std::vector<AgentPtr>& agents) {
    const auto is_connected = [](const AgentPtr& agent) { return agent->connected; };
    const auto connected = std::ranges::find_if(agents, is_connected);
    json.member("agent_connected", connected != agents.end());
    json.key("agent_addr");
    if (connected != agents.end())
        json.text((*connected)->address);
    else
        json.null();
    json.member("agents", std::ranges::count_if(agents, is_connected));
}

void write_sessions(JsonWriter& json, const std::vector<std::shared_ptr<Session>>& sessions,
                    const std::vector<SessionInfo>& infos) {
    json.list("live_sessions", infos, [&](const SessionInfo& info) { json.text(info.id); });
    json.key("module_fetches");
    json.array();
    for (const auto& session : sessions) {
        for (const auto& [module, fetch] : session->symbols().fetches()) {
            json.object();
            json.member("session", session->id());
            json.member("module", fetch.module);
            json.key("fetch");
            write_fetch(json, fetch);
            json.end_object();
        }
    }
    json.end_array();
    json.list("sessions", infos, [&](const SessionInfo& info) {
        json.object();
        json.member("id", info.id);
        write_unwinding(json, info.unwinding);
        write_unwind_processes(json, info.unwinding);
        json.end_object();
    });
}

}  // namespace

Answer status_answer(const ServerFacts& facts, Catalog& catalog, const AgentCalls& calls) {
    std::uint64_t samples = 0, batches = 0, lost = 0, version = 0;
    const auto live = catalog.live();
    std::vector<SessionInfo> infos;
    for (const auto& session : live) {
        const SessionInfo& info = infos.emplace_back(session->info());
        samples += info.samples;
        batches += info.batches;
        lost += info.lost;
        version += info.data_version;
    }
    JsonWriter json;
    json.object();
    json.member("status", "ok");
    json.member("version", FLAMEWIRE_VERSION);
    write_agents(json, calls.all());
    write_sessions(json, live, infos);
    json.list("turned_away", calls.turned_away(), [&](const TurnedAway& it) {
        json.object();
        json.member("address", it.address);
        json.member("reason", it.reason);
        json.member("time", iso_time(it.at_ns));
        json.end_object();
    });
    json.member("total_samples", samples);
    json.member("chunk_count", batches);
    json.member("lost_samples", lost);
    json.member("data_version", version);
    json.member("uptime_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - facts.started).count());
    json.member("agent_port", facts.agent_port);
    json.member("agent_bind", facts.agent_bind);
    json.member("http_url", facts.http_url);
    json.member("target_command", facts.target_command);
    json.member("insecure", facts.insecure);
    json.member("token_required", facts.token_required);
    json.member("data_dir", facts.data_dir);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
