// CPU use, clock difference and latency of an agent, from its batches. A value of one connection.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "server/link/agent_info.h"
#include "server/session/session.h"

namespace flamewire::server {

class AgentStatistics {
public:
    // Updates the agent's figures after a batch. `same_boot`: both ends read the same clock.
    void update(const IngestResult& taken, bool same_boot, AgentInfo& agent);
    // Forgets the CPU times, because another recording begins.
    void reset_cpu() { cpu_.clear(); }

private:
    std::deque<std::pair<std::uint64_t, std::uint64_t>> cpu_;  // (monotonic, cpu) ns of the last seconds
    std::optional<std::int64_t> least_difference_ns_;
};

}  // namespace flamewire::server
