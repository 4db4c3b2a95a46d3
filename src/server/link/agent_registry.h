// The agents that are connected, and those that disconnected in the last minutes. The io thread changes them. Any thread
// can read their snapshots.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/link/agent_info.h"

namespace flamewire::server {

struct AgentPeer;

class AgentRegistry {
public:
    using Clock = std::chrono::steady_clock;
    struct Agent {
        AgentInfo info;
        std::shared_ptr<AgentPeer> peer;  // its newest connection; null: disconnected
        Clock::time_point disconnected_at{};
        Clock::time_point reported_at{};  // last `changed`
        bool same_boot = false;
    };

    explicit AgentRegistry(std::function<void(const AgentInfo&)> changed) : changed_(std::move(changed)) {}

    // The list, by id, and what changes it: io thread.
    [[nodiscard]] std::map<std::string, Agent>& agents() { return agents_; }
    [[nodiscard]] const std::map<std::string, Agent>& agents() const { return agents_; }
    // Null if it is not listed.
    [[nodiscard]] Agent* find(const std::string& id);
    [[nodiscard]] const Agent* find(const std::string& id) const;
    // The agent whose newest connection this is. Null if there is none.
    [[nodiscard]] Agent* agent_of(const AgentPeer& peer);
    // Adds the agent if it is not listed.
    Agent& entry(const std::string& id) { return agents_[id]; }
    // Makes a change visible to other threads. Reports it, but changes of statistics not more than twice per second.
    void publish(Agent& agent, bool statistics_only = false);
    // Removes those that disconnected too long ago, or that are too many.
    void remove_old();

    // Connected agents first, then the others; sorted by id. Any thread.
    [[nodiscard]] std::vector<AgentPtr> snapshots() const;
    // Null if there is no such agent. Any thread.
    [[nodiscard]] AgentPtr snapshot(const std::string& id) const;

private:
    const std::function<void(const AgentInfo&)> changed_;
    std::map<std::string, Agent> agents_;
    mutable std::mutex snapshot_mutex_;
    std::map<std::string, AgentPtr> snapshots_;  // of agents_
};

}  // namespace flamewire::server
