"""Measures the CPU time that a process used between two moments that are known only afterwards, by reading /proc as often as the machine allows.
Only for processes whose threads all live meanwhile: /proc has no times of ended threads."""
import os
import pathlib
import threading
import time

# The kernel updates a running thread's time at each tick.
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def used_ns(pid):
    """The CPU time of all live threads."""
    used = 0
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            used += int(path.read_text(encoding="ascii").split()[0])
        except OSError:  # the thread has just ended
            pass
    return used


class Looks:
    """Reads the CPU time of a process repeatedly from the beginning to the end of a `with` block."""

    def __init__(self, pid):
        self.pid, self.looks, self.threads = pid, [], 0

    def __enter__(self):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._look()

    def _look(self):
        before = time.monotonic_ns()
        used = used_ns(self.pid)
        self.looks.append((before, time.monotonic_ns(), used))
        self.threads = max(self.threads, sum(1 for _ in pathlib.Path(f"/proc/{self.pid}/task").glob("*")))

    def _run(self):
        while not self._over.wait(0.02):
            self._look()

    def between(self, begin_ns, end_ns):
        """(the least, the most) CPU time in ns between two times of CLOCK_MONOTONIC within the block, allowing for the ticks of running threads."""
        def at(moment):
            return (max((used for _, after, used in self.looks if after <= moment), default=self.looks[0][2]),
                    min((used for before, _, used in self.looks if before >= moment), default=self.looks[-1][2]))

        first, last = at(begin_ns), at(end_ns)
        ticks = self.threads * TICK_NS
        return max(0, last[0] - first[1] - ticks), last[1] - first[0] + ticks
