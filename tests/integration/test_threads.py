"""Threads: CPU time from each of its sources, states from health and from their ends, samples over time."""
import pytest
from flamewire import HttpError, wait_until


def rows(server, session, **parameters):
    return {row["tid"]: row for row in server.get("/api/thread-summary", session=session, **parameters)["threads"]}


def counted_percent(server, session, tid, start, end):
    """The thread's task-clock, of the time in which threads were counted: sums over /api/counters."""
    groups = server.get("/api/counters", session=session, by="thread", start=start, end=end, slices=2000)["groups"]
    clock = {group["thread"]["tid"]: next(one for one in group["counters"] if one["name"] == "task-clock") for group in groups}
    times = sorted({pair for one in clock.values() for pair in zip(one["series"]["start_ms"], one["series"]["end_ms"])})
    covered, until = 0, 0
    for first, last in times:
        if last > until:
            covered += last - max(first, until)
        until = max(until, last)
    return 100 * sum(clock[tid]["series"]["value"]) / 1e6 / covered


def test_cpu_states_and_pictures_of_threads(start):
    server = start.server()
    program = start.workload("shares", 120, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--events", "cpu-clock", "--frequency", 499)
    session = wait_until(lambda: next((one["id"] for one in server.sessions() if one["samples"] > 400), None), 60, "samples")

    # Samples of a clock stand for CPU time, of the range.
    known = server.get("/api/timeline", session=session)["session_end_ms"]
    end = known // 100 * 100 - 100
    answer = rows(server, session, start=0, end=end, slices=20)
    assert len(answer) >= 2
    for row in answer.values():
        assert row["state"] == "alive" and row["cpu_from"] == "clock_samples"
        assert row["cpu_percent"] == pytest.approx(100 * row["weight"] / (end * 1e6), rel=1e-6)
        assert len(row["slices"]) == 20 and sum(row["slices"]) == row["samples"]
    assert all("slices" not in row for row in rows(server, session).values())

    # Counted by thread, it is what was counted.
    assert server.command("counters", by="thread")["ok"]

    def counted():
        now = rows(server, session)
        return now if all(row["cpu_from"] == "counted" for row in now.values()) else None

    tid = next(iter(wait_until(counted, 60, "counters of all threads")))
    # A range that is over: its readings are all there.
    first = server.get("/api/timeline", session=session)["session_end_ms"]
    wait_until(lambda: server.get("/api/timeline", session=session)["session_end_ms"] > first + 4000, 60, "four seconds")
    for row in rows(server, session, start=first, end=first + 2000).values():
        assert row["cpu_from"] == "counted"
        assert row["cpu_percent"] == pytest.approx(counted_percent(server, session, row["tid"], first, first + 2000), rel=0.01)

    # How they are, as the machine tells; two that compute either run or wait for a CPU.
    assert server.command("configure_metrics", interval=1, threads=True)["ok"]
    wait_until(lambda: rows(server, session)[tid]["state"] == "running", 60, "the state of a thread that computes")
    # Until the health was read nobody knew more than that they lived.
    assert rows(server, session, start=0, end=end)[tid]["state"] == "alive"

    # Their end is known without it.
    program.stop()
    wait_until(lambda: all(row["state"] == "ended" for row in rows(server, session).values()), 60, "the end of all threads")
    assert rows(server, session, start=0, end=end)[tid]["state"] == "alive"
    agent.stop()
    for wrong in (0, 501, "x"):
        with pytest.raises(HttpError) as refused:
            server.get("/api/thread-summary", session=session, slices=wrong)
        assert refused.value.status == 400 and "slices" in refused.value.error["message"]


def test_threads_of_other_events_have_their_share_of_what_was_counted(start):
    """Faults are no clock: threads have their part of them, of the whole target's task-clock."""
    server = start.server()
    program = start.workload("demo", 60)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--events", "context-switches")
    session = wait_until(lambda: next((one["id"] for one in server.sessions() if one["samples"] > 20), None), 60, "samples")
    agent.stop()
    server.wait_ended(session)
    clock = next(one for one in server.get("/api/counters", session=session, slices=2000)["groups"][0]["counters"] if one["name"] == "task-clock")
    span = clock["series"]["end_ms"][-1] - clock["series"]["start_ms"][0]
    whole = 100 * sum(clock["series"]["value"]) / 1e6 / span
    answer = rows(server, session)
    weight = sum(row["weight"] for row in answer.values())
    for row in answer.values():
        assert row["cpu_from"] == "share"
        assert row["cpu_percent"] == pytest.approx(whole * row["weight"] / weight, rel=0.01)
    program.stop()
