"""Shares and totals: known by construction, and as `perf record` sees the same process at the same time."""
import collections
import os
import re
import subprocess
import time

import pytest

import flamewire
from flamewire import Tree, cpu_seconds, share_of, wait_until

PERF = "perf"


def record_live(start, pid, seconds, *options):
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", pid, "--frequency", 999, "--events", "cpu-clock", *options)
    wait_until(lambda: server.sessions(), 20, "a session")
    time.sleep(seconds)
    return server, agent


def test_known_shares(start):
    """burn_10 … burn_40 take 10 … 40 % of each thread's CPU time: within 3 points."""
    program = start.workload("shares", 30, 2)
    server, agent = record_live(start, program.pid, 10)
    assert agent.stop() == 0
    server.wait_ended()
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    shares = tree.shares()
    for percent in (10, 20, 30, 40):
        share = 100 * share_of(shares, f"burn_{percent}")
        assert abs(share - percent) <= 3, (percent, share)
    assert share_of(shares, "round_of_work") > 0.97
    session = server.only_session()
    assert session["lost"] == 0 and flamewire.lost(session) == 0
    # Two busy threads for about 10 s on two CPUs; both threads appear with about half.
    threads = server.get("/api/thread-summary")["threads"]
    assert len(threads) == 2
    assert all(30 < thread["percent"] < 70 for thread in threads)
    program.stop()


def perf_profile(path):
    """Samples, and function -> share of samples whose stack holds it, from `perf script` without inlining."""
    text = subprocess.run([PERF, "script", "--no-inline", "-i", path, "-F", "tid,time,ip,sym"], check=True, capture_output=True, text=True).stdout
    samples, shares = 0, collections.Counter()
    first = last = None
    for block in text.split("\n\n"):
        lines = [line.strip() for line in block.strip().splitlines()]
        if not lines:
            continue
        samples += 1
        moment = float(re.search(r"(\d+\.\d+):", lines[0])[1])
        first, last = first or moment, moment
        names = set()
        for line in lines[1:]:
            address, _, name = line.partition(" ")
            if re.fullmatch(r"[0-9a-f]+", address):
                names.add(name.strip())
        shares.update(names)
    return samples, {name: count / samples for name, count in shares.items()}, first, last


def plain(name):
    """A function's name as both tools can agree on: without arguments, templates kept, without clones' suffixes and without the
    underscores in which the aliases of one address differ (clock_gettime, __clock_gettime, __vdso_clock_gettime; clone3, __GI___clone3)."""
    name = re.sub(r"\s*\[clone [^\]]*\]", "", name)
    name = re.sub(r"\(anonymous namespace\)", "{anonymous}", name)
    depth = 0
    for index, letter in enumerate(name):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter == "(" and depth == 0:
            name = name[:index]
            break
    name = name.removesuffix(" const").split("@")[0].removeprefix("void ").removeprefix("double ").strip()
    return name.lstrip("_").removeprefix("vdso_").removeprefix("GI_").lstrip("_")


@pytest.mark.parametrize("unwind, call_graph", [("fp", "fp"), ("auto", "dwarf,16384")])
def test_like_perf(start, tmp_path, unwind, call_graph):
    """The same process at the same time: totals within 3 %, the 20 hottest functions within 2 points of `perf record`. The
    frame-pointer chain breaks in libm, which has none, for both alike; what is found by default is perf's by tables."""
    program = start.workload("demo", 600)
    time.sleep(0.5)
    server = start.server("--no-inline")
    data, enough = tmp_path / "perf.data", tmp_path / "enough"
    os.mkfifo(enough)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--events", "cpu-clock", "--unwind", unwind)
    wait_until(lambda: server.sessions(), 20, "a session")
    perf = start.process("perf", [PERF, "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "999", "--call-graph", call_graph, "-p", program.pid, "-o", data, "--", "cat", enough])
    # So many samples that chance makes no two points of a share, however little of the CPUs is ours.
    before = cpu_seconds(program.pid)
    wait_until(lambda: cpu_seconds(program.pid) > before + 16, 120, "16 s of CPU time")
    enough.write_bytes(b"")  # perf stops with its command
    assert perf.wait(60) == 0, perf.err
    time.sleep(1)
    samples, expected, first, last = perf_profile(data)
    session = server.only_session()
    start_s = session["start_ns"] / 1e9
    window = {"start": (first - start_s) * 1000, "end": (last - start_s) * 1000}
    answer = server.get("/api/flamegraph", min_share=0, **window)
    agent.stop()
    program.stop()
    total = answer["total"]["samples"]
    # The window is cut at 10 ms buckets, perf's at its samples: two buckets of two busy threads at most.
    assert abs(total - samples) <= 0.03 * samples, (total, samples)

    ours = collections.Counter()
    for name, share in Tree(answer).shares().items():
        ours[plain(name)] += share
    theirs = collections.Counter()
    for name, share in expected.items():
        theirs[plain(name)] += share
    hottest = [name for name, _ in theirs.most_common(60) if name != "[unknown]"][:20]
    assert len(hottest) == 20
    differences = {name: (round(100 * ours[name], 2), round(100 * theirs[name], 2)) for name in hottest if abs(ours[name] - theirs[name]) > 0.02}
    assert not differences, differences


def test_no_sample_twice_while_threads_are_born(start):
    """A target that creates threads in a loop during attach: as many samples as its CPU time allows, not more, not fewer."""
    server = start.server()
    program = start.workload("threads", "loop", 8)
    time.sleep(0.3)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--events", "cpu-clock")
    wait_until(lambda: server.sessions(), 20, "a session")
    before_cpu, before_time = cpu_seconds(program.pid), time.monotonic_ns()
    time.sleep(5)
    after_cpu, after_time = cpu_seconds(program.pid), time.monotonic_ns()
    program.wait()
    server.wait_ended()
    session = server.only_session()
    answer = server.get("/api/flamegraph", start=(before_time - session["start_ns"]) / 1e6, end=(after_time - session["start_ns"]) / 1e6)
    expected = (after_cpu - before_cpu) * 999
    total = answer["total"]["samples"]
    # Each thread may end just before its next sample: up to one sample a thread is not taken. Twice is never right.
    threads = (after_cpu - before_cpu) / 0.020
    assert 0.97 * expected - threads <= total <= 1.03 * expected, (total, expected, threads)
    assert session["lost"] == 0
    agent.stop()
