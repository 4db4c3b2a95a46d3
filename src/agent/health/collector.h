// One round of health: what the settings ask for, as frames. It remembers the look before, for shares of CPU time.
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

// What the rest of the agent knows of the recording and of its own cost.
struct OwnState {
    std::vector<std::uint32_t> pids;  // of the recording, running or paused; the first is the one that was named first
    OwnCost cost;
};

class HealthCollector {
public:
    // A target with more processes is told by its busiest ones, and a process with more threads by its oldest.
    static constexpr std::size_t max_processes = 16, max_threads = 64, max_threads_a_round = 256;
    static constexpr std::size_t max_disks = 8, max_interfaces = 64;

    explicit HealthCollector(HealthRoots roots, std::uint64_t ticks_per_second)
        : roots_(std::move(roots)), ticks_per_second_(ticks_per_second), processes_(ticks_per_second) {}

    std::vector<std::string> round(const HealthSettings& settings, const OwnState& own, const Moment& now);
    // The next round is a first one: a share over a pause would be of another time than it says.
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
