"""What perf(1) sees of the kernel's switches while something is recorded: the second opinion on how long threads ran. By the wall clock, so with what
interrupts and the hypervisor take of it, which the kernel's own books of a thread leave out."""
import collections
import contextlib
import os
import re
import subprocess

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: events of whole CPUs take root; CI runs as root")
LINE = re.compile(r" (\d+) \[\d+\] (\d+)\.(\d{9}): PERF_RECORD_(?:SWITCH_CPU_WIDE (IN|OUT)|(LOST))")


@contextlib.contextmanager
def run_by_perf(directory):
    """Of all threads of the machine while the block runs: yields tid -> ns on a CPU, filled in at its end; empty for others
    than root."""
    data, run = directory / "switches.data", collections.Counter()
    if os.geteuid() != 0:
        yield run
        return
    orders, order = os.pipe()
    answer, answers = os.pipe()
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "dummy:u", "--switch-events", "-m", "8M", "-o", data, "-D", "-1", f"--control=fd:{orders},{answers}"],
                            pass_fds=(orders, answers), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    os.close(orders), os.close(answers)
    with open(order, "w") as say, open(answer) as hear:
        try:
            say.write("enable\n")
            say.flush()
            assert "ack" in hear.readline(), perf.stderr.read()
            yield run
            say.write("stop\n")
            say.flush()
            assert perf.wait(30) == 0, perf.stderr.read()
        finally:
            perf.kill()
            perf.communicate()
    text = subprocess.run(["perf", "script", "-i", data, "--show-switch-events", "--ns"], check=True, capture_output=True, text=True, timeout=120).stdout
    since = {}
    for line in text.splitlines():
        if match := LINE.search(line):
            tid, at = int(match[1]), int(match[2]) * 1_000_000_000 + int(match[3])
            assert not match[5], line
            if match[4] == "IN":
                since[tid] = at
            elif tid in since:
                run[tid] += at - since.pop(tid)
