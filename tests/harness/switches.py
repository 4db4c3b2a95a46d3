"""What perf(1) sees of the kernel's scheduler while something is recorded: the second opinion on how long threads ran and who woke them. Times are by the
wall clock, so with what interrupts and the hypervisor take of them, which the kernel's own books of a thread leave out."""
import collections
import contextlib
import os
import re
import subprocess

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: events of whole CPUs take root; CI runs as root")
SWITCH = re.compile(r" (\d+) \[\d+\] +(\d+)\.(\d{9}): PERF_RECORD_SWITCH_CPU_WIDE (IN|OUT)")
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
    assert "PERF_RECORD_LOST" not in text, "perf lost records"
    return text


@contextlib.contextmanager
def run_by_perf(directory):
    """Yields tid -> ns on a CPU of all threads while the block runs, filled in at its end; empty for others than root."""
    data, run = directory / "switches.data", collections.Counter()
    if os.geteuid() != 0:
        yield run
        return
    with recorded_by_perf(data, "-e", "dummy:u", "--switch-events"):
        yield run
    since = {}
    for tid, seconds, ns, way in SWITCH.findall(script(data, "--show-switch-events", "--show-lost-events", "--ns")):
        at = int(seconds) * 1_000_000_000 + int(ns)
        if way == "IN":
            since[tid] = at
        elif tid in since:
            run[int(tid)] += at - since.pop(tid)


@contextlib.contextmanager
def wakings_by_perf(directory):
    """Yields (waker's tid, woken tid) -> how often while the block runs. The waker of an interrupt is whoever it came upon."""
    data, wakings = directory / "wakings.data", collections.Counter()
    with recorded_by_perf(data, "-e", "sched:sched_waking"):
        yield wakings
    wakings.update((int(waker), int(woken)) for waker, woken in WAKING.findall(script(data, "--show-lost-events", "-F", "tid,event,trace")))
