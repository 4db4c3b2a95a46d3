// Processes, sampled with (thread x CPU) events that children inherit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/open_error.h"
#include "agent/perf/owners.h"
#include "agent/perf/ring_events.h"
#include "agent/perf/threads.h"
#include "agent/perf/unsampled.h"

namespace flamewire::agent {

// A process, and the data that shows whether it is still the same one.
struct Watched {
    Target target;
    TaskStat at_first;
};
bool target_gone(const Watched& watched);
// not_found if one of them does not exist.
Result<std::vector<Watched>> watch(const std::vector<Target>& targets);

class ThreadTargets {
public:
    // `events` must outlive this.
    explicit ThreadTargets(RingEvents& events) : events_(events) {}

    // Opens the events.
    Result<bool> attach();
    // The errno that prevented observing some of the targets' threads; 0: all are observed.
    [[nodiscard]] int lacking() const { return few_files_.threads > 0 ? few_files_.error : refused_.error; }
    // `drained_ns`: the samples up to this time were delivered.
    std::vector<Unsampled> take_unsampled(std::uint64_t now_ns, std::uint64_t drained_ns);

    Classification classify(const SampleRecord& sample, const OpenEvent& event);
    bool counts_switch(const SwitchRecord& change, const OpenEvent& event);
    // For each other record except losses and throttles: false if it must not be delivered. `id`: of its event.
    bool on_sideband(const CommRecord& comm, std::size_t ring, std::uint64_t id);
    bool on_sideband(const TaskRecord& task, std::size_t ring, std::uint64_t id);
    bool on_sideband(const MmapRecord& map, std::size_t ring, std::uint64_t id) {
        return !copies_[ring].is_copy(map, id);
    }
    bool on_sideband(const KsymbolRecord&, std::size_t, std::uint64_t) { return true; }
    void on_sideband_lost() { owners_.forget_all(); }
    // Call it after each round of reading.
    void after_round();
    // Whether all targets are gone. Call it about once per second, and if check_soon().
    bool poll();
    [[nodiscard]] bool check_soon() const { return check_soon_; }

private:
    // A thread to open.
    struct Found {
        std::uint32_t tid = 0, pid = 0;
        std::uint32_t breakpoints_of = 0;  // the process whose breakpoints it has
        wire::StackMode mode = wire::StackMode::fp;
    };
    // What children inherit.
    struct Inherited {
        std::uint32_t breakpoints_of = 0;
        wire::StackMode mode = wire::StackMode::fp;
    };
    // CPU time of a target since it was opened, in clock ticks.
    struct CpuTime {
        std::uint64_t user = 0, system = 0;
    };
    // Threads that are not observed: their number, and the error of the first of them, which belongs to `pid`.
    struct Missing {
        std::uint32_t threads = 0, pid = 0;
        int error = 0;
    };

    void discover();
    int open_thread(const Found& found);
    void open_found(const Found& found);
    [[nodiscard]] OpenFailure failure_of(const Missing& missing) const;
    void notify_missing(std::string code, const Missing& missing);
    std::optional<CpuTime> cpu_time_of(std::uint32_t pid);
    using Counted = std::pair<std::uint32_t, std::uint32_t>;  // an event index, and the pid of a target
    using SampleTotals = std::map<Counted, UnsampledAccount::Totals>;
    static void add_all(SampleTotals& totals, std::uint64_t UnsampledAccount::Totals::* one,
                        std::uint64_t UnsampledAccount::Totals::* all);
    [[nodiscard]] SampleTotals add_up_samples() const;
    void read_counts(SampleTotals& totals) const;
    bool leave_out_other_mode(const EventSpec& spec, std::uint32_t pid, std::uint64_t& counted);
    void scan_forks(std::vector<Found>& to_open);
    void cover(const TaskRecord& task, std::vector<Found>& to_open);
    [[nodiscard]] Found found_by(const TaskRecord& fork);

    RingEvents& events_;
    std::vector<Watched> targets_;
    bool check_soon_ = false;
    std::unordered_map<std::uint32_t, Inherited> inherited_;  // from targets, and children born while attaching
    std::vector<std::uint32_t> set_pids_;                     // of all sets, complete or not
    std::uint32_t whole_sets_ = 0;                            // number of these that were opened completely
    Missing few_files_, refused_;

    Coverage coverage_;
    std::uint64_t attach_until_ns_ = 0;
    std::vector<std::uint64_t> scanned_;  // per ring: coverage_ has the forks before this position
    std::vector<Found> late_threads_;

    ThreadOwners owners_;
    std::vector<SidebandCopies> copies_;  // per ring

    std::uint64_t exited_threads_ = 0, exited_seen_ = 0;
    std::uint64_t unsampled_at_ns_ = 0;
    std::map<Counted, UnsampledAccount> unsampled_;
    std::unordered_map<std::uint32_t, CpuTime> cpu_times_;  // of targets, by pid
};

}  // namespace flamewire::agent
