"""Stacks of Go programs. All callers of the hot function are known from the source. Whole stacks start at the runtime's root functions. Callers
equal those that `perf` finds with frame pointers, which Go maintains. Load on the machine does not change call relationships, so no
recording is repeated."""
import collections
import errno
import os
import re
import signal
import subprocess
import time

import bounds
import flamewire
import go_programs
import pytest
from flamewire import wait_until

WHOLE = bounds.Check("whole stacks of a Go program", times=7)
PEER = bounds.Check("samples with callers that perf also has", times=1)
BACK = bounds.Check("samples of C, and of Go called from C, with the Go code that called C", times=3)
FREQUENCY = 3999
ENOUGH = 3000
KINDS = {"static": [], "stripped": ["-ldflags=-s -w"], "position-independent": ["-buildmode=pie"]}
ROOTS = {"runtime.goexit", "runtime.mstart", "runtime.rt0_go"}


def build(folder, workload, *options):
    """Builds the program of one folder of tests/workloads."""
    source = flamewire.ROOT / "tests" / "workloads" / workload
    subprocess.run(["go", "build", *options, "-o", folder / workload, "."], cwd=source, env=go_programs.environment(folder), check=True)
    return folder / workload


def stacks_of(server, begin_ms=0):
    """Frames of the program, outermost first and without the process, and the number of their samples."""
    for line in server.get(f"/api/export/session/{server.only_session()['id']}", format="collapsed", start=begin_ms).decode().splitlines():
        frames, _, count = line.rpartition(" ")
        process, *frames = frames.split(";")
        if process.startswith("go"):
            yield [re.sub(r"\.abi0$", "", frame) for frame in frames], int(count)


def opened(fifo, reader):
    """Returns a descriptor for writing once the reader has opened the pipe, or None."""
    assert reader.process.poll() is None, reader.err
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO, error
        return None


def samples_of(server, pid):
    threads = server.get("/api/thread-summary", session=server.only_session()["id"])["threads"]
    return sum(thread["samples"] for thread in threads if thread["pid"] == pid)


def record(start, program, beside=None, whole_system=False, arguments=(), enough=ENOUGH, after=()):
    """The stacks of a program that runs until it has enough samples, with the default settings. If `beside` is given, perf records into that folder.
    If `after` is given, some stacks must contain these functions before the samples count."""
    process = start.process("go", [program, "600", *arguments])
    time.sleep(0.3)
    server = start.server("--no-inline")
    if beside:
        # perf records until the pipe that its command reads is closed. The command starts once the events are open.
        os.mkfifo(beside / "enough")
        perf = start.process("perf", ["perf", "record", "-q", "-F", FREQUENCY, "-g", "-e", "cpu-clock:u", "-p", process.pid, "-o", beside / "perf.data", "--", "cat", beside / "enough"])
        writer = wait_until(lambda: opened(beside / "enough", perf), 60, "perf")
    target = ["--all"] if whole_system else ["--pid", process.pid]
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, *target, "--frequency", FREQUENCY, "--events", "cpu-clock:u")
    wait_until(server.sessions, 60, "a session")
    begin_ms = earlier = 0
    if after:
        wait_until(lambda: sum(count for frames, count in stacks_of(server) if after <= set(frames)) > 20, 120, after)
        begin_ms = (time.monotonic_ns() - server.only_session()["start_ns"]) / 1e6
        earlier = samples_of(server, process.pid)
    wait_until(lambda: samples_of(server, process.pid) > earlier + enough, 120, "samples")
    if beside:
        os.close(writer)
        assert perf.wait(60) == 0, perf.err
    assert agent.stop() == 0, agent.err
    server.wait_ended()
    process.stop()
    return list(stacks_of(server, begin_ms))


def check_whole(stacks):
    roots = collections.Counter()
    for frames, count in stacks:
        roots[frames[0]] += count
    cut = roots.pop("[incomplete]", 0) + roots.pop("[truncated]", 0)
    WHOLE.at_least(roots.total(), roots.total() + cut, 0.99, detail=roots)
    assert set(roots) <= ROOTS, roots


@pytest.mark.parametrize("kind", KINDS)
def test_callers_to_the_root(start, tmp_path, kind):
    stacks = record(start, build(tmp_path, "go", *KINDS[kind]))
    check_whole(stacks)
    paths = collections.Counter()
    for frames, count in stacks:
        if "main.hot" in frames:
            paths[tuple(frames[:frames.index("main.hot") + 1])] += count
    right = ("runtime.goexit", "main.main.func1", "main.work", "main.middle", "main.hot")
    lacking = {(*right[:3], "[caller missing]", right[4])} | {(cut, *right[begin:]) for cut in ("[incomplete]", "[truncated]") for begin in range(1, 5)}
    assert paths[right] > 0.1 * ENOUGH and set(paths) <= {right} | lacking, paths


def test_started_by_a_shell(start, tmp_path):
    """The shell has no frame pointers, and its child inherits its mode: copies of the stack, which lack a goroutine's callers."""
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $$\nexec {build(tmp_path, 'go')} 600\n")
    script.chmod(0o700)
    server = start.server("--no-inline")
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", FREQUENCY, "--events", "cpu-clock:u", "--", script)
    wait_until(lambda: agent.out.strip() and server.sessions() and samples_of(server, int(agent.out)) > ENOUGH, 120, "samples")
    assert agent.stop() == 128 + signal.SIGTERM, agent.err
    server.wait_ended()
    of_go = [(frames, count) for frames, count in stacks_of(server) if any(frame.startswith(("runtime.", "main.")) for frame in frames)]
    check_whole(of_go)  # the others are the shell's


def test_whole_system(start, tmp_path):
    """The copied stack lacks a goroutine's callers, but the kernel's call chain has them."""
    check_whole(record(start, build(tmp_path, "go"), whole_system=True))


def test_callers_are_those_of_perf(start, tmp_path):
    """perf skips the callers of functions without a frame, most of which are innermost. Therefore pairs of functions further out are compared."""
    stacks = record(start, build(tmp_path, "go"), tmp_path)
    check_whole(stacks)
    script = subprocess.run(["perf", "script", "--no-inline", "-i", tmp_path / "perf.data", "-F", "ip,sym"], check=True, capture_output=True, text=True).stdout
    theirs = set()
    for block in script.split("\n\n"):
        names = [re.sub(r"\.abi0$", "", line.split(maxsplit=1)[1]) for line in block.strip().splitlines() if " " in line.strip()]
        theirs |= set(zip(names[1:], names))
    seen = missing = 0
    examples = collections.Counter()
    for frames, count in stacks:
        pairs = [pair for pair in zip(frames, frames[1:-2]) if not any(name.startswith("[") for name in pair)]
        seen += count
        if unknown := [pair for pair in pairs if pair not in theirs]:
            missing += count
            examples[unknown[0]] += count
    PEER.at_least(seen - missing, seen, 0.98, detail=examples.most_common(8))


# The runtime hides functions that switch to a larger stack, and functions that the compiler generated: one that a `go` statement starts, and a
# pointer's method that calls the value's.
HIDDEN = re.compile(r"runtime\.(morestack|gcenable\.func\d)")


def method(name):
    return re.sub(r"\(\*(\w+)\)", r"\1", re.sub(r"\.abi0$", "", name))


def callers_in(stacks):
    """For (frames, count): the number of samples for each pair of a function and its caller, if both have names."""
    pairs = collections.Counter()
    for frames, count in stacks:
        for pair in set(zip(frames, frames[1:])):
            if not any(name.startswith("[") for name in pair):
                pairs[pair] += count
    return pairs


def test_callers_are_those_of_the_runtimes_own_profile(start, tmp_path):
    """Go's runtime unwinds its stacks with its own tables. Its profile lacks the roots and the handler of its own profiling signal, and has no samples
    while signals are blocked. Therefore only our pairs are searched in it."""
    program, profile = build(tmp_path, "go"), tmp_path / "own.pprof"
    stacks = record(start, program, arguments=[profile], enough=6 * ENOUGH)
    ours = [([method(name) for name in frames[1:] if not HIDDEN.fullmatch(name)], count)
            for frames, count in stacks if not any(name.startswith("runtime.sig") for name in frames)]
    printed = subprocess.run(["go", "tool", "pprof", "-noinlines", "-traces", program, profile], check=True, capture_output=True, text=True,
                          env=go_programs.environment(tmp_path)).stdout
    theirs = []
    for block in re.split(r"^-+\+-+\n", printed, flags=re.MULTILINE)[1:]:
        # The first line has a time before its name: 2ms per sample.
        if match := re.match(r" *([\d.]+)(m?s) +(.*)", block, re.DOTALL):
            names = [method(name.strip()) for name in match[3].splitlines()]
            theirs.append((names[::-1], round(float(match[1]) * (1 if match[2] == "ms" else 1000) / 2)))
    known, share = callers_in(theirs), sum(count for _, count in theirs) / sum(count for _, count in ours)
    # A pair that the runtime should have 15 times on average is missing from its profile once in 3 million runs.
    expected = {pair: count * share for pair, count in callers_in(ours).items() if count * share > 15}
    assert ("main.middle", "main.hot") in expected and len(expected) > 8, expected
    assert not [pair for pair in expected if pair not in known], (expected, known)


def test_c_and_back(start, tmp_path):
    """C called from Go, and Go called from there: the frame pointer leads back to the goroutine, even if C uses it for another purpose.
    The agent must have read the goroutine's stack during such a call."""
    stacks = record(start, build(tmp_path, "go_c"), after={"main.callsLargeC", "needs_every_register"})
    check_whole(stacks)
    callers = collections.Counter()
    for frames, count in stacks:
        assert not any(re.match(r"\[go_c\+0x", frame) for frame in frames), frames
        for function, caller in (("into_c", "main.callsC"), ("needs_every_register", "main.callsLargeC"), ("_goes_on_in_go", "main.callsBack")):
            if (at := next((i for i, frame in enumerate(frames) if frame == function or frame.startswith("_cgoexp_") and frame.endswith(function)), 0)):
                callers[function, "right" if caller in frames[:at] else frames[0]] += count
    assert {result for _, result in callers} <= {"right", "[incomplete]", "[truncated]"}, callers
    for function in ("into_c", "needs_every_register", "_goes_on_in_go"):
        BACK.at_least(callers[function, "right"], sum(count for (name, _), count in callers.items() if name == function), 0.95, detail=callers)
