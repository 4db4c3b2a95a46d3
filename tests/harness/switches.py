"""What perf(1) sees of the kernel's scheduler while something is recorded: the second opinion on how long threads ran and who woke them. Times are by the
wall clock, so with what interrupts and the hypervisor take of them, which the kernel's own books of a thread leave out."""
import collections
import contextlib
import os
import re
import subprocess

import disturbance
import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: events of whole CPUs take root; CI runs as root")
SWITCH = re.compile(r" (-?\d+) \[(\d+)\] +(\d+)\.(\d{9}): PERF_RECORD_SWITCH_CPU_WIDE (IN|OUT)")
WAKING = re.compile(r"^ *(\d+) +sched:sched_waking: .* pid=(\d+) ", re.M)


@contextlib.contextmanager
def recorded_by_perf(data, *options):
    """Of the whole machine, from the block's first statement to its last one. Where perf looks for tracefs there is one.
    With build-ids in its maps: where another has them, which is us, the kernel says so of everybody's maps, and perf 6.1 without them crashes on what stands there."""
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


class OnCpus(collections.Counter):
    """tid -> ns on a CPU; and in `span`, tid -> ns from first coming on one to last leaving one."""

    def __init__(self):
        super().__init__()
        self.span = {}


def read_turns(run, text):
    """Fills an OnCpus from what perf script prints of switches."""
    # Who leaves a CPU for the last time has no number any more: it is the one that came there.
    on_cpu, first = {}, {}
    for tid, cpu, seconds, ns, way in SWITCH.findall(text):
        at = int(seconds) * 1_000_000_000 + int(ns)
        if way == "IN":
            on_cpu[cpu] = int(tid), at
            first.setdefault(int(tid), at)
        elif cpu in on_cpu:
            thread, since = on_cpu.pop(cpu)
            run[thread] += at - since
            run.span[thread] = at - first[thread]


@contextlib.contextmanager
def run_by_perf(directory):
    """Yields OnCpus of all threads while the block runs, filled in at its end; empty for others than root."""
    data, run = directory / "switches.data", OnCpus()
    if os.geteuid() != 0:
        yield run
        return
    with recorded_by_perf(data, "-e", "dummy:u", "--switch-events"):
        yield run
    read_turns(run, script(data, "--show-switch-events", "--show-lost-events", "--ns"))


def check_life(total_ns, life):
    """What adds up to a thread's life, by perf: from its first moment on a CPU to its last, and before that at most since its creation
    began. Each switch has a record of ours and one of perf's, some microseconds apart."""
    apart = 10_000 * (life["slept"] + life["preempted"] + 10)
    span = life["span_by_perf_ns"]
    assert span - apart <= total_ns <= span + life["late_ns"] + apart, (total_ns, apart, life)
    return apart


@contextlib.contextmanager
def wakings_by_perf(directory):
    """Yields (waker's tid, woken tid) -> how often while the block runs. The waker of an interrupt is whoever it came upon."""
    data, wakings = directory / "wakings.data", collections.Counter()
    with recorded_by_perf(data, "-e", "sched:sched_waking"):
        yield wakings
    wakings.update((int(waker), int(woken)) for waker, woken in WAKING.findall(script(data, "--show-lost-events", "-F", "tid,event,trace")))
