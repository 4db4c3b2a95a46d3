#include "server/link/agent_statistics.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t cpu_window_ns = 5'000'000'000;

}  // namespace

void AgentStatistics::update(const IngestResult& taken, bool same_boot, AgentInfo& agent) {
    if (!least_difference_ns_ || taken.clock_difference_ns < *least_difference_ns_)
        least_difference_ns_ = taken.clock_difference_ns;
    const std::int64_t offset_ns = same_boot ? 0 : *least_difference_ns_;
    agent.clock_offset_ms = static_cast<double>(offset_ns) / 1e6;
    agent.latency_ms = static_cast<double>(taken.clock_difference_ns - offset_ns) / 1e6;
    if (!taken.stats) return;
    agent.stats = taken.stats;
    cpu_.emplace_back(taken.monotonic_ns, taken.stats->cpu_ns);
    while (cpu_.size() > 2 && cpu_.back().first - cpu_.front().first > cpu_window_ns) cpu_.pop_front();
    const auto [first_ns, first_cpu] = cpu_.front();
    if (taken.monotonic_ns > first_ns && taken.stats->cpu_ns >= first_cpu)
        agent.cpu_percent = 100.0 * static_cast<double>(taken.stats->cpu_ns - first_cpu) /
                            static_cast<double>(taken.monotonic_ns - first_ns);
}

}  // namespace flamewire::server
