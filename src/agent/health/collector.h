// Collects one round of health data, as the settings request, and returns it as frames. Keeps the previous readings to
// compute CPU usage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/cpu.h"
#include "agent/health/frames.h"
#include "agent/health/process.h"
#include "agent/health/roots.h"
#include "agent/health/settings.h"

namespace flamewire::agent {

// State of the recording and cost of the agent, supplied by the rest of the agent.
struct OwnState {
    std::vector<std::uint32_t> pids;  // of the recording, running or paused; begins with the first that the user named
    OwnCost cost;
};

class HealthCollector {
public:
    // Of a target with more processes, only the busiest are reported; of a process with more threads, only the oldest.
    static constexpr std::size_t max_processes = 16, max_threads = 64, max_threads_a_round = 256;
    static constexpr std::size_t max_disks = 8, max_interfaces = 64;

    explicit HealthCollector(HealthRoots roots, std::uint64_t ticks_per_second)
        : roots_(std::move(roots)), ticks_per_second_(ticks_per_second), processes_(ticks_per_second) {}

    std::vector<std::string> round(const HealthSettings& settings, const OwnState& own, const Moment& now);
    // Discards the previous readings, so that no CPU usage is computed across a pause.
    void forget();

private:
    std::optional<std::uint32_t> own_share(const OwnCost& cost, const Moment& now);
    void add_threads(std::vector<std::string>& frames, const std::vector<ProcessHealth>& processes, const Moment& now);

    HealthRoots roots_;
    std::uint64_t ticks_per_second_;
    CpuUsage usage_;
    ProcessWatch processes_;
    struct OwnBefore {
        std::uint64_t cpu_ns = 0, at_ns = 0;
    };
    std::optional<OwnBefore> own_before_;
};

}  // namespace flamewire::agent
