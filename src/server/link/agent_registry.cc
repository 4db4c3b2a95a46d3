#include "server/link/agent_registry.h"

#include <algorithm>

#include "server/limits.h"
#include "server/link/agent_peer.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::milliseconds statistics_interval{500};

}  // namespace

AgentRegistry::Agent* AgentRegistry::find(const std::string& id) {
    const auto found = agents_.find(id);
    return found == agents_.end() ? nullptr : &found->second;
}

const AgentRegistry::Agent* AgentRegistry::find(const std::string& id) const {
    const auto found = agents_.find(id);
    return found == agents_.end() ? nullptr : &found->second;
}

AgentRegistry::Agent* AgentRegistry::agent_of(const AgentPeer& peer) {
    Agent* const agent = find(peer.agent_id);
    return agent != nullptr && agent->peer.get() == &peer ? agent : nullptr;
}

void AgentRegistry::publish(Agent& agent, bool statistics_only) {
    const auto now = Clock::now();
    {
        auto fresh = std::make_shared<const AgentInfo>(agent.info);
        const std::lock_guard lock(snapshot_mutex_);
        snapshots_[agent.info.id] = std::move(fresh);
    }
    if (statistics_only && now - agent.reported_at < statistics_interval) return;
    agent.reported_at = now;
    changed_(agent.info);
}

void AgentRegistry::remove_old() {
    const auto now = Clock::now();
    std::erase_if(agents_, [&](const auto& agent) {
        return !agent.second.peer && (now - agent.second.disconnected_at > limits::gone_agents_time ||
                                      agents_.size() > limits::agent_connections + limits::gone_agents);
    });
    const std::lock_guard lock(snapshot_mutex_);
    std::erase_if(snapshots_, [&](const auto& agent) { return !agents_.contains(agent.first); });
}

std::vector<AgentPtr> AgentRegistry::snapshots() const {
    std::vector<AgentPtr> all;
    {
        const std::lock_guard lock(snapshot_mutex_);
        all.reserve(snapshots_.size());
        for (const auto& [id, agent] : snapshots_) all.push_back(agent);
    }
    std::ranges::stable_partition(all, [](const AgentPtr& agent) { return agent->connected; });
    return all;
}

AgentPtr AgentRegistry::snapshot(const std::string& id) const {
    const std::lock_guard lock(snapshot_mutex_);
    const auto found = snapshots_.find(id);
    return found == snapshots_.end() ? nullptr : found->second;
}

}  // namespace flamewire::server
