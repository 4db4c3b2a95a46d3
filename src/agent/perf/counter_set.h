// Counting events on the threads of a recording: opened in groups that the PMU accepts, read together. Not thread-safe;
// everything is called on one thread, any.
//
// Totals are inherited: children born later, and what they counted when they end, are in the parent's event. So a
// thread must be opened or have inherited, never both, since inherited counts cannot be told apart afterwards (samples
// can: owners.h). The threads found first, before anything was opened, cannot have inherited and are all opened. Of
// those born later the FORK record decides: the child inherited when its parent was open by then.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "agent/perf/counter_spec.h"
#include "agent/perf/event_set.h"
#include "agent/perf/kernel.h"
#include "agent/perf/record.h"
#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

enum class CountBy : std::uint8_t { total, thread, cpu };

struct CounterSetOptions {
    std::vector<std::uint32_t> pids = {};  // with all their threads
    Scope scope = {};                      // wide: instead of pids, and not by thread
    CountBy by = CountBy::total;
    bool enable_on_exec = false;
    bool start_disabled = false;
};

// One counter since the last reading.
struct CounterDelta {
    std::uint32_t counter = 0;       // index into the counters that the set was opened with
    std::uint32_t pid = 0, tid = 0;  // by thread
    std::uint32_t cpu_plus_1 = 0;    // by CPU
    wire::CounterStatus status = wire::CounterStatus::counted;
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// What is counted, for people.
struct CounterState {
    std::string name, part;
    wire::CounterStatus status = wire::CounterStatus::counted;
};

class CounterSet {
public:
    // `counters` must outlive the set. Those with a word instead of a value are not opened. not_found when no thread is
    // left, permission when the targets may not be watched.
    static Result<std::unique_ptr<CounterSet>> open(const CounterSetOptions& options, std::span<const Counter> counters,
                                                    const Kernel& kernel = real_kernel());
    ~CounterSet();
    CounterSet(const CounterSet&) = delete;
    CounterSet& operator=(const CounterSet&) = delete;

    // FORK and EXIT records of the targets, in the order of time.
    void on_task(const TaskRecord& task);
    Result<bool> enable() { return switch_all(true); }
    Result<bool> disable() { return switch_all(false); }

    // What was counted since the last reading (the first: since it was opened). By total one entry a counter, also for
    // words; by thread and by CPU only of those on which the targets ran.
    std::vector<CounterDelta> read();

    // Threads that could not be opened for want of file descriptors.
    [[nodiscard]] std::uint32_t threads_skipped() const { return skipped_; }
    [[nodiscard]] std::size_t descriptors() const;

private:
    // A leader and its followers, or one event alone; times are common to all.
    struct Group {
        std::vector<int> fds;
        std::vector<std::uint32_t> counters;
        std::vector<std::uint64_t> values;  // as of the last reading
        std::uint64_t enabled_ns = 0, running_ns = 0;
    };
    // One thread, by CPU on one CPU; or a whole CPU.
    struct Member {
        std::uint32_t pid = 0, tid = 0;
        int cgroup = -1;  // wide: an open folder; -1: whoever runs
        std::size_t cpu_index = 0;
        std::uint64_t complete_ns = 0;  // when it was open
        bool exited = false, had_children = false;
        std::vector<Group> groups;
    };

    CounterSet(const CounterSetOptions& options, std::span<const Counter> counters, const Kernel& kernel);
    void plan();
    [[nodiscard]] bool fits(const std::vector<std::uint32_t>& group) const;
    Result<bool> attach();
    int open_thread(std::uint32_t pid, std::uint32_t tid);
    Result<bool> attach_wide();
    int open_member(Member& member, int cpu);
    int open_group(const Member& member, int cpu, std::span<const std::uint32_t> counters, Group& group) const;
    void close(Member& member);
    Result<bool> switch_all(bool on);
    void apply_switch();
    void read_group(Group& group, std::span<CounterDelta> deltas);
    void read_thread(Member& member, std::vector<CounterDelta>& into);
    std::vector<CounterDelta> read_sums();
    void share_enabled_time();
    [[nodiscard]] wire::CounterStatus status_of(std::uint32_t counter, const CounterDelta& delta) const;
    [[nodiscard]] CounterAttrOptions attr_options(bool leader) const;

    CounterSetOptions options_;
    std::span<const Counter> counters_;
    Kernel kernel_;
    std::vector<UniqueFd> cgroups_;
    std::vector<int> cpus_;                         // -1: all
    std::vector<std::vector<std::uint32_t>> plan_;  // indexes of counters, by group
    bool group_read_ = true;
    bool enabled_, exec_awaited_;
    std::uint64_t apply_until_ns_ = 0;
    std::vector<Member> members_;
    std::vector<std::size_t> free_;                                       // of members_
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> by_tid_;  // into members_, of threads that live
    std::unordered_set<std::uint32_t> inherited_;                         // born while we attached
    std::uint64_t attach_until_ns_ = 0;
    std::vector<bool> opened_;            // of each counter: on any thread
    std::vector<CounterDelta> of_ended_;  // by thread: what threads counted that ended since the last reading
    std::vector<std::uint64_t> buffer_;   // of read_group
    std::vector<CounterDelta> sums_;      // of read
    std::uint32_t skipped_ = 0;
};

}  // namespace flamewire::agent
