"""Events with one sample each: page faults against perf stat, tracepoints against perf stat and against the program's own count,
filters of the kernel, and tracefs at any mount point."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from flamewire import BIN, TESTS_BIN

AGENT = BIN / "flamewire-agent"


def run(*arguments, **options):
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **options)


def record(directory, *arguments, program):
    """The session of a launched program, and the program's output."""
    path = directory / "recorded.flw"
    outcome = run(AGENT, "--output", path, "--force", *arguments, "--", *program)
    assert outcome.returncode == 0, outcome
    return path, outcome


def weights(path, event):
    """Stack of functions -> weight in the event's unit."""
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed", "-e", event, "--weights")
    assert outcome.returncode == 0, outcome
    lines = [line.rsplit(" ", 1) for line in outcome.stdout.splitlines()]
    return {tuple(names.split(";")): int(number) for names, number in lines}


PAGES = 700
TOO_MANY_FAULTS = 20_000  # per second, in one tenth of a second (event_throttle.h)


@pytest.fixture
def cold_file(tmp_path):
    path = tmp_path / "pages"
    path.write_bytes(bytes(PAGES * 4096))
    return path


def by_perf(program):
    return int(run("perf", "stat", "-x", ";", "-e", "page-faults", *program).stderr.split(";")[0])


def test_faults_at_a_high_rate_are_not_sampled_one_by_one(tmp_path):
    storm = [sys.executable, "-c", "import mmap\nfor i in range(4):\n m = mmap.mmap(-1, 128 << 20)\n m[::4096] = bytes(1 << 15)\n m.close()"]
    if os.geteuid() == 0:
        storm = ["chrt", "--rr", "1", *storm]  # a storm is a rate, so other programs must not slow it down
    began = time.monotonic()
    # The rings have room for all faults: the agent has no raised priority and may read the storm late.
    path, outcome = record(tmp_path, "--events", "page-faults", "--unwind", "fp", "--ring-pages", 4096, program=storm)
    took = time.monotonic() - began
    counted = by_perf(storm)
    assert counted >= 4 << 15
    assert abs(sum(weights(path, "page-faults").values()) - counted) <= 0.02 * counted, (counted, outcome.stderr)
    output = "from now on a sample stands for 17 events. Try: --count N" in outcome.stderr
    if not output and counted / took <= TOO_MANY_FAULTS:
        pytest.skip(f"only {counted / took:.0f} faults per second on this machine: thinning, from {TOO_MANY_FAULTS} on, is not tested")
    assert output, outcome.stderr


def test_every_fault_is_sampled_unless_a_rate_is_requested(tmp_path, cold_file):
    """The sum of all weights is the kernel's count."""
    few = [TESTS_BIN / "faults-workload", PAGES, cold_file]
    path, _ = record(tmp_path, "--events", "page-faults,cpu-clock", "--unwind", "fp", program=few)
    counted = by_perf(few)
    assert abs(sum(weights(path, "page-faults").values()) - counted) <= 0.02 * counted, counted

    def sampling_modes(*arguments):
        """Event -> its sampling mode, as perf reads it."""
        path, _ = record(tmp_path, *arguments, program=few)
        exported = tmp_path / "perf.data"
        assert run(BIN / "flamewire", "export", path, "--format", "perfdata", "-o", exported).returncode == 0
        lines = run("perf", "evlist", "-v", "-i", exported).stdout.splitlines()
        exported.unlink()
        return {line.split(":")[0]: (int(re.search(r"sample_freq \}: (\d+)", line)[1]), "freq: 1" in line) for line in lines if "sample_freq }" in line}

    both = ["--events", "page-faults,minor-faults@499"]
    assert sampling_modes(*both) == {"page-faults": (1, False), "minor-faults": (499, True)}
    assert sampling_modes(*both, "--frequency", 99) == {"page-faults": (99, True), "minor-faults": (499, True)}
    assert sampling_modes("--events", "page-faults", "--count", 10) == {"page-faults": (10, False)}


def test_tracepoints_and_their_filters(tmp_path, tracefs):
    """The program makes a known number of system calls of one kind. perf stat counts the same number for the same tracepoint."""
    program = ["/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do umask 0$((i % 3)); i=$((i+1)); done"]
    event = "syscalls:sys_enter_umask"

    def counted(*filter):
        return int(run("perf", "stat", "-x", ";", "-e", event, *filter, *program).stderr.split(";")[0])

    everything, some = counted(), counted("--filter", "mask == 2")
    assert everything >= 300 and 100 <= some < everything

    def recorded(*arguments):
        path, _ = record(tmp_path, "--unwind", "fp", "--count", 1, *arguments, program=program)
        info = json.loads(run(BIN / "flamewire", "export", path, "--format", "json").stdout)
        return sum(weights(path, info["events"][0]["name"]).values())

    assert recorded("--events", event) == everything
    assert recorded("--events", event, "--filter", "mask == 2") == some
    assert recorded("--events", f"{event}/mask == 2/") == some
    # The event's own filter has precedence.
    assert recorded("--events", f"{event}/mask != 2/", "--filter", "mask == 2") == everything - some


def test_patterns_of_tracepoints(tmp_path, tracefs):
    """A pattern records and counts the same as a list of all its tracepoints."""
    program = ["/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do umask 0$((i % 3)); i=$((i+1)); done"]
    both = ["syscalls:sys_enter_umask", "syscalls:sys_exit_umask"]
    path, _ = record(tmp_path, "--unwind", "fp", "--count", 1, "--events", "syscalls:sys_e*_umask", program=program)
    found = [sum(weights(path, event).values()) for event in both]
    listed, _ = record(tmp_path, "--unwind", "fp", "--count", 1, "--events", ",".join(both), program=program)
    assert min(found) >= 300 and found == [sum(weights(listed, event).values()) for event in both]
    some, _ = record(tmp_path, "--unwind", "fp", "--count", 1, "--events", "syscalls:*enter_umask/mask == 2/", program=program)
    filtered = both[0] + "/mask == 2/"
    hits = sum(weights(some, filtered).values())
    assert 100 <= hits < 300
    one, _ = record(tmp_path, "--unwind", "fp", "--count", 1, "--events", filtered, program=program)
    assert hits == sum(weights(one, filtered).values())
    table = run(AGENT, "--output", "-", "--events", "none", "--stat", "syscalls:*_umask", "--", *program).stdout
    assert all(re.search(rf"{found[0]:,} +{event}", table) for event in both), table
    many = run(AGENT, "--output", tmp_path / "x.flw", "--events", "syscalls:*", "--", "true")
    assert many.returncode == 2 and re.search(r"syscalls:\* stands for \d+ tracepoints; at most 64 events are possible", many.stderr), many


@pytest.mark.skipif(not shutil.which("bpftrace"), reason="without bpftrace, the fields of tracepoints are not compared")
def test_fields_of_tracepoints_are_those_of_bpftrace(tracefs):
    for event in ("sched:sched_switch", "sched:sched_process_exec", "syscalls:sys_enter_openat", "irq:softirq_entry"):
        ours = run(AGENT, "--describe", event)
        assert ours.returncode == 0, ours
        theirs = [line.strip() for line in run("bpftrace", "-lv", f"tracepoint:{event}").stdout.splitlines()[1:]]
        first, *fields = ours.stdout.splitlines()
        assert first == f"{event}: tracepoint"
        as_declared = [re.sub(r"^ {2}(\S+): (.*?)(\[\d+\])?$", r"\2 \1\3", field) for field in fields]
        assert as_declared == theirs, (ours.stdout, theirs)


def test_refusals_of_the_kernel_are_one_sentence(tmp_path, tracefs):
    def sentence(*arguments):
        outcome = run(AGENT, "--output", tmp_path / "x.flw", *arguments, "--", "true")
        assert outcome.returncode in (1, 2), outcome
        lines = outcome.stderr.strip().splitlines()
        assert len(lines) == 1, outcome.stderr
        return lines[0]

    for bad in ("nonsense == 1", "prev_pid ==", "(prev_pid == 1"):
        output = sentence("--events", "sched:sched_switch", "--filter", bad)
        assert f"'{bad}' of sched:sched_switch" in output and re.search(r"\bprev_pid\b.*\bnext_pid\b", output), output
    assert "this kernel has no tracepoint sched:nothing" in sentence("--events", "sched:nothing")
    assert "no tracepoint among the events" in sentence("--events", "cpu-clock", "--filter", "a == 1")
    assert "sys:name/FILTER/" in sentence("--events", "sched:sched_switch//")
