// The state of a recording that other threads may read. The sampler thread updates it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/commands.h"
#include "agent/counting.h"
#include "agent/perf/event_set.h"
#include "agent/pipeline/folder.h"

namespace flamewire::agent {

class RecorderSnapshot {
public:
    // Any thread.
    [[nodiscard]] Running running() const;
    [[nodiscard]] Accounting accounting() const;
    [[nodiscard]] CounterTotals counter_totals() const;
    // The sample accounting in one line: samples from the kernel, and what they became.
    [[nodiscard]] std::string account_line() const;
    [[nodiscard]] bool paused() const { return paused_; }

    // The sampler thread.
    void set_running(Running running);
    void set_paused(bool paused) { paused_ = paused; }
    void set_counters(std::vector<CounterState> counters) {
        const std::lock_guard lock(mutex_);
        running_.counters = std::move(counters);
    }
    void set_count_by(CountBy by) {
        const std::lock_guard lock(mutex_);
        running_.count_by = by;
    }
    // A batch with `samples` samples was accepted by the sink.
    void add_sent(std::uint64_t samples) {
        const std::lock_guard lock(mutex_);
        accounting_.rows_samples += samples;
        ++accounting_.batches;
    }
    // Rows with `samples` samples were dropped.
    void add_dropped(std::uint64_t samples) {
        const std::lock_guard lock(mutex_);
        accounting_.samples_dropped += samples;
    }
    // `lost_stated`: the part of counts.samples_lost that is in a batch.
    void update(const EventSetCounts& counts, std::uint64_t lost_stated, const Counting& counting,
                const std::set<std::uint32_t>& members, const Folder& folder);
    // The next update() lists the processes even if the last list is recent.
    void list_processes_next() { list_processes_at_ns_ = 0; }

private:
    void list_processes(const Folder& folder);

    std::atomic<bool> paused_{false};
    std::uint64_t list_processes_at_ns_ = 0;

    mutable std::mutex mutex_;
    Running running_;
    Accounting accounting_;
    CounterTotals counter_totals_;
    std::uint64_t lost_stated_ = 0;
};

}  // namespace flamewire::agent
