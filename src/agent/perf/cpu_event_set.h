// Events of whole CPUs: all that runs there, or what runs in some control groups, or what belongs to some processes.
// They do not require finding threads, but need a privilege (kernel.perf_event_paranoid at most 0, or cap_perfmon). All
// samples have one mode.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/perf/ring_event_set.h"
#include "agent/perf/thread_event_set.h"
#include "base/fd.h"

namespace flamewire::agent {

class CpuEventSet final : public RingEventSet {
public:
    // With targets: delivers only their samples and those of children born later.
    CpuEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel);

    Result<bool> attach();
    // Adds a notice: the targets' threads would need more files than may be open.
    void notify_instead_of_threads();
    std::vector<Unsampled> take_unsampled(std::uint64_t) override { return {}; }
    void follow(const std::set<std::uint32_t>& pids) override {
        if (of_targets_) followed_.insert(pids.begin(), pids.end());
    }

private:
    Result<std::vector<std::uint32_t>> choose_cpus() const;
    Result<bool> open_cpu(std::uint32_t cpu_index, wire::StackMode mode);
    [[nodiscard]] bool follows(const Record& record);

    Classification classify(const SampleRecord& sample, const OpenEvent& event) override;
    // Accepts all switches: those of out-of-scope threads have no effect, because none of their samples was delivered.
    bool counts_switch(const SwitchRecord&, const OpenEvent&) override { return true; }
    bool on_sideband(const MergedRecord& merged, const Record& record, const perf::Origin& origin) override;
    void on_sideband_lost() override {}
    bool poll_targets() override;

    std::uint32_t own_pid_;
    std::vector<Watched> targets_;
    bool of_targets_;                             // otherwise of all processes
    std::unordered_set<std::uint32_t> followed_;  // pids of the targets and of their children
    std::vector<UniqueFd> groups_;
    std::vector<std::uint32_t> online_;  // CPUs that were online at the first check
};

}  // namespace flamewire::agent
