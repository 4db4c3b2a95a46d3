"""One thread of waits-workload in its own log, in perf's records and in Flamewire, and checks that these agree. test_scheduling.py checks
replays of captures, test_off_cpu.py checks recordings."""
import collections
import time

from switches import check_life

# perf's record of a wake-up follows ours, after our call chain and stack copy: 6 to 25 us later, measured with copies of 2 KiB.
COPY_NS = 30_000
# The distance between our record of a switch, perf's record and the kernel's accounting: 10 to 16 us, measured next to perf and two busy loops.
SWITCH_NS = 20_000
AWAY = ("off-cpu", "run-queue", "io-wait")
# Each of these threads waits only for the other one.
WAKERS = {"pipe-reader": "pipe-writer", "mutex-waiter": "mutex-holder"}


class Thread:
    """`times`: run, runnable, blocked, io_wait (ns), preempted, slept, io_waits; `rows`: (event, functions, count, weight) of this thread; `perf`: the
    attributes of Scheduling by name, with keys of any type."""

    def __init__(self, life, times, rows, perf):
        self.life, self.name, self.tid, self.rows = life, life["thread"], life["tid"], rows
        for key in ("run_ns", "span_ns", "last_ns", "queued_ns", "turns", "preempted", "early", "ending"):
            setattr(self, f"perf_{key}", perf.get(key, {}).get(self.tid, 0))
        self.wakings_by_perf = {waker: count for (waker, woken), count in perf.get("wakings", {}).items() if woken == self.tid}
        self.run, self.runnable, self.blocked, self.io_wait, self.preempted, slept, io_waits = times
        self.total, self.slept = self.run + self.runnable + self.blocked + self.io_wait, slept + io_waits
        # A new thread's wait for its first turn on a CPU.
        self.new = self.weight("[new thread]", "run-queue")

    def weight(self, function="", *events):
        return sum(weight for event, frames, _, weight in self.rows if event in (events or AWAY) and any(function in frame for frame in frames))

    def count(self, event, function=""):
        return sum(count for name, frames, count, _ in self.rows if name == event and any(function in frame for frame in frames))

    def wakings(self):
        """Wake-ups by the innermost frame, which names the waker."""
        sums = collections.Counter()
        for event, frames, count, _ in self.rows:
            if event == "woken-by":
                sums[frames[-1]] += count
        return sums

    def __repr__(self):
        return repr({key: value for key, value in vars(self).items() if key != "rows"})


def check_switches(one):
    """A thread leaves a CPU once per turn, except in its last turn. Only perf sees a preemption after the thread's own events have ended."""
    unseen = one.perf_turns - 1 - one.slept - one.preempted
    assert 0 <= unseen <= one.perf_ending, one
    assert one.preempted == one.perf_preempted - unseen, one


def check_states(one):
    apart = check_life(one.total, {**one.life, "span_by_perf_ns": one.perf_span_ns})
    assert abs(one.run - one.perf_run_ns) <= apart, one
    assert one.total == one.run + one.weight() and one.runnable == one.weight("", "run-queue"), one


def waker_function(waker):
    return waker.replace("-", "_") + "("


def check_wakers(threads, dwarf, slack=lambda wakings: 0):
    """`slack`: the number of wake-ups that may differ between our records and perf's. Some occur while the thread leaves its CPU, or before
    the waker has its name."""
    for one in threads.values():
        apart = slack(sum(one.wakings_by_perf.values()))
        found, unseen = one.wakings(), "[not seen waking]"
        assert one.weight("", "woken-by") == one.blocked + one.io_wait, one
        # A thread that is woken before it has left its CPU slept for no time, so it has no row.
        assert 0 <= one.slept - found.total() <= one.perf_early + apart, (found, one)
        seen = found.total() - found[unseen]
        assert -apart <= sum(one.wakings_by_perf.values()) - seen <= one.perf_early + apart, (found, one)
    for woken, waker in WAKERS.items():
        one, row = threads[woken], f"[woken by {waker}]"
        found = one.wakings()[row]
        by_perf = one.wakings_by_perf[threads[waker].tid]
        assert abs(found - by_perf) <= slack(by_perf) and one.weight(row, "woken-by") >= 0.97 * one.weight("", "woken-by"), (found, one)
        # The waker's stack. The libc functions that write and unlock have no frame pointers.
        assert not dwarf or one.count("woken-by", waker_function(waker)) >= 0.97 * found, (found, one.rows)


def check_queue(one, copy_ns=COPY_NS, apart_ns=0):
    """Compared with perf's wake-ups, and with the kernel's accounting, in which a wait starts after our copy of the stack."""
    waits, switched, copies = one.runnable - one.new, SWITCH_NS * (one.preempted + one.slept + 1) + apart_ns, copy_ns * one.slept
    assert -switched <= waits - one.perf_queued_ns <= switched + copies, one
    # The program reads the kernel's values at its start and end, so they lack time outside. A wait after an unseen wake-up is unknown too.
    outside, unseen = max(0, one.total - one.life["wall_ns"]), one.weight("[not seen waking]", "woken-by")
    assert waits - one.life["queued_ns"] <= outside + switched + copies, one
    # For threads that timers wake, the kernel's value was up to 25 ms larger than ours and perf's, which agree.
    if one.name in (*WAKERS, "burner-1", "burner-2"):
        assert waits - one.life["queued_ns"] >= -switched - unseen, one


class Commands:
    """`done`: (name, time of sending, time of the answer) of each command, in ns of CLOCK_MONOTONIC."""

    def __init__(self):
        self.done = []

    def timed(self, name, call):
        sent_ns = time.monotonic_ns()
        answer = call()
        self.done.append((name, sent_ns, time.monotonic_ns()))
        return answer


def recorded_ns(commands):
    """(the least, the most) time with enabled events: each command takes effect between its sending and its answer."""
    least = most = 0
    begin = None
    for name, sent_ns, answered_ns in commands:
        if begin:
            least, most = least + sent_ns - begin[1], most + answered_ns - begin[0]
        # A change of the events replaces them at once. The time during the change may or may not be recorded.
        begin = None if name in ("pause", "stop") else (answered_ns if name == "configure" else sent_ns, answered_ns)
    return least, most
