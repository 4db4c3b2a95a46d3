"""Where threads wait: against a program that measures its own waits by the clock, and what perf sees of their time on CPUs."""
import collections
import contextlib
import json
import subprocess
import time

import pytest
from control_groups import cgroup, enter
from flamewire import BIN, TESTS_BIN, wait_until
from sanitized import plain_build_only
from switches import as_root, wakings_by_perf

AGENT = BIN / "flamewire-agent"
KINDS = ("off-cpu", "run-queue", "io-wait")
# Room for what a busy machine is late with: after a loss nobody knows who is away, and it is said so.
NO_LOSS = ("--ring-pages", "16384")


def export(path, event, weights=True):
    """(thread's name, functions) -> ns, or how many."""
    outcome = subprocess.run([BIN / "flamewire", "export", path, "--format", "collapsed", "-e", event, *(["--weights"] if weights else [])], capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome
    stacks = {}
    for line in outcome.stdout.splitlines():
        names, number = line.rsplit(" ", 1)
        comm, *functions = names.split(";")
        stacks[comm, tuple(functions)] = int(number)
    return stacks


def by_thread(path):
    """Thread's name -> kind -> ns."""
    sums = collections.defaultdict(lambda: dict.fromkeys(KINDS, 0))
    for kind in KINDS:
        for (comm, _), number in export(path, kind).items():
            sums[comm][kind] += number
    return sums


every_switch = plain_build_only("such an agent does not keep up with all switches of the first moments")


def within(path, comm, function, kinds=KINDS):
    return sum(number for kind in kinds for (name, functions), number in export(path, kind).items() if name == comm and any(function in one for one in functions))


def lives(text):
    return {one["thread"]: one for one in map(json.loads, (line for line in text.splitlines() if line.startswith("{")))}


@pytest.mark.recording(lost=0)
@pytest.mark.parametrize("attached", [False, True])
def test_every_switch_is_told_once_with_its_stack(attached, start, tmp_path):
    """Two events count one thing, and the first thread made after attaching has two sets of them: the kernel gives all of their samples one id."""
    path = tmp_path / "switches.flw"
    record = ("--output", path, "--verbose", *NO_LOSS, "--events", "context-switches,off-cpu", "--count", "1", "--unwind", "fp")
    workload = (TESTS_BIN / "waits-workload", "1")
    if attached:
        program = subprocess.Popen(["bash", "-c", 'read -r; exec "$@"', "bash", *workload], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        agent = start.agent(*record, "--pid", program.pid)
        wait_until(lambda: "profiling" in agent.err, 20, "the recording")
        out, _ = program.communicate("\n", timeout=60)
        assert agent.wait(30) == 0, agent.err
        told = agent.err
    else:
        outcome = subprocess.run([AGENT, *record, "--", *workload], capture_output=True, text=True, timeout=60)
        assert outcome.returncode == 0, outcome
        out, told = outcome.stdout, outcome.stderr
    # Both cases are what they are meant to be.
    assert ("duplicates 0 " not in told) == attached, told
    switches = collections.Counter()
    for (comm, _), number in export(path, "context-switches").items():
        switches[comm] += number
    for thread, own in lives(out).items():
        assert -2 <= switches[thread] - own["slept"] - own["preempted"] <= 12, (thread, switches[thread], own)
        assert within(path, thread, "[not seen leaving]") == 0, thread


@as_root
@pytest.mark.recording(lost=0)
@pytest.mark.parametrize("scope", ["launched", "attached", "cgroup", "system"])
def test_who_woke_threads_and_how_long_they_then_wait(scope, start, tmp_path, tracefs):
    path = tmp_path / "wakers.flw"
    record = ["--output", path, "--verbose", "--events", "off-cpu,woken-by", "--unwind", "fp" if scope == "system" else "dwarf", *NO_LOSS]
    workload = [TESTS_BIN / "waits-workload", "3"]
    with contextlib.ExitStack() as stack:
        by_perf = stack.enter_context(wakings_by_perf(tmp_path))
        if scope == "launched":
            outcome = subprocess.run([AGENT, *record, "--", *workload], capture_output=True, text=True, timeout=60)
            assert outcome.returncode == 0, outcome
            out, said = outcome.stdout, outcome.stderr
        else:
            program = subprocess.Popen(["bash", "-c", 'read -r; exec "$@"', "bash", *workload], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            if scope == "attached":
                target = ["--pid", program.pid]
            elif scope == "system":
                target = ["--all", "--duration", "6"]
            else:
                folder = stack.enter_context(cgroup("flamewire-wakers"))
                enter(folder, program.pid)
                target = ["--cgroup", folder, "--duration", "6"]
            agent = start.agent(*record, *target)
            wait_until(lambda: "profiling" in agent.err, 20, "the recording")
            out, _ = program.communicate("\n", timeout=60)
            assert agent.wait(30) == 0, agent.err
            said = agent.err
    assert "THEY DIFFER" not in said, said
    own = lives(out)
    tid = {name: life["tid"] for name, life in own.items()}
    stacks = export(path, "woken-by")
    away = by_thread(path)
    counted = export(path, "woken-by", weights=False)
    # perf's kernel half is ours: what it does not tell, such as wake-ups on idle CPUs on some machines, is "not seen".
    unseen = "[not seen waking]"

    def by_waker(stacks, thread):
        sums = collections.Counter()
        for (comm, names), number in stacks.items():
            if comm == thread:
                sums[names[-1]] += number
        return sums

    for thread in ("sleeper", "pipe-reader", "mutex-waiter", "mutex-holder", "idler"):
        # Each sleep has its end, …
        slept = away[thread]["off-cpu"] + away[thread]["io-wait"]
        assert abs(sum(by_waker(stacks, thread).values()) - slept) <= 0.01 * slept + 5e6, (by_waker(stacks, thread), slept)
        # … as often as perf has it, …
        seen = by_waker(counted, thread)
        del seen[unseen]
        wakings = sum(number for (_, woken), number in by_perf.items() if woken == tid[thread])
        assert abs(sum(seen.values()) - wakings) <= 2 + 0.03 * wakings, (thread, seen, by_perf)
        if waker := {"pipe-reader": "pipe-writer", "mutex-waiter": "mutex-holder"}.get(thread):
            assert abs(seen[f"[woken by {waker}]"] - by_perf[tid[waker], tid[thread]]) <= 2 + 0.03 * wakings, (waker, seen, by_perf)
            assert by_waker(stacks, thread)[f"[woken by {waker}]"] >= 0.97 * slept, (thread, by_waker(stacks, thread), slept)
            # … on the waker's own stack (whose innermost functions have no frame pointers), …
            function = waker.replace("-", "_") + "("
            found = sum(number for (comm, names), number in counted.items() if comm == thread and any(function in name for name in names))
            assert scope in ("cgroup", "system") or found >= 0.97 * seen[f"[woken by {waker}]"], (thread, counted)
        else:
            # But for those who let go of the process's memory map, while threads begin.
            assert seen["[woken by an interrupt]"] >= sum(seen.values()) - 3, (thread, seen)
    # … and from then on the thread could run: by the kernel's book of its queues, which the program opens when it has begun.
    for thread, life in own.items():
        assert away[thread]["run-queue"] <= life["queued_ns"] + life["late_ns"] + 0.02 * life["wall_ns"], (thread, away[thread], life)
    for thread in ("pipe-reader", "mutex-waiter", "burner-1", "burner-2"):
        # That begins when the waker has copied its stack and gone on.
        copies = 300_000 * own[thread]["slept"] if scope in ("launched", "attached") else 0
        # The kernel's books begin when a thread leaves its CPU, our record when the events of all profilers have been taken: 10 to 16 us later for
        # each switch (measured beside perf and two busy loops, in the scope `system`), so it counts with the switches and not with the time.
        events = 20_000 * own[thread]["preempted"]
        late = away[thread]["run-queue"] - own[thread]["queued_ns"]
        assert -0.005 * own[thread]["wall_ns"] - events <= late <= 0.005 * own[thread]["wall_ns"] + own[thread]["late_ns"] + copies, (thread, away[thread], own[thread])


@pytest.mark.recording(lost=0)
def test_two_profilers_of_one_target_say_so(start, tmp_path):
    """The kernel gives the samples of both one id: stacks are missing then, no time is, and it is said."""
    # Both are there before the program begins, so both see all of it.
    program = subprocess.Popen(["bash", "-c", 'read -r; exec "$@"', "bash", TESTS_BIN / "waits-workload", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    paths = tmp_path / "one.flw", tmp_path / "two.flw"
    agents = []
    for number, path in enumerate(paths):
        agents.append(start.agent("--output", path, "--pid", program.pid, "--events", "off-cpu", "--unwind", "fp", "--verbose", *NO_LOSS, name=f"agent-{number}"))
        wait_until(lambda agent=agents[-1]: "profiling" in agent.err, 20, "the recording")
    out, _ = program.communicate("\n", timeout=60)
    assert [agent.wait(30) for agent in agents] == [0, 0]
    said = [agent.err for agent in agents]
    assert not any("THEY DIFFER" in err for err in said), said
    assert any("Another profiler takes samples of the same events" in err for err in said), said
    # The kernel writes one record of a switch after the other: each has its own time.
    one, two = map(by_thread, paths)
    for thread, life in lives(out).items():
        for kind in KINDS:
            assert abs(one[thread][kind] - two[thread][kind]) <= 50_000 * (life["slept"] + life["preempted"]), (thread, kind, one[thread], two[thread], life)


@pytest.mark.recording(lost=0)
def test_asleep_all_the_time_over_pauses_and_changes(start, tmp_path):
    """A thread that never wakes is away for as long as is recorded: live, over a pause, new events and another way to find stacks."""
    program = start.workload("waits", 30)
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--events", "off-cpu,task-clock", "--verbose", *NO_LOSS)
    wait_until(lambda: server.sessions(), 20, "the session")
    time.sleep(2.5)

    def off(event="off-cpu"):
        session = server.only_session()
        threads = {}
        for one in server.get("/api/thread-summary", event=event, session=session["id"])["threads"]:
            threads[one["comm"]] = one["weight"]
        return threads

    # It shows while it lasts: all but the second that is not over.
    assert off()["idler"] >= 1e9
    server.command("pause")
    time.sleep(1.5)
    server.command("resume")
    server.command("configure", events="off-cpu,cpu-clock")
    time.sleep(1)
    server.command("configure", unwind="dwarf")
    time.sleep(1)
    server.command("stop")
    server.wait_ended()
    totals = off()
    # How long events were on, as the kernel says of the counters beside them.
    length = server.get("/api/counters")["groups"][0]["elapsed_ms"] / 1000
    assert abs(totals["idler"] / 1e9 - length) <= 0.15 + 0.02 * length, (totals, length)
    # Others have gone and come all the while, to sleep or to wait for a CPU: together never more than the time there was.
    queued = off("run-queue")
    for comm in ("pipe-reader", "mutex-waiter", "sleeper"):
        assert 0.3 * length <= (totals[comm] + queued.get(comm, 0)) / 1e9 <= length + 0.15, (comm, totals, queued, length)
    assert agent.stop() == 0
    assert "THEY DIFFER" not in agent.err


def test_only_what_was_asked_for(tmp_path):
    path = tmp_path / "one.flw"
    subprocess.run([AGENT, "--output", path, "--events", "run-queue", "--no-kernel", "--", TESTS_BIN / "waits-workload", "0.5"], check=True, capture_output=True, timeout=60)
    info = json.loads(subprocess.run([BIN / "flamewire", "export", path, "--format", "json"], check=True, capture_output=True, timeout=60).stdout)
    assert [event["name"] for event in info["events"]] == ["run-queue"]
    assert not any("schedule" in name for (_, functions) in export(path, "run-queue") for name in functions)
