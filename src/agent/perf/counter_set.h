// Counting events on the threads of a recording, opened in groups that the PMU accepts and read together. Not
// thread-safe: call everything on the same thread (any one).
//
// Totals are inherited: the parent's event includes its later children, with what they counted until they exit. So each
// thread must be either opened or inherited, never both, since inherited counts cannot be separated afterwards (samples
// can: owners.h). Threads found before the first event is opened cannot have inherited, so all of them are opened. For
// threads born later the FORK record decides: the child inherited if its parent was open at that time.
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
#include "agent/perf/event_switch.h"
#include "agent/perf/kernel.h"
#include "agent/perf/record.h"
#include "agent/perf/scope.h"
#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

enum class CountBy : std::uint8_t { total, thread, cpu };

struct CounterSetOptions {
    std::vector<std::uint32_t> pids = {};  // with all their threads
    Scope scope = {};                      // wide: instead of pids; not combined with CountBy::thread
    CountBy by = CountBy::total;
    bool enable_on_exec = false;
    bool start_disabled = false;
};

// One counter since the previous reading.
struct CounterDelta {
    std::uint32_t counter = 0;       // index into the counters passed to open()
    std::uint32_t pid = 0, tid = 0;  // if by thread
    std::uint32_t cpu_plus_1 = 0;    // if by CPU
    wire::CounterStatus status = wire::CounterStatus::counted;
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// The name and status of a counter, for display.
struct CounterState {
    std::string name, part;
    wire::CounterStatus status = wire::CounterStatus::counted;
};

class CounterSet {
public:
    // `counters` must outlive the set. Counters with a status other than "counted" are not opened. not_found if no
    // thread is left, permission if the targets may not be observed.
    static Result<std::unique_ptr<CounterSet>> open(const CounterSetOptions& options, std::span<const Counter> counters,
                                                    const Kernel& kernel = real_kernel());
    ~CounterSet();
    CounterSet(const CounterSet&) = delete;
    CounterSet& operator=(const CounterSet&) = delete;

    // FORK and EXIT records of the targets, in time order.
    void on_task(const TaskRecord& task);
    Result<bool> enable() { return switch_all(true); }
    Result<bool> disable() { return switch_all(false); }

    // Counts since the previous reading (the first: since the set was opened). For totals: one entry per counter,
    // including those that were not opened. By thread and by CPU: only entries where the targets ran.
    std::vector<CounterDelta> read();

    // Threads that could not be opened because the process ran out of file descriptors.
    [[nodiscard]] std::uint32_t threads_skipped() const { return skipped_; }
    [[nodiscard]] std::size_t descriptors() const;

private:
    // A leader and its followers, or a single event. All share the enabled and running times.
    struct Group {
        std::vector<int> fds;
        std::vector<std::uint32_t> counters;
        std::vector<std::uint64_t> values;  // as of the previous reading
        std::uint64_t enabled_ns = 0, running_ns = 0;
    };
    // One thread (if by CPU: on one CPU), or a whole CPU.
    struct Member {
        std::uint32_t pid = 0, tid = 0;
        int cgroup = -1;  // wide: an open folder; -1: all tasks
        std::size_t cpu_index = 0;
        std::uint64_t complete_ns = 0;  // when all its events were open
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
    EventSwitch switch_;
    std::vector<Member> members_;
    std::vector<std::size_t> free_;                                       // of members_
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> by_tid_;  // into members_, of live threads
    std::unordered_set<std::uint32_t> inherited_;                         // threads born while attaching
    std::uint64_t attach_until_ns_ = 0;
    std::vector<bool> opened_;            // of each counter: on any thread
    std::vector<CounterDelta> of_ended_;  // by thread: counts of threads that exited since the previous reading
    std::vector<std::uint64_t> buffer_;   // of read_group
    std::vector<CounterDelta> sums_;      // of read
    std::uint32_t skipped_ = 0;
};

}  // namespace flamewire::agent
