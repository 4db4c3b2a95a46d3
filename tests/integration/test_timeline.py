"""The time axis against a program that says when it did what: windows of the flame graph and of the counters, slices, the end of what is
known, and marks. Times of the program are CLOCK_MONOTONIC, as the session's start is: a window in ms is exact."""
import re
import signal
import time

import pytest
from flamewire import Relay, TESTS_BIN, Tree, cpu_seconds, share_of, wait_until

PHASE_S = 2.5
EDGE_MS = 100  # of a phase that belongs to none: the change itself
COUNTED_EVERY_MS = 500
PHASE_LINE = re.compile(r"^(\d+) (parse|compute|sleep|end)$", re.M)


def monotonic_ms(session, time_ns):
    return (time_ns - session["start_ns"]) / 1e6


def lines_of(output):
    return [(int(time_ns), name) for time_ns, name in PHASE_LINE.findall(output)]


def windows_of(output, session, from_ns, edge_ms=EDGE_MS):
    """name -> inner windows {start, end} in ms of the phases that began after from_ns and are over."""
    lines = lines_of(output)
    windows = {"parse": [], "compute": [], "sleep": []}
    for (start_ns, name), (end_ns, _) in zip(lines, lines[1:]):
        if start_ns >= from_ns:
            windows[name].append({"start": monotonic_ms(session, start_ns) + edge_ms, "end": monotonic_ms(session, end_ns) - edge_ms})
    return windows


def counters_of(server, window):
    (group,) = server.get("/api/counters", **window)["groups"]
    return group["elapsed_ms"], {counter["name"]: counter.get("value") for counter in group["counters"] if counter["status"] == "counted"}


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """Two rounds of the program, seen by an agent that came in the middle: (server, output, session, when it was there, looks while it slept)."""
    import flamewire

    directory = tmp_path_factory.mktemp("phases")
    server = flamewire.Server(directory)
    program = flamewire.workload(directory, "phases", PHASE_S, 20)
    agent = flamewire.Agent(directory, "--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499, "--events", "cpu-clock")
    with flamewire.ended(server, program, agent):
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 0 and server.get("/api/counters")["groups"], 20, "samples and counters")
        there_ns = time.monotonic_ns()

        def asleep():
            lines = [line for line in lines_of(program.out) if line[0] >= there_ns]
            return sum(name == "sleep" for _, name in lines) == 2 and lines[-1][1] == "sleep"

        wait_until(asleep, 30, "the second sleep")
        # It sleeps until we have looked twice, however slow the machine is.
        program.signal(signal.SIGSTOP)
        assert asleep(), "the second sleep was over before it was seen"
        asleep_ms = monotonic_ms(server.only_session(), lines_of(program.out)[-1][0]) + EDGE_MS
        # Then the samples from before are all there.
        wait_until(lambda: server.get("/api/timeline")["session_end_ms"] > asleep_ms, 20, "news of the sleep")
        looks = []
        for _ in range(2):
            seen_ms = looks[-1][1] if looks else 0
            answer = wait_until(lambda: (look := server.get("/api/timeline", bucket=100))["session_end_ms"] > seen_ms and look, 20, "the axis going on")
            looks.append((time.monotonic_ns(), answer["session_end_ms"], sum(answer["samples"])))
        program.signal(signal.SIGCONT)
        wait_until(lambda: lines_of(program.out)[-1][1] == "compute", 20, "the third round")
        agent.stop()
        program.stop()
        server.wait_ended()
        yield server, program.out, server.only_session(), there_ns, looks


def test_a_window_shows_the_function_that_ran_in_it(phases):
    server, output, session, there_ns, _ = phases
    windows = windows_of(output, session, there_ns)
    assert len(windows["parse"]) >= 2 and len(windows["compute"]) >= 2 and len(windows["sleep"]) == 2
    busy = []
    for name in ("parse", "compute"):
        for window in windows[name]:
            tree = Tree(server.get("/api/flamegraph", **window, min_share=0))
            busy.append(tree.answer["total"]["samples"])
            assert share_of(tree.shares(), f"phase_{name}") >= 0.97, (name, window, tree.shares())
    for window in windows["sleep"]:
        assert server.get("/api/flamegraph", **window)["total"]["samples"] < 0.01 * min(busy), (window, busy)


def test_counters_stand_still_while_it_sleeps(phases):
    server, output, session, there_ns, _ = phases
    # An interval belongs to the window that has its middle: half of one and some lateness more at each edge.
    windows = windows_of(output, session, there_ns, EDGE_MS + COUNTED_EVERY_MS / 2 + 50)
    rates = []
    for window in windows["parse"] + windows["compute"]:
        elapsed_ms, values = counters_of(server, window)
        rates.append({name: value / elapsed_ms for name, value in values.items()})
    for window in windows["sleep"]:
        elapsed_ms, values = counters_of(server, window)
        assert elapsed_ms >= COUNTED_EVERY_MS / 2
        assert values["task-clock"] < 0.03 * elapsed_ms * 1e6, (window, values)
        for name in {"instructions", "cycles"} & values.keys():
            assert values[name] / elapsed_ms < 0.03 * min(rate[name] for rate in rates if name in rate), (name, values, rates)


def test_slices_have_samples_where_it_was_busy_and_none_where_it_slept(phases):
    server, output, session, there_ns, looks = phases
    answer = server.get("/api/timeline", bucket=100)
    assert answer["slice_ms"] == 100 and answer["start_ms"] == 0
    windows = windows_of(output, session, there_ns)

    def slices_in(window):
        return [samples for number, samples in enumerate(answer["samples"]) if window["start"] <= number * 100 and (number + 1) * 100 <= window["end"]]

    for window in windows["parse"] + windows["compute"]:
        inside = slices_in(window)
        # A machine that is busy with other things may take the CPU away for some.
        assert len(inside) >= 10 and sum(samples > 0 for samples in inside) >= 0.75 * len(inside), (window, inside)
    for window in windows["sleep"]:
        inside = slices_in(window)
        assert len(inside) >= 10 and sum(inside) == 0, (window, inside)
    assert sum(answer["samples"]) == session["samples"]

    (first_ns, first_end_ms, first_samples), (second_ns, second_end_ms, second_samples) = looks
    assert first_samples == second_samples > 0
    assert second_end_ms > first_end_ms
    for seen_ns, end_ms in ((first_ns, first_end_ms), (second_ns, second_end_ms)):
        assert windows["sleep"][1]["start"] < end_ms <= monotonic_ms(session, seen_ns)


def marks_of(server, session_id, **window):
    return server.get("/api/timeline", session=session_id, slices=2000, **window)["marks"]


def test_a_cut_link_is_a_mark_and_no_gap(start):
    server = start.server()
    relay = Relay(server.port)
    program = start.workload("shares", 60)
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pid", program.pid, "--frequency", 499, "--events", "cpu-clock")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 20, "samples")
    session_id = server.only_session()["id"]
    assert [mark for mark in marks_of(server, session_id) if mark["kind"] == "reconnect"] == []
    relay.blocked = True
    cut_ns = time.monotonic_ns()
    relay.cut()
    time.sleep(2)
    back_ns = time.monotonic_ns()
    relay.blocked = False
    wait_until(lambda: server.get("/api/status")["agent_connected"], 45, "the agent's return")
    time.sleep(1)
    agent.stop()
    program.stop()
    server.wait_ended()
    session = server.only_session()
    marks = marks_of(server, session_id)
    (away,) = [mark for mark in marks if mark["kind"] == "reconnect"]
    cut_ms, back_ms = monotonic_ms(session, cut_ns), monotonic_ms(session, back_ns)
    assert away["start_ms"] <= cut_ms and away["end_ms"] >= back_ms - 1, (away, cut_ms, back_ms)
    assert away["start_ms"] > 0 and away["end_ms"] < session["duration_ms"]
    # What was sampled meanwhile came later: nothing was lost.
    assert session["lost"] == 0 and not [mark for mark in marks if mark["kind"] == "loss"]
    meanwhile = server.get("/api/timeline", start=cut_ms, end=back_ms, slices=10)["samples"]
    assert all(samples > 0 for samples in meanwhile), meanwhile
    # Asked for by time: there within the stretch, absent before it.
    assert away in marks_of(server, session_id, start=cut_ms + 500, end=cut_ms + 1000)
    assert away not in marks_of(server, session_id, start=0, end=away["start_ms"] - 1)
    relay.close()
    server.stop()
    again = start.server()
    assert marks_of(again, session_id) == marks


def test_lost_samples_are_a_mark_where_they_are_missing(start):
    server = start.server()
    program = start.workload("shares", 60, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--ring-pages", 1, "--unwind", "fp", "--events", "cpu-clock")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    time.sleep(1)
    stopped_ns = time.monotonic_ns()
    agent.signal(signal.SIGSTOP)
    before = cpu_seconds(program.pid)
    wait_until(lambda: cpu_seconds(program.pid) > before + 1.5, 60, "1.5 s of CPU time")
    agent.signal(signal.SIGCONT)
    going_ns = time.monotonic_ns()
    time.sleep(1)
    agent.stop()
    program.stop()
    server.wait_ended()
    session = server.only_session()
    losses = [mark for mark in marks_of(server, session["id"]) if mark["kind"] == "loss"]
    assert all(mark["lost"] and mark["reason"] == "ring_full" for mark in losses), losses
    assert sum(mark["count"] for mark in losses) == session["lost"] > 500
    stopped_ms, going_ms = monotonic_ms(session, stopped_ns), monotonic_ms(session, going_ns)
    inside = [mark for mark in losses if mark["start_ms"] < going_ms + 500 and mark["end_ms"] > stopped_ms]
    assert sum(mark["count"] for mark in inside) > 500, (losses, stopped_ms, going_ms)
    # It is said from when to when, to a second.
    assert min(mark["start_ms"] for mark in inside) > stopped_ms - 1000 and max(mark["end_ms"] for mark in inside) < going_ms + 1000


def test_processes_are_marked_when_they_begin_and_end(start):
    server = start.server()
    workload = TESTS_BIN / "phases-workload"
    # Counting keeps the shell's own exec and its first child's apart: marks of a kind within a slice are one.
    count = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 99, "--events", "cpu-clock", "--",
                        "sh", "-c", f"{count}; sleep 0.5; {workload} 0.2 1; exec {workload} 0.3 1")
    server.wait_ended()
    agent.stop()
    session = server.only_session()
    (main_pid,) = session["pids"]
    lines = [(monotonic_ms(session, time_ns), name) for time_ns, name in lines_of(agent.out)]
    assert [name for _, name in lines] == ["parse", "compute", "sleep", "end"] * 2
    child_lines, main_lines = lines[:4], lines[4:]
    marks = marks_of(server, session["id"])
    assert all(mark["count"] == 1 and mark["start_ms"] == mark["end_ms"] for mark in marks if mark["kind"] in ("begin", "exec", "exit")), marks

    def of(kind, pid=None):
        return [mark for mark in marks if mark["kind"] == kind and (pid is None or mark["pid"] == pid)]

    # The shell's two children begin, become their programs and end; the shell becomes the third.
    children = [mark["pid"] for mark in of("begin") if mark["pid"] != main_pid]
    assert len(children) == 2
    assert [mark["name"] for mark in of("exec", children[0])] == ["sleep"] and [mark["name"] for mark in of("exec", children[1])] == ["phases-workload"]
    assert of("exec", main_pid)[-1]["name"] == "phases-workload"
    for pid, (first_ms, *_, last_ms) in ((children[1], [at for at, _ in child_lines]), (main_pid, [at for at, _ in main_lines])):
        exec_ms = of("exec", pid)[-1]["start_ms"]
        (exit_mark,) = of("exit", pid)
        assert exec_ms < first_ms < exec_ms + 500, (exec_ms, lines)
        assert last_ms < exit_mark["start_ms"] < last_ms + 500, (exit_mark, lines)
        assert exit_mark["name"] == "phases-workload"
    (slept,) = of("exit", children[0])
    assert 500 <= slept["start_ms"] - of("exec", children[0])[0]["start_ms"] < 1000
    assert of("begin", children[1])[0]["start_ms"] > slept["start_ms"]
    assert of("exec", main_pid)[-1]["start_ms"] > of("exit", children[1])[0]["start_ms"]
