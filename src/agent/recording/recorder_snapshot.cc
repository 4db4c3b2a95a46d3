#include "agent/recording/recorder_snapshot.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

// How old the list of processes in `status` may be, and its maximum length.
constexpr std::uint64_t list_processes_every_ns = 1'000'000'000;
constexpr std::size_t most_listed_processes = 64;

}  // namespace

Running RecorderSnapshot::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

Accounting RecorderSnapshot::accounting() const {
    const std::lock_guard lock(mutex_);
    return accounting_;
}

CounterTotals RecorderSnapshot::counter_totals() const {
    const std::lock_guard lock(mutex_);
    return counter_totals_;
}

std::string RecorderSnapshot::account_line() const {
    const std::lock_guard lock(mutex_);
    const Accounting& a = accounting_;
    const bool exact = a.samples_read - a.samples_duplicate - static_cast<std::uint64_t>(a.unemitted_switches) ==
                           a.rows_samples + a.samples_dropped &&
                       a.samples_lost == lost_stated_;
    const std::string switches = a.unemitted_switches != 0 ? fmt::format(" + switches {}", a.unemitted_switches) : "";
    return fmt::format(
        "samples read {} - duplicates {} = in rows {} + dropped {}{}; lost in the kernel {} = stated {}{}",
        a.samples_read, a.samples_duplicate, a.rows_samples, a.samples_dropped, switches, a.samples_lost, lost_stated_,
        exact ? "" : " (THEY DIFFER)");
}

void RecorderSnapshot::set_running(Running running) {
    const std::lock_guard lock(mutex_);
    running_ = std::move(running);
}

void RecorderSnapshot::update(const EventSetCounts& counts, std::uint64_t lost_stated, const Counting& counting,
                              const std::set<std::uint32_t>& members, const Folder& folder) {
    const std::lock_guard lock(mutex_);
    accounting_.samples_read = counts.samples_read;
    accounting_.samples_duplicate = counts.samples_duplicate;
    accounting_.samples_lost = counts.samples_lost;
    accounting_.ring_bytes = counts.ring_bytes;
    accounting_.unemitted_switches = folder.unemitted_switches();
    lost_stated_ = lost_stated;
    counter_totals_ = counting.totals();
    running_.counters = counting.states();
    running_.members.assign(members.begin(), members.end());
    if (const std::uint64_t now = monotonic_ns(); now >= list_processes_at_ns_ || running_.unwind_processes.empty()) {
        list_processes_at_ns_ = now + list_processes_every_ns;
        list_processes(folder);
    }
}

// The stacks of each process in `status`. Call it with the mutex locked.
void RecorderSnapshot::list_processes(const Folder& folder) {
    running_.unwind_processes.clear();
    for (ProcessStacks& process : folder.stacks_of_processes(most_listed_processes)) {
        const wire::ProcessUnwind& counts = process.counts;
        running_.unwind_processes.push_back({process.pid, std::move(process.comm), counts.mode, counts.why,
                                             counts.samples, counts.whole, counts.joined, counts.truncated,
                                             counts.open_end, counts.stopped, counts.frames, counts.stack_bytes});
    }
}

}  // namespace flamewire::agent
