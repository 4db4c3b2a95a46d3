// The counters of one recording: opens them, reads them at intervals, and adds up totals. On request, also counts per
// thread or per CPU with a second set of counters. Use it only on the sampler thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/perf/counter_set.h"
#include "agent/pipeline/folder.h"
#include "base/result.h"
#include "counters/derive.h"

namespace flamewire::agent {

// Short enough for live charts and for windows of one second. A reading costs one system call (~1 µs) per group and
// thread, so two per second are negligible.
inline constexpr std::uint64_t counter_interval_ns = 500'000'000;

struct CountingPlan {
    std::vector<RequestedCounter> wanted;
    std::vector<std::uint32_t> pids;
    Scope scope;  // wide: instead of pids
    bool user_only = false;
    bool enable_on_exec = false, start_disabled = false;
};

struct CounterTotals {
    std::vector<counters::Sum> sums;
    std::uint64_t elapsed_ns = 0;  // counting time, without pauses
};

class Counting {
public:
    // Errors: those of CounterSet::open. `kernel` must outlive the Counting.
    static Result<std::unique_ptr<Counting>> open(const CountingPlan& plan, const Capabilities& capabilities,
                                                  const Kernel& kernel = real_kernel());

    // Changes the counters, which then count the processes that are alive now. Previous counts stay in the totals.
    Result<bool> replace(const CountingPlan& plan, const Capabilities& capabilities, Folder& folder);
    Result<bool> count_by(CountBy by, const std::vector<std::uint32_t>& pids, Folder& folder);
    [[nodiscard]] CountBy by() const { return by_; }

    void on_task(const TaskRecord& task);
    // Call it when the launched command starts, because the time before does not count.
    void begin();
    Result<bool> pause(Folder& folder);
    Result<bool> resume();

    // Reads if the interval has passed. True if anything was counted since the last reading.
    bool read_if_due(std::uint64_t now_ns, Folder& folder);
    // Reads now. Also call it for the last reading.
    bool read(Folder& folder);

    [[nodiscard]] bool counts_something() const { return !counters_.empty(); }
    [[nodiscard]] const CounterTotals& totals() const { return totals_; }
    [[nodiscard]] std::vector<CounterState> states() const;
    std::vector<wire::Notice> take_notices();

private:
    struct Part {
        std::unique_ptr<CounterSet> set;
        std::uint64_t start_ns = 0;  // start of the next reading
        bool after_gap = false;
    };

    explicit Counting(const Kernel& kernel) : kernel_(kernel) {}
    Result<bool> open_total(const CountingPlan& plan, const Capabilities& capabilities);
    bool read_scope(Part& scope, Folder& folder);
    void add_to_totals(const std::vector<CounterDelta>& deltas, std::uint64_t elapsed_ns);
    void note_skipped(const CounterSet& set);

    const Kernel& kernel_;
    std::vector<Counter> counters_;              // of both sets
    std::vector<std::size_t> sum_of_;            // counter -> index into totals_.sums
    std::vector<wire::CounterStatus> statuses_;  // from the last reading
    Part total_, detail_;
    CountBy by_ = CountBy::total;  // total: no detail
    std::vector<std::uint32_t> pids_;
    Scope scope_;
    bool paused_ = false, skipped_notified_ = false;
    std::uint64_t next_ns_ = 0;
    CounterTotals totals_;
    std::vector<wire::Notice> notices_;
};

}  // namespace flamewire::agent
