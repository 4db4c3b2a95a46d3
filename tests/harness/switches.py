"""What perf(1) records of the kernel's scheduler meanwhile: an independent measurement of how long threads ran and which thread woke them. Times are
wall-clock times, so they include interrupts and stolen time, which the kernel's own accounting of a thread excludes."""
import collections
import contextlib
import os
import re
import subprocess

import disturbance
import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: events of whole CPUs need root; CI runs as root")
# A thread that exits loses its own events first. perf still sees preemptions until its EXIT record, 14 us later when measured.
ENDING_NS = 100_000
RECORD = re.compile(r" (-?\d+) \[(\d+)\] +(\d+)\.(\d{9}): +(?:PERF_RECORD_(?:SWITCH_CPU_WIDE )?(IN|OUT preempt|OUT|EXIT)|sched:sched_waking: .* pid=(\d+) )")


@contextlib.contextmanager
def recorded_by_perf(data, *options):
    """Records the whole machine from the block's first statement to its last one, with tracefs mounted where perf expects it.
    --buildid-mmap is needed: if another profiler (the agent) requests build-ids, the kernel adds them to all map records, and perf 6.1 crashes on
    them without this option."""
    orders, order = os.pipe()
    answer, answers = os.pipe()
    perf = subprocess.Popen(["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh",
                             "perf", "record", "-q", "-a", *options, "-m", "8M", "-o", data, "--buildid-mmap", "-D", "-1", f"--control=fd:{orders},{answers}"],
                            pass_fds=(orders, answers), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    os.close(orders), os.close(answers)
    with open(order, "w") as say, open(answer) as hear:
        try:
            say.write("enable\n")
            say.flush()
            assert "ack" in hear.readline(), perf.communicate()[1]
            yield
            say.write("stop\n")
            say.flush()
            assert perf.wait(30) == 0, perf.communicate()[1]
        finally:
            perf.kill()
            perf.communicate()


def script(data, *options):
    text = subprocess.run(["perf", "script", "-i", data, *options], check=True, capture_output=True, text=True, timeout=120).stdout
    if "PERF_RECORD_LOST" in text:
        raise disturbance.Disturbed("perf lost records")
    return text


class Scheduling:
    """By tid: ns on CPUs, from the start of the first turn to the end of the last, in the last turn, and ready for a CPU. Also the number of turns, of turns
    after a preemption, and of wake-ups while still on a CPU; and whether the last turn was so short after a preemption that the thread's own events may
    have ended before. By (waker's tid, woken tid): wake-ups. A wake-up by an interrupt counts for the interrupted thread."""

    def __init__(self):
        self.run_ns, self.queued_ns, self.turns, self.preempted, self.early, self.ending, self.wakings = (collections.Counter() for _ in range(7))
        self.span_ns, self.last_ns = {}, {}


def read_records(found, text):
    """Fills a Scheduling from perf script's lines for switches and wake-ups. A new thread's wait for its first turn is not included."""
    # A thread's events end in its last turn, ours and perf's. When it leaves its CPU up to 0.1 ms later, the record has no thread id.
    on_cpu, first, ready, lost_cpu, resumed = {}, {}, {}, set(), set()
    for tid, cpu, seconds, ns, way, woken in RECORD.findall(text):
        at, tid, woken = int(seconds) * 1_000_000_000 + int(ns), int(tid), int(woken or 0)
        if woken:
            found.wakings[tid, woken] += 1
            if any(thread == woken for thread, _ in on_cpu.values()):
                found.early[woken] += 1
            else:
                ready.setdefault(woken, at)
        elif way == "IN":
            on_cpu[cpu] = tid, at
            first.setdefault(tid, at)
            found.turns[tid] += 1
            found.queued_ns[tid] += at - ready.pop(tid, at)
            found.preempted[tid] += tid in lost_cpu
            (resumed.add if tid in lost_cpu else resumed.discard)(tid)
            lost_cpu.discard(tid)
        elif cpu in on_cpu:
            thread, since = on_cpu.pop(cpu)
            found.run_ns[thread] += at - since
            found.span_ns[thread], found.last_ns[thread] = at - first[thread], at - since
            found.ending[thread] += way == "EXIT" and thread in resumed and at - since < ENDING_NS
            if way == "OUT preempt":
                lost_cpu.add(thread)
                ready[thread] = at


@contextlib.contextmanager
def scheduling_by_perf(directory):
    """Yields a Scheduling of what happens while the block runs, filled in at its end."""
    data, found = directory / "scheduling.data", Scheduling()
    with recorded_by_perf(data, "-e", "sched:sched_waking", "--switch-events"):
        yield found
    read_records(found, script(data, "--show-switch-events", "--show-task-events", "--show-lost-events", "--ns"))


def check_life(total_ns, life):
    """The sum of a thread's states covers its life as perf recorded it: from its first moment on a CPU to its last, and before that at most since its
    creation began. Each switch has one of our records and one of perf's, some microseconds apart."""
    apart = 10_000 * (life["slept"] + life["preempted"] + 10)
    span = life["span_by_perf_ns"]
    assert span - apart <= total_ns <= span + life["late_ns"] + apart, (total_ns, apart, life)
    return apart


def table(text):
    """Thread -> the numbers of its line in the table that --stat sched and `flamewire report --sched` print."""
    lines = (re.match(r"(\S.*?):(\d+) +([\d. |]+)$", line) for line in text.splitlines())
    return {line[1]: [float(number) for number in line[3].replace("|", " ").split()] for line in lines if line}
