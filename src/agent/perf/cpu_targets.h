// What is sampled with events of whole CPUs: all that runs there, or what runs in some control groups, or what belongs
// to some processes. These events need no list of threads, but a privilege (kernel.perf_event_paranoid at
// most 0, or cap_perfmon). All samples have one mode.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/perf/ring_events.h"
#include "agent/perf/thread_targets.h"
#include "base/fd.h"

namespace flamewire::agent {

class CpuTargets {
public:
    // With targets: only their samples count, and those of children born later. `events` must outlive this.
    explicit CpuTargets(RingEvents& events);

    // Opens the events.
    Result<bool> attach();
    // Adds a notice: the targets' threads would need more files than may be open.
    void notify_instead_of_threads();
    void follow(const std::set<std::uint32_t>& pids) {
        if (of_targets_) followed_.insert(pids.begin(), pids.end());
    }

    // As in ThreadTargets.
    Classification classify(const SampleRecord& sample, const OpenEvent& event);
    // Accepts all switches: those of out-of-scope threads have no effect, because none of their samples was delivered.
    bool counts_switch(const SwitchRecord&, const OpenEvent&) { return true; }
    bool on_sideband(const TaskRecord& task, std::size_t ring, std::uint64_t id);
    bool on_sideband(const CommRecord& comm, std::size_t, std::uint64_t) { return follows(comm.pid); }
    bool on_sideband(const MmapRecord& map, std::size_t, std::uint64_t) { return follows(map.pid); }
    bool on_sideband(const KsymbolRecord&, std::size_t, std::uint64_t) { return true; }
    void on_sideband_lost() {}
    bool poll();
    [[nodiscard]] bool check_soon() const { return check_soon_; }

private:
    Result<bool> open_cpu(std::uint32_t cpu_index, wire::StackMode mode);
    [[nodiscard]] bool follows(std::uint32_t pid) const { return !of_targets_ || followed_.contains(pid); }

    RingEvents& events_;
    bool check_soon_ = false;
    std::uint32_t own_pid_;
    std::vector<Watched> targets_;
    bool of_targets_;                             // otherwise of all processes
    std::unordered_set<std::uint32_t> followed_;  // pids of the targets and of their children
    std::vector<UniqueFd> groups_;
    std::vector<std::uint32_t> online_;  // CPUs that were online at the first check
};

}  // namespace flamewire::agent
