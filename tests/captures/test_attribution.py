"""Every sample has the right name: short threads, fork and exec, and libraries that are loaded and unloaded."""
import re
import subprocess

import bounds
from flamewire import BIN

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=4)
BEFORE = bounds.Check("samples of a child before it executes another program", times=1)
PLUGIN = bounds.Check("samples in a library that comes and goes, by the program's CPU clock", times=1)


def samples_in(replay, function):
    return sum(count for _, _, frames, count, _ in replay.rows if any(function in frame for frame in frames))


def check_named(replay):
    """Each innermost frame is in a module, and in a function if the module is one of our programs, which have all their symbols. Others may be stripped."""
    unnamed = [frames for _, _, frames, _, _ in replay.rows if frames[-1].startswith("?") or re.match(r"\[(?:\?|[^+]*workload[^+]*)\+", frames[-1])]
    assert not unnamed, unnamed[:5]


def test_a_hundred_threads_of_a_millisecond(replayed):
    replay = replayed("short-threads")
    # 100 ms of CPU time in short_lived at 1,999 Hz. Each sample has its call chain.
    samples, expected = samples_in(replay, "short_lived"), 0.1 * 1999
    assert abs(samples - expected) < 0.1 * expected, (samples, expected)
    assert samples > 0.8 * replay.truth["samples"]
    assert {comm for _, comm, _, _, _ in replay.rows} == {"threads-workloa"}
    check_named(replay)
    output = subprocess.run([BIN / "flamewire", "export", replay.session, "--group", "thread"], check=True, capture_output=True, text=True, timeout=60).stdout
    # Folded stacks have addresses if the program's file is a different one.
    threads = {line.partition(";")[0] for line in output.splitlines() if any("short_lived" in replay.function(frame) for frame in line.rpartition(" ")[0].split(";"))}
    assert len(threads) > 80, threads


def test_fork_and_exec(replayed):
    replay = replayed("exec")
    # The child first uses 300 ms of CPU time, up to one step of its loop, which takes less than a millisecond.
    BEFORE.total(samples_in(replay, "before_exec"), 0.3, 499, edges=1, clock_s=0.001)
    rounds = samples_in(replay, "round_of_work")
    for percent in (10, 20, 30, 40):
        KNOWN.share(samples_in(replay, f"burn_{percent}"), rounds, percent / 100, detail=f"in burn_{percent}")
    for _, comm, frames, _, _ in replay.rows:
        text = " ".join(frames)
        if "before_exec" in text:
            assert comm == "threads-workloa", frames
        elif "burn_" in text:
            assert comm == "shares-workload", frames
    check_named(replay)


def test_two_hundred_dlopens(replayed):
    """dlopen runs on one CPU and the call on another: the mapping must be known before the samples in it."""
    replay = replayed("libraries")
    own_ns, all_ns = map(int, replay.truth["output"][0].split())
    samples = replay.truth["samples"]
    PLUGIN.share(samples_in(replay, "plugin_work"), samples, own_ns / all_ns, detail=f"{own_ns} of {all_ns} ns")
    check_named(replay)
