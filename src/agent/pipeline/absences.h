// The time that threads are not on a CPU: with which stack each left, why, and for how long. Pure.
//
// What the kernel tells of a switch, in this order: a sample of context-switches with the stack of the thread that
// leaves; PERF_RECORD_SWITCH out, which says whether it could have run on (preempted); and PERF_RECORD_SWITCH in when it
// is back, perhaps on another CPU. An absence is the time between the last two.
//
//            sample, out                                    in
//     running ───┼──────────── away ────────────┬───────────┼──── running
//                │                         every second     │
//                └─────────── piece ────────────┴── piece ──┘
//
// It is told in pieces: where a second of the clock ends, and where the thread comes back. So long waits show while they
// last, and no piece is more than a second away from the time that it is about. A piece stands at its end.
// - Threads that sleep when the recording begins are away from its beginning on, with a stack that nobody saw.
// - New threads are away from their birth until they first run.
// - While events are off (a pause, another event set), nobody is seen to come or go. Who is away before and comes back
//   after it was away all the time, as far as anybody can tell; who leaves anew came back unseen. A pause counts for
//   nobody; the moment between two event sets counts for those who are away.
// - When records are lost, the state of every thread is unknown until its next record, or until /proc reports it. That
//   time is counted.
//
// Beside the pieces, which have stacks, stand the times: what each thread did with its life, on a CPU too, and how long
// each of its turns there and in the queue before was. They are told ten times a second of threads that did something,
// and once a second of all. What is between two records of a thread that do not fit together is nowhere.
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

// Where the kinds of absence stand among the events of a recording: those wanted one after the other, in Away's order.
struct AbsenceEvents {
    std::uint32_t first = 0;
    std::uint8_t wanted = 0;  // bits of Away; 0: none
    bool operator==(const AbsenceEvents&) const = default;
};

class Absences {
public:
    struct Piece {
        ThreadHandle thread = 0;
        wire::Id stack = 0;  // 0: nobody saw the thread leave, or be woken
        bool born = false;   // since its birth, so there is no stack
        std::uint32_t cpu = 0;
        Away kind = Away::off_cpu;
        std::uint64_t end_ns = 0, length_ns = 0;
    };

    // The sample; `kind` is off_cpu or io_wait.
    void leaves(std::uint32_t tid, ThreadHandle thread, wire::Id stack, std::uint32_t cpu, Away kind,
                std::uint64_t time_ns);
    void switched(const SwitchRecord& record);
    // Somebody wakes it: it could run from now on. `stack` is that one's.
    void woken(std::uint32_t tid, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns);
    // The thread, when it is asleep at that time, so that waking it means something; else 0.
    [[nodiscard]] ThreadHandle asleep(std::uint32_t tid, std::uint64_t time_ns) const;
    // It is woken, but not asleep. Perhaps it is about to leave its CPU: then it only waits for the next turn.
    void woken_early(std::uint32_t tid, std::uint64_t time_ns);
    void born(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns);
    // It runs, and is another from now on.
    void execed(std::uint32_t tid, ThreadHandle thread, std::uint64_t time_ns);
    void exited(std::uint32_t tid, std::uint64_t time_ns);
    // Found in /proc at the beginning, or again after a loss (`thread` 0: the same as before). A thread in run_queue may
    // be running.
    void found(std::uint32_t tid, ThreadHandle thread, Away kind, std::uint64_t begin_ns);
    // Nothing was recorded from `from_ns` to `to_ns`: wanted so, or because the events were exchanged.
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
    // The recording ends.
    void finish(std::uint64_t time_ns);
    // Pieces of all that are away, and times of all, until `time_ns`.
    void cut(std::uint64_t time_ns);
    // Times of those that did something.
    void cut_times(std::uint64_t time_ns);
    // Of those nobody knows whether they are here: no record came since they were found in a run queue, or since a gap.
    [[nodiscard]] std::vector<std::uint32_t> undecided() const { return threads_in(State::maybe_away); }
    // What /proc says of it now. Said twice with no record between, it has been so since it was last known: were it only
    // just so, a record of that would be on its way at the first time.
    void decide(std::uint32_t tid, std::optional<Away> kind);

    std::vector<Piece> take_pieces() { return std::exchange(pieces_, {}); }
    [[nodiscard]] bool has_pieces() const { return !pieces_.empty(); }

    // Their `thread` is a ThreadHandle.
    std::vector<wire::ThreadTimes> take_times() { return std::exchange(times_, {}); }
    // Of those that are away: ids of an epoch, which the caller changes when it ends.
    [[nodiscard]] std::vector<wire::Id*> stacks();

private:
    // gone: it has ended, and what is heard of its last steps says nothing. unknown: since times.end_ns, after a loss.
    enum class State : std::uint8_t { here, leaving, away, maybe_away, gone, unknown };
    struct Thread {
        ThreadHandle thread = 0;
        wire::Id stack = 0;
        std::uint32_t cpu = 0;
        Away kind = Away::off_cpu;
        State state = State::here;
        bool born = false;
        std::uint64_t since_ns = 0;   // of what was not told yet
        std::optional<Away> seen;     // of one that is undecided: what was said last
        bool busy = false;            // a record came since its times were told
        std::uint64_t began_ns = 0;   // it is in its state since then; 0: nobody saw it begin
        std::uint64_t asleep_ns = 0;  // away since then, as far as is known
        std::uint64_t woken_early_ns = 0;
        std::optional<Away> left_as;  // of one that was woken early, if it was: a later waker knows better
        wire::ThreadTimes times;      // not told yet; known until their end
    };
    [[nodiscard]] std::vector<std::uint32_t> threads_in(State state) const;
    void tell(Thread& thread, std::uint64_t until_ns);
    void tell_waker(const Thread& thread, wire::Id stack, std::uint32_t cpu, std::uint64_t time_ns);
    void tell_times(Thread& thread);
    // Until then it did what it does.
    static void spend(Thread& thread, std::uint64_t until_ns);
    // Its records until then contradict each other, as some are lost or fell between two event sets.
    void skip(Thread& thread, std::uint64_t until_ns);
    void move_to(Thread& thread, std::uint64_t time_ns);
    void add_unknown_time(Thread& thread, std::uint64_t until_ns);
    void end_unknown(Thread& thread, std::uint64_t time_ns);

    std::unordered_map<std::uint32_t, Thread> threads_;  // by tid
    std::uint64_t unknown_ns_ = 0;
    std::uint64_t skipped_ns_ = 0;  // unknown time, if a LOST record follows
    bool lost_records_ = false;
    std::vector<Piece> pieces_;
    std::vector<wire::ThreadTimes> times_;
};

}  // namespace flamewire::agent
