"""The end of the timeline of a running session, and marks for a cut link. Times are CLOCK_MONOTONIC, like the session's start, so a window in ms
is exact."""
import os
import signal
import time

import pytest
from flamewire import Relay, wait_until


def monotonic_ms(session, time_ns):
    return (time_ns - session["start_ns"]) / 1e6


def test_the_axis_grows_while_the_program_is_stopped(start):
    server = start.server()
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499, "--events", "cpu-clock")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    program.signal(signal.SIGSTOP)
    session = server.only_session()
    stopped_ms = monotonic_ms(session, time.monotonic_ns()) + 100
    # At this point, all samples from before the stop have arrived.
    wait_until(lambda: server.get("/api/timeline")["session_end_ms"] > stopped_ms, 20, "news of the stop")
    looks = []
    for _ in range(2):
        seen_ms = looks[-1][1] if looks else 0
        answer = wait_until(lambda: (look := server.get("/api/timeline", bucket=100))["session_end_ms"] > seen_ms and look, 20, "the axis going on")
        looks.append((time.monotonic_ns(), answer["session_end_ms"], sum(answer["samples"])))
    (first_ns, first_end_ms, first_samples), (second_ns, second_end_ms, second_samples) = looks
    assert first_samples == second_samples > 0
    assert second_end_ms > first_end_ms
    for seen_ns, end_ms in ((first_ns, first_end_ms), (second_ns, second_end_ms)):
        assert stopped_ms < end_ms <= monotonic_ms(session, seen_ns)


def marks_of(server, session_id, **window):
    return server.get("/api/timeline", session=session_id, slices=2000, **window)["marks"]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: higher priority needs root; CI runs as root")
def test_a_cut_link_is_a_mark_without_a_gap(start):
    server = start.server()
    relay = Relay(server.port)
    # The program needs CPU time in each slice, even on a busy machine.
    program = start.workload("shares", 600, preexec_fn=lambda: os.nice(-10))
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
    back_ms = monotonic_ms(server.only_session(), time.monotonic_ns())
    wait_until(lambda: server.get("/api/timeline")["session_end_ms"] > back_ms, 20, "news from after it")
    agent.stop()
    program.stop()
    server.wait_ended()
    session = server.only_session()
    marks = marks_of(server, session_id)
    (away,) = [mark for mark in marks if mark["kind"] == "reconnect"]
    cut_ms, back_ms = monotonic_ms(session, cut_ns), monotonic_ms(session, back_ns)
    assert away["start_ms"] <= cut_ms and away["end_ms"] >= back_ms - 1, (away, cut_ms, back_ms)
    assert away["start_ms"] > 0 and away["end_ms"] < session["duration_ms"]
    # Samples from the outage arrived later: nothing was lost.
    assert session["lost"] == 0 and not [mark for mark in marks if mark["kind"] == "loss"]
    meanwhile = server.get("/api/timeline", start=cut_ms, end=back_ms, slices=10)["samples"]
    assert all(samples > 0 for samples in meanwhile), meanwhile
    # A query for a time range has the mark inside the outage, and not before it.
    assert away in marks_of(server, session_id, start=cut_ms + 500, end=cut_ms + 1000)
    assert away not in marks_of(server, session_id, start=0, end=away["start_ms"] - 1)
    relay.close()
    server.stop()
    again = start.server()
    assert marks_of(again, session_id) == marks
