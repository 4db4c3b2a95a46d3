"""The time axis compared with programs that print when they do what: windows of the flame graph and of the counters, slices, and marks. The programs'
times are CLOCK_MONOTONIC, like the session's start, so a window in ms is exact."""
import re

from flamewire import Tree

EDGE_MS = 100  # at each edge of a phase, because of the change itself
COUNTED_EVERY_MS = 500
PHASE_LINE = re.compile(r"^(\d+) (parse|compute|sleep|end)$")


def monotonic_ms(session, time_ns):
    return (time_ns - session["start_ns"]) / 1e6


def lines_of(replay):
    return [(int(time_ns), name) for time_ns, name in (PHASE_LINE.match(line).groups() for line in replay.truth["output"])]


def windows_of(replay, session, edge_ms=EDGE_MS):
    """name -> inner windows {start, end} in ms of the phases that began after the recording."""
    lines = lines_of(replay)
    windows = {"parse": [], "compute": [], "sleep": []}
    for (start_ns, name), (end_ns, _) in zip(lines, lines[1:]):
        if start_ns >= session["start_ns"]:
            windows[name].append({"start": monotonic_ms(session, start_ns) + edge_ms, "end": monotonic_ms(session, end_ns) - edge_ms})
    assert all(len(found) >= 2 for found in windows.values()), windows
    return windows


def counters_of(server, window):
    (group,) = server.get("/api/counters", **window)["groups"]
    return group["elapsed_ms"], {counter["name"]: counter.get("value") for counter in group["counters"] if counter["status"] == "counted"}


def test_a_window_shows_the_function_that_ran_in_it(replayed, served):
    replay, (server, session) = replayed("phases"), served("phases")
    windows = windows_of(replay, session)
    busy = []
    for name in ("parse", "compute"):
        for window in windows[name]:
            tree = Tree(server.get("/api/flamegraph", **window, min_share=0))
            busy.append(tree.answer["total"]["samples"])
            # Each sample is in the function. The kernel is not recorded.
            inside = sum(samples for samples, frame in zip(tree.samples, tree.names) if f"phase_{name}" in replay.function(frame))
            assert inside >= 0.97 * busy[-1], (name, window, tree.names)
    for window in windows["sleep"]:
        assert server.get("/api/flamegraph", **window)["total"]["samples"] == 0, (window, busy)
    assert min(busy) > 100


def test_counters_do_not_advance_during_sleep(replayed, served):
    replay, (server, session) = replayed("phases"), served("phases")
    # An interval belongs to the window that contains its middle: exclude half an interval and some lateness at each edge.
    windows = windows_of(replay, session, EDGE_MS + COUNTED_EVERY_MS / 2 + 50)
    for window in windows["parse"] + windows["compute"]:
        elapsed_ms, values = counters_of(server, window)
        assert values["task-clock"] > 0.5 * elapsed_ms * 1e6, (window, values)
    for window in windows["sleep"]:
        elapsed_ms, values = counters_of(server, window)
        assert elapsed_ms >= COUNTED_EVERY_MS / 2
        assert values["task-clock"] < 0.03 * elapsed_ms * 1e6, (window, values)


def test_slices_have_samples_where_it_was_busy_and_none_where_it_slept(replayed, served):
    replay, (server, session) = replayed("phases"), served("phases")
    answer = server.get("/api/timeline", bucket=100)
    assert answer["slice_ms"] == 100 and answer["start_ms"] == 0
    windows = windows_of(replay, session)

    def slices_in(window):
        return [samples for number, samples in enumerate(answer["samples"]) if window["start"] <= number * 100 and (number + 1) * 100 <= window["end"]]

    for window in windows["parse"] + windows["compute"]:
        inside = slices_in(window)
        # A busy machine may take the CPU away for some slices.
        assert len(inside) >= 8 and sum(samples > 0 for samples in inside) >= 0.75 * len(inside), (window, inside)
    for window in windows["sleep"]:
        inside = slices_in(window)
        assert len(inside) >= 8 and sum(inside) == 0, (window, inside)
    assert sum(answer["samples"]) == session["samples"] == replay.truth["samples"]


def marks_of(server, session_id, **window):
    return server.get("/api/timeline", session=session_id, slices=2000, **window)["marks"]


def test_lost_samples_are_a_mark_where_they_are_missing(replayed, served):
    """The agent was stopped meanwhile, so its rings overflowed."""
    truth, (server, session) = replayed("stopped").truth, served("stopped")
    losses = [mark for mark in marks_of(server, session["id"]) if mark["kind"] == "loss"]
    assert all(mark["lost"] and mark["reason"] == "ring_full" for mark in losses), losses
    assert sum(mark["count"] for mark in losses) == session["lost"] > 500
    stopped_ms, going_ms = monotonic_ms(session, truth["stopped_ns"]), monotonic_ms(session, truth["going_ns"])
    inside = [mark for mark in losses if mark["start_ms"] < going_ms + 500 and mark["end_ms"] > stopped_ms]
    assert sum(mark["count"] for mark in inside) > 500, (losses, stopped_ms, going_ms)
    # The mark's start and end are exact to one second.
    assert min(mark["start_ms"] for mark in inside) > stopped_ms - 1000 and max(mark["end_ms"] for mark in inside) < going_ms + 1000


def test_processes_are_marked_when_they_begin_and_end(replayed, served):
    replay, (server, session) = replayed("processes"), served("processes")
    (main_pid,) = session["pids"]
    lines = [(monotonic_ms(session, time_ns), name) for time_ns, name in lines_of(replay)]
    assert [name for _, name in lines] == ["parse", "compute", "sleep", "end"] * 2
    child_lines, main_lines = lines[:4], lines[4:]
    marks = marks_of(server, session["id"])
    assert all(mark["count"] == 1 and mark["start_ms"] == mark["end_ms"] for mark in marks if mark["kind"] in ("begin", "exec", "exit")), marks

    def of(kind, pid=None):
        return [mark for mark in marks if mark["kind"] == kind and (pid is None or mark["pid"] == pid)]

    # The shell starts two children, which execute their programs and exit. The shell itself then executes the third program.
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
