"""Thread states during a recording, from device health and from thread exits. Tests on captures check CPU times (tests/captures/test_scheduling.py)."""
import pytest
from flamewire import HttpError, wait_until


def rows(server, session, **parameters):
    return {row["tid"]: row for row in server.get("/api/thread-summary", session=session, **parameters)["threads"]}


def test_states_and_counters_of_threads_while_they_are_recorded(start):
    server = start.server()
    program = start.workload("shares", 600, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--events", "cpu-clock", "--frequency", 499)
    session = wait_until(lambda: next((one["id"] for one in server.sessions() if one["samples"] > 50), None), 60, "samples")
    wait_until(lambda: len(rows(server, session)) >= 2, 60, "both threads")
    end = server.get("/api/timeline", session=session)["session_end_ms"] // 100 * 100
    assert all(row["state"] == "alive" and row["cpu_from"] == "clock_samples" for row in rows(server, session, start=0, end=end).values())

    assert server.command("counters", by="thread")["ok"]
    assert server.command("configure_metrics", interval=1, threads=True)["ok"]

    def counted():
        now = rows(server, session)
        return now if all(row["cpu_from"] == "counted" for row in now.values()) else None

    tid = next(iter(wait_until(counted, 60, "counters of all threads")))
    # The state comes from the machine: of two busy threads, each runs or waits for a CPU. Before health was collected, they counted as alive.
    wait_until(lambda: rows(server, session)[tid]["state"] == "running", 60, "the state of a thread that computes")
    assert rows(server, session, start=0, end=end)[tid]["state"] == "alive"

    # Thread exits are known without health data.
    program.stop()
    wait_until(lambda: all(row["state"] == "ended" for row in rows(server, session).values()), 60, "the end of all threads")
    assert rows(server, session, start=0, end=end)[tid]["state"] == "alive"
    agent.stop()
    for wrong in (0, 501, "x"):
        with pytest.raises(HttpError) as refused:
            server.get("/api/thread-summary", session=session, slices=wrong)
        assert refused.value.status == 400 and "slices" in refused.value.error["message"]
