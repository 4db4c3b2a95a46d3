"""Where threads wait and how they are scheduled, for each kind of target, compared with perf and with the kernel's accounting. Tests on captures
check what the agent derives from the records (tests/captures/test_scheduling.py)."""
import contextlib
import json
import os
import re
import subprocess
import time

import pytest
from control_groups import cgroup, enter
from flamewire import BIN, TESTS_BIN, Tree, wait_until
from scheduling import AWAY, Commands, Thread, check_queue, check_states, check_switches, check_wakers, recorded_ns
from switches import as_root, scheduling_by_perf

STATES = ("run", "runnable", "blocked", "io_wait")
# Room for the context switches of a busy machine: after a loss, thread states are unknown.
NO_LOSS = ("--ring-pages", "16384")


def states(server, **parameters):
    answer = server.get("/api/thread-states", **parameters)
    assert answer["known"]
    return answer, {one["tid"]: one for one in answer["threads"]}


def rows(server, tid):
    """(event, functions from the root on, samples, ns) of a thread's stacks."""
    found = []
    for event in (*AWAY, "woken-by"):
        tree = Tree(server.get("/api/flamegraph", event=event, tid=tid, min_share=0))
        own = list(tree.samples)
        for node in range(1, len(own)):
            own[tree.parent[node]] -= tree.samples[node]
        frames = {0: ()}
        for node in range(1, len(own)):
            frames[node] = (*frames[tree.parent[node]], tree.names[node])
            if own[node]:
                found.append((event, frames[node], own[node], tree.self_weight[node]))
    return found


def threads_of(server, output, perf):
    _, times = states(server)
    scheduling = {one["tid"]: one for one in server.get("/api/scheduling")["threads"]}
    threads = {}
    for life in (json.loads(line) for line in output.splitlines() if line.startswith("{")):
        tid = life["tid"]
        assert times[tid]["comm"] == life["thread"]
        numbers = [*(round(1e6 * times[tid][state]) for state in STATES), *(scheduling[tid][key] for key in ("preempted", "slept", "io_waits"))]
        threads[life["thread"]] = Thread(life, numbers, rows(server, tid), vars(perf))
    return threads


@contextlib.contextmanager
def waiting_program(*arguments):
    """Starts waits-workload after a line is written to its standard input."""
    program = subprocess.Popen(["bash", "-c", 'read -r; exec "$@"', "bash", TESTS_BIN / "waits-workload", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def record(scope, start, options, seconds, beside=()):
    """(the agent, the output of the workload, its pid). The programs in `beside` run at the same time."""
    with contextlib.ExitStack() as stack:
        if scope == "launched":
            agent = start.agent(*options, "--", TESTS_BIN / "waits-workload", seconds)
            assert agent.wait(30) == 0, agent.err
            return agent, agent.out, None
        program = stack.enter_context(waiting_program(seconds))
        target = ["--all"] if scope == "system" else ["--pid", program.pid]
        if scope == "cgroup":
            folder = stack.enter_context(cgroup(f"flamewire-waits-{os.getpid()}"))
            enter(folder, program.pid)
            target = ["--cgroup", folder]
        agent = start.agent(*options, *target)
        wait_until(lambda: "profiling" in agent.err or not agent.alive(), 20, "the recording")
        for command in beside:
            subprocess.run(command, check=True)
        output, _ = program.communicate("\n", timeout=60)
        if scope in ("cgroup", "system"):
            assert agent.stop() == 0, agent.err
        assert agent.wait(30) == 0, agent.err
        return agent, output, program.pid


@as_root
@pytest.mark.recording(lost=0)
@pytest.mark.parametrize("scope", ["launched", "attached", "cgroup", "system"])
def test_switches_and_wake_ups_are_those_of_perf(scope, start, tmp_path, tracefs):
    path = tmp_path / "waits.flw"
    dwarf = scope == "attached"
    options = ("--output", path, "--verbose", "--events", "off-cpu,woken-by", "--unwind", "dwarf" if dwarf else "fp", *NO_LOSS)
    with scheduling_by_perf(tmp_path) as perf:
        agent, output, pid = record(scope, start, options, "1", beside=[["sleep", "0.05"]] * 3 if scope == "cgroup" else ())
    assert "THEY DIFFER" not in agent.err, agent.err
    server = start.server("--import", path)
    server.wait_ended()
    assert server.only_session()["lost"] == 0
    threads = threads_of(server, output, perf)
    assert len(threads) == 8
    check_wakers(threads, dwarf=dwarf, slack=lambda wakings: 2 + 0.03 * wakings)
    for one in threads.values():
        check_switches(one)
        if scope in ("launched", "system"):
            check_states(one)
        # With other load, an interrupt or the hypervisor may come between our record and perf's, or between ours and the wake-up.
        check_queue(one, copy_ns=300_000 if scope in ("launched", "attached") else 0, apart_ns=0.003 * one.life["wall_ns"] + one.life["late_ns"])
    answer, _ = states(server)
    if scope == "cgroup":
        # Processes that start outside the group are not included.
        assert {one["pid"] for one in answer["threads"]} == {pid}
        for event in ("off-cpu", "run-queue"):
            assert {one["pid"] for one in server.get("/api/thread-summary", event=event)["threads"]} == {pid}, event
    if scope == "system":
        assert sum(one["run"] for one in answer["threads"]) <= os.cpu_count() * (answer["end_ms"] - answer["start_ms"])


@as_root
@pytest.mark.parametrize("target", ["process", "system"])
def test_thread_time_in_an_unknown_state(target, start, tmp_path):
    """A program switches constantly and the rings are too small for it. Known and unknown thread states add up to the lives of its threads."""
    program = start.process("pipe", ["perf", "bench", "sched", "pipe", "-T", "-l", 1_000_000_000])
    wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) == 3, 20, "its threads")
    path = tmp_path / "lost.flw"
    options = ["--all"] if target == "system" else ["--pid", program.pid]
    agent = start.agent("--output", path, *options, "--events", "off-cpu", "--unwind", "fp", "--ring-pages", 1, "--duration", 2)
    assert agent.wait(60) == 0, agent.err
    server = start.server("--import", path)
    server.wait_ended()
    unknown, = (loss for loss in server.only_session()["losses"] if loss["reason"] == "thread_state_unknown")
    assert unknown["event"] == "off-cpu" and not unknown["lost"] and unknown["count"] > 0, unknown
    report = subprocess.run([BIN / "flamewire", "report", path], check=True, capture_output=True, text=True).stdout
    assert re.search(r"^# [0-9.]+ (s|ms) of thread time in an unknown state \(off-cpu\): context-switch records were lost\n#   give the agent more --ring-pages$", report, re.M), report
    if target == "system":
        return
    _, threads = states(server)
    known_ms = sum(one[state] for one in threads.values() for state in STATES)
    # The events were enabled for at least the duration, and for at most the length of the session.
    end_ms = server.get("/api/timeline")["session_end_ms"]
    assert 3 * 2000 <= known_ms + unknown["count"] / 1e6 <= 3 * end_ms, (known_ms, unknown, end_ms)


@pytest.mark.recording(lost=0)
def test_sleep_over_pauses_and_changes(start):
    """A thread that never wakes is off-CPU for the whole recording: live, over a pause, with new events and with another unwind mode."""
    with waiting_program("60") as program:
        program.stdin.write("\n")
        program.stdin.flush()
        wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) > 8, 20, "the threads of the workload")
        server = start.server()
        commands = Commands()

        def begin():
            agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--events", "off-cpu,task-clock", "--verbose", *NO_LOSS)
            wait_until(lambda: "profiling" in agent.err or not agent.alive(), 20, "the recording")
            return agent

        def asleep():
            session = server.sessions() and server.only_session()
            if not session or "off-cpu" not in [event["name"] for event in session["events"]]:
                return 0
            threads = server.get("/api/thread-summary", event="off-cpu", session=session["id"])["threads"]
            return next((one["weight"] for one in threads if one["comm"] == "idler"), 0)

        agent = commands.timed("start", begin)
        # The weight grows while the thread still sleeps, once per second.
        wait_until(lambda: asleep() > 0, 20, "the idler's sleep")
        commands.timed("pause", lambda: server.command("pause"))
        time.sleep(0.3)
        commands.timed("resume", lambda: server.command("resume"))
        commands.timed("configure", lambda: server.command("configure", events="off-cpu,cpu-clock"))
        time.sleep(0.3)
        commands.timed("configure", lambda: server.command("configure", unwind="dwarf"))
        time.sleep(0.3)
        commands.timed("stop", lambda: server.command("stop"))
        server.wait_ended()
        least, most = recorded_ns(commands.done)
        whole = asleep()
        assert least <= whole <= most, (least, whole, most)
        # Other threads went off-CPU and returned. All states of a thread add up exactly, each rounded to ns.
        answer, found = states(server)
        totals = {one["comm"]: round(1e6 * sum(one[state] for state in STATES)) for one in found.values()}
        assert abs(totals["idler"] - whole) <= len(STATES), (totals, whole)
        for thread in ("sleeper", "pipe-reader", "pipe-writer", "mutex-holder", "mutex-waiter", "burner-1", "burner-2"):
            # A thread that is on a CPU when events start has an unknown state until its next switch.
            assert least <= totals[thread] <= whole + len(STATES), (thread, totals, least, whole)
        paused = {name: (sent_ns, answered_ns) for name, sent_ns, answered_ns in commands.done}
        assert answer["end_ms"] - answer["start_ms"] > (whole - (most - least) + paused["resume"][0] - paused["pause"][1]) / 1e6
        assert agent.stop() == 0
        assert "THEY DIFFER" not in agent.err
