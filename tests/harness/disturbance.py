"""Whether the machine disturbed a recording: by steal time, late timers or lost records. Load by other programs is not a disturbance.

docs/contributing/testing-live.md, "Error model", has the rules; tests/conftest.py applies them to tests that are marked `recording`."""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import bounds

# A recording is disturbed if more than this share of its length is affected (for steal time, of the time of all CPUs; for losses, of all samples).
STEAL = bounds.STOLEN
LATE = bounds.MERGED
LOST = 0.001
RETAKES = 3
# The timer's period, and its harmless lateness: a 999 Hz sampler merges two expirations only after one of its own periods.
PERIOD_S = 0.005
HARMLESS_S = 0.001
LOG = "FLAMEWIRE_DISTURBED"


def steal(text):
    """(steal time, time of all CPUs) in ticks, from /proc/stat."""
    fields = [int(word) for word in re.search(r"^cpu +(.*)$", text, re.M)[1].split()]
    # Guest time is part of user time.
    return fields[7] if len(fields) > 7 else 0, sum(fields[:8])


def late(due, now, queued_ns):
    """How late a timer was, without the time for which its thread was ready but waited for a CPU."""
    return max(0.0, now - due - queued_ns / 1e9)


def queued():
    """The time for which this process has waited for a CPU so far, in ns."""
    return int(pathlib.Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1])


def run_timer():
    """Sleeps for PERIOD_S repeatedly until standard input ends, then prints its measurements."""
    os.set_blocking(0, False)
    print("ready", flush=True)
    begin, waited = time.monotonic(), queued()
    lost, worst, due = 0.0, 0.0, begin
    while True:
        due = max(due + PERIOD_S, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        now, waits = time.monotonic(), queued()
        behind = late(due, now, waits - waited)
        waited = waits
        lost += max(0.0, behind - HARMLESS_S)
        worst = max(worst, behind)
        with contextlib.suppress(BlockingIOError):
            if os.read(0, 1) == b"":
                break
    print(json.dumps({"seconds": time.monotonic() - begin, "late_s": lost, "worst_s": worst}))


@dataclasses.dataclass
class Watch:
    """The disturbances of the machine while the `with` block ran."""
    reasons: list = dataclasses.field(default_factory=list)
    late_share: float = 0.0
    steal_share: float = 0.0

    def __enter__(self):
        self._stat = steal(pathlib.Path("/proc/stat").read_text(encoding="ascii"))
        self._timer = subprocess.Popen([sys.executable, "-S", __file__, "timer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._timer.stdout.readline()
        return self

    def __exit__(self, *_):
        seen = json.loads(self._timer.communicate()[0])
        stat = steal(pathlib.Path("/proc/stat").read_text(encoding="ascii"))
        self.late_share = seen["late_s"] / seen["seconds"]
        self.steal_share = (stat[0] - self._stat[0]) / max(1, stat[1] - self._stat[1])
        self.reasons += machine_reasons(self.steal_share, self.late_share, seen["worst_s"])


def machine_reasons(steal_share, late_share, worst_s):
    reasons = []
    if steal_share > STEAL:
        reasons.append(f"steal time: {100 * steal_share:.2f} % of the CPUs' time, more than {100 * STEAL:g} %")
    if late_share > LATE:
        reasons.append(f"late timers: {100 * late_share:.2f} % of the time, more than {100 * LATE:g} %; the latest by {1000 * worst_s:.0f} ms")
    return reasons


def loss_reasons(lost, samples, share=LOST):
    """For one session: samples that the kernel or the agent counted as lost."""
    if lost > share * (samples + lost):
        return [f"lost records: {lost} of {samples + lost} samples, more than {100 * share:g} %"]
    return []


def log(test, reason, attempt, outcome):
    """One line per attempt: "measured", "retaken" (it was disturbed) or "not measured" (every attempt was disturbed)."""
    if path := os.environ.get(LOG):
        file, _, recording = test.partition("::")
        line = {"test": file, "recording": recording, "reason": reason, "attempt": attempt, "outcome": outcome}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Disturbed(Exception):
    """Raised within a recording: a peer lost records, for example."""


class NotMeasured(Exception):
    """Every recording was disturbed."""


def undisturbed(test, take, losses=lambda: (), failures=(Exception,)):
    """The result of take(attempt), or the exception that it raises, for the first undisturbed recording. Results of disturbed recordings are discarded,
    good or bad. losses() returns further reasons after each recording."""
    for attempt in range(1, RETAKES + 2):
        watch, failure, value = Watch(), None, None
        with watch:
            try:
                value = take(attempt)
            except Disturbed as error:
                watch.reasons.append(str(error))
            except failures as error:
                failure = error
        reason = "; ".join([*watch.reasons, *losses()])
        if not reason:
            log(test, "", attempt, "measured")
            if failure:
                raise failure
            return value
        log(test, reason, attempt, "retaken" if attempt <= RETAKES else "not measured")
    raise NotMeasured(f"not measured: the machine disturbed each of {RETAKES + 1} recordings; the last one by {reason}")


def fixture(test, take):
    """undisturbed() for a fixture that records. If no recording was undisturbed, the tests that use the fixture are skipped."""
    import pytest

    try:
        return undisturbed(test, take)
    except NotMeasured as reason:
        return pytest.skip(str(reason))


if __name__ == "__main__":
    run_timer()
