// /metrics: this server and its agents in the text format of Prometheus (version 0.0.4, prometheus.io/docs, "Exposition
// formats"). Counters end in _total, times are in seconds, sizes in bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/http/request.h"
#include "server/link/agent_info.h"
#include "server/session/session.h"

namespace flamewire::server {

struct MetricsFacts {
    std::chrono::steady_clock::time_point started;
    std::vector<AgentPtr> agents;
    std::vector<std::shared_ptr<Session>> sessions;  // in memory
};

Answer metrics_answer(const MetricsFacts& facts);

}  // namespace flamewire::server
