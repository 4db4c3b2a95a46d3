// Tracks the off-CPU time of threads: the stack with which each left its CPU, the reason and the duration. Pure.
//
// For a context switch, the kernel reports in this order: a context-switches sample with the stack of the thread that
// leaves; PERF_RECORD_SWITCH out, which has a flag if the thread was still runnable (preempted); and PERF_RECORD_SWITCH
// in when it is back, perhaps on another CPU. The thread is off-CPU between the last two.
//
//            sample, out                                    in
//     running ───┼─────────── off-CPU ──────────┬───────────┼──── running
//                │                         every second     │
//                └─────────── slice ────────────┴── slice ──┘
//
// Off-CPU time is split into slices: at every full second of the clock, and when the thread is back. So long waits are
// visible while they last, and a slice covers at most one second. The timestamp of a slice is its end.
// - Threads that sleep when the recording starts count as off-CPU from its start, with an unknown stack.
// - New threads are off-CPU from their creation until they first run.
// - While events are off (a pause, a change of the event set), no switch is recorded. A thread that was off-CPU before
//   and comes back after it counts as off-CPU throughout. A thread that leaves again must have come back unseen. A pause
//   does not count for any thread; the time between two event sets counts for threads that are off-CPU.
// - When records are lost, the state of every thread is unknown until its next record, or until /proc reports it. That
//   time is counted.
//
// Besides the slices, which have stacks, this class produces thread times: the time each thread spent in each state,
// and the length of each run on a CPU and of the wait in the run queue before it. Active threads get them ten times per
// second, all threads once per second. Time between two contradictory records of a thread is left out.
//
// It has many functions, because there is one for each kind of record and of news from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/event_spec.h"
#include "agent/perf/record.h"
#include "agent/process/process_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Indexes of the off-CPU reasons in the events of a recording: the wanted ones are consecutive, in the order of
// OffCpuReason.
struct OffCpuEvents {
    std::uint32_t first = 0;
    std::uint8_t wanted = 0;  // bits of OffCpuReason; 0: none
    bool operator==(const OffCpuEvents&) const = default;
};

class OffCpuTracker {
public:
    struct Slice {
        ThreadHandle thread = 0;
        wire::Id stack = 0;  // 0: the switch or wake-up was not recorded
        bool born = false;   // off-CPU since its creation, so there is no stack
        std::uint32_t cpu = 0;
        OffCpuReason reason = OffCpuReason::off_cpu;
        std::uint64_t end_ns = 0, length_ns = 0;
    };

    // A context-switches sample. `reason` is off_cpu or io_wait.
    void leaves(std::uint32_t tid, ThreadHandle thread, wire::Id stack, std::uint32_t cpu, OffCpuReason reason,
                std::uint64_t time_ns);
    void switched(const SwitchRecord& record);
    // The thread is woken and runnable from now on. `stack` is the waker's.
    void woken(std::uint32_t tid, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns);
    // Returns the thread if it is asleep at that time, so that a wake-up has an effect; otherwise 0.
    [[nodiscard]] ThreadHandle asleep(std::uint32_t tid, std::uint64_t time_ns) const;
    // The thread is woken, but not asleep. If it is about to leave its CPU, it then only waits in the run queue.
    void woken_early(std::uint32_t tid, std::uint64_t time_ns);
    void born(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns);
    // The thread runs, and `thread` is its handle from now on.
    void execed(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns);
    void exited(std::uint32_t tid, std::uint64_t time_ns);
    // The thread was found in /proc, at the start or after a loss (`thread` 0: the same as before). A thread in
    // run_queue may be running.
    void found(std::uint32_t tid, ThreadHandle thread, OffCpuReason reason, std::uint64_t begin_ns);
    // Nothing was recorded from `from_ns` to `to_ns`, because of a pause or an exchange of the events.
    enum class Gap : std::uint8_t { pause, exchange };
    void gap(std::uint64_t from_ns, std::uint64_t to_ns, Gap gap);
    void forget();
    // Records were lost: the state of every thread is unknown.
    void on_lost_records();
    [[nodiscard]] std::vector<std::uint32_t> unknown_threads() const { return threads_in(State::unknown); }
    // The thread has exited, or cannot be inspected.
    void remove(std::uint32_t tid) { threads_.erase(tid); }
    // Thread time in unknown states, summed over all threads, since the last call.
    std::uint64_t take_unknown_ns() { return std::exchange(unknown_ns_, 0); }
    // Call it when the recording ends.
    void finish(std::uint64_t time_ns);
    // Ends slices of all threads that are off-CPU, and times of all threads, at `time_ns`.
    void cut(std::uint64_t time_ns);
    // Ends the times of active threads at `time_ns`.
    void cut_times(std::uint64_t time_ns);
    // Threads that may or may not be running: no record since they were found in a run queue, or since a gap.
    [[nodiscard]] std::vector<std::uint32_t> undecided() const { return threads_in(State::undecided); }
    // Reports the thread's current state in /proc. If /proc reports it twice with no record in between, assume it has
    // been true since the last known state. Otherwise a record of the change would have been pending the first time.
    void decide(std::uint32_t tid, std::optional<OffCpuReason> reason);

    std::vector<Slice> take_slices() { return std::exchange(slices_, {}); }
    [[nodiscard]] bool has_slices() const { return !slices_.empty(); }

    // Member `thread` is a ThreadHandle.
    std::vector<wire::ThreadTimes> take_times() { return std::exchange(times_, {}); }
    // Stacks of threads that are not running: ids of an epoch. The caller replaces them when the epoch ends.
    [[nodiscard]] std::vector<wire::Id*> stacks();

private:
    // gone: it has exited, and later records of it are ignored. unknown: since times.end_ns, after a loss.
    enum class State : std::uint8_t { on_cpu, leaving, off_cpu, undecided, exited, unknown };
    struct Thread {
        ThreadHandle thread = 0;
        wire::Id stack = 0;
        std::uint32_t cpu = 0;
        OffCpuReason reason = OffCpuReason::off_cpu;
        State state = State::on_cpu;
        bool born = false;
        std::uint64_t since_ns = 0;        // start of the part that is not in a slice yet
        std::optional<OffCpuReason> seen;  // of an undecided thread: the last state in /proc
        bool busy = false;                 // a record arrived since its last times
        std::uint64_t began_ns = 0;        // start of its state; 0: not recorded
        std::uint64_t asleep_ns = 0;       // off-CPU since then, as far as is known
        std::uint64_t woken_early_ns = 0;
        std::optional<OffCpuReason> reason_before_early_wake_up;  // a later wake-up restores it
        wire::ThreadTimes times;                                  // not in times_ yet; complete until their end
    };
    [[nodiscard]] std::vector<std::uint32_t> threads_in(State state) const;
    void emit_slice(Thread& thread, std::uint64_t until_ns);
    void emit_waker(const Thread& thread, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns);
    void emit_times(Thread& thread);
    // Adds the time until `until_ns` to its current state.
    static void spend(Thread& thread, std::uint64_t until_ns);
    // Its records until then contradict each other, because some were lost or fell between two event sets.
    void skip(Thread& thread, std::uint64_t until_ns);
    void move_to(Thread& thread, std::uint64_t time_ns);
    void add_unknown_time(Thread& thread, std::uint64_t until_ns);
    void end_unknown(Thread& thread, std::uint64_t time_ns);

    std::unordered_map<std::uint32_t, Thread> threads_;  // by tid
    std::uint64_t unknown_ns_ = 0;
    std::uint64_t skipped_ns_ = 0;  // unknown time, if a LOST record follows
    bool lost_records_ = false;
    std::vector<Slice> slices_;
    std::vector<wire::ThreadTimes> times_;
};

}  // namespace flamewire::agent
