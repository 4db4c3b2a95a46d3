// (Thread x CPU) events of all targets, inherited by children.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/perf/open_error.h"
#include "agent/perf/owners.h"
#include "agent/perf/ring_event_set.h"

namespace flamewire::agent {

// A process, and that it is still the same one.
struct Watched {
    Target target;
    std::uint64_t start_ticks = 0;
};
bool target_gone(const Watched& watched);
// not_found when one of them does not exist.
Result<std::vector<Watched>> watch(const std::vector<Target>& targets);

class ThreadEventSet final : public RingEventSet {
public:
    ThreadEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel)
        : RingEventSet(options, capabilities, kernel) {}

    Result<bool> attach();
    // The errno for which some of the targets' threads are not watched; 0: all are.
    [[nodiscard]] int lacking() const { return few_files_.threads > 0 ? few_files_.error : refused_.error; }

private:
    // A thread to open.
    struct Found {
        std::uint32_t tid = 0, pid = 0;
        wire::StackMode mode = wire::StackMode::fp;
    };
    // Threads that are not watched: how many, and why the first of them, which is of `pid`.
    struct Missing {
        std::uint32_t threads = 0, pid = 0;
        int error = 0;
    };

    void discover();
    int open_thread(const Found& found);
    void open_found(const Found& found);
    [[nodiscard]] OpenFailure failure_of(const Missing& missing) const;
    void say_missing(std::string code, const Missing& missing);
    void learn_forks(std::vector<Found>& to_open);
    [[nodiscard]] Found found_by(const TaskRecord& fork);

    Verdict judge(const SampleRecord& sample, const OpenEvent& event) override;
    bool judge_switch(const SwitchRecord& change, const OpenEvent& event) override;
    bool on_sideband(const MergedRecord& merged, const Record& record, const RecordOrigin& origin) override;
    void on_sideband_lost() override { owners_.forget_all(); }
    void after_round() override;
    bool look_for_targets() override;

    std::vector<Watched> targets_;
    std::unordered_map<std::uint32_t, wire::StackMode> modes_;  // of targets, and of their children while we attach
    std::uint32_t sets_ = 0;                                    // begun
    std::uint32_t whole_sets_ = 0;                              // of these, opened completely
    Missing few_files_, refused_;

    Coverage coverage_;
    std::uint64_t attach_until_ns_ = 0;
    std::vector<std::uint64_t> learned_;  // of each ring: forks before this position are known to coverage_
    std::vector<Found> late_threads_;

    ThreadOwners owners_;
    std::vector<SidebandCopies> copies_;  // of each ring
};

}  // namespace flamewire::agent
