"""Changes to a running recording stay in the same session, lose nothing, and have a mark on the timeline."""
from flamewire import TESTS_BIN, wait_until


def marks(server, session):
    return [mark for mark in server.get("/api/timeline", session=session, slices=200)["marks"] if mark["kind"] == "change"]


def samples(server, session, pid):
    return server.get("/api/functions", session=session, pid=pid)["total"]["samples"]


def test_rate_stacks_and_process_of_one_session(start):
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--verbose")
    first, second = start.workload("shares", 600), start.process("second", [TESTS_BIN / "demo-workload", "600"])
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    started = server.command("start", pid=first.pid, frequency=199, events=["cpu-clock"])
    assert started["ok"], started
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 50, 30, "samples")
    session = server.only_session()["id"]
    assert marks(server, session) == []

    changed = server.command("configure", frequency=499)
    assert changed["ok"] and changed["applied"] == "now" and changed["recording"] == started["recording"]
    (rate,) = wait_until(lambda: marks(server, session), 30, "the mark")
    assert rate["name"] == "199 Hz became 499 Hz" and 0 <= rate["end_ms"] - rate["start_ms"] < 5000

    other = server.command("configure", pid=second.pid)
    assert other["ok"] and other["pid"] == second.pid and other["recording"] == started["recording"] and str(second.pid) in other["target"]
    wait_until(lambda: samples(server, session, second.pid) > 50, 60, "samples of the other process")
    of_first = samples(server, session, first.pid)
    assert of_first > 50
    found = marks(server, session)
    assert len(found) == 2 and f"pid {first.pid}" in found[1]["name"] and f"became pid {second.pid}" in found[1]["name"]
    # The first process is no longer sampled. The session is the same, and its name is the new target's.
    wait_until(lambda: samples(server, session, second.pid) > 300, 60, "more samples")
    assert samples(server, session, first.pid) == of_first
    detail = server.only_session()
    assert detail["id"] == session and str(second.pid) in detail["target"] and detail["pids"] == [second.pid]
    wait_until(lambda: str(second.pid) in server.get("/api/agents")["agents"][0]["target"], 30, "the agent's target")

    # A refused change leaves everything as it is.
    for args, words in (({"pid": 4194304}, "not found"), ({"pid": agent.pid}, "the agent itself"), ({"unwind": "nonsense"}, "unwind"), ({"frequency": 0}, "whole number")):
        refused = server.command("configure", **args)
        assert not refused["ok"] and words in refused["error"], refused
    assert server.command("stop")["ok"]
    server.wait_ended()
    detail = server.only_session()
    assert detail["samples"] == samples(server, session, first.pid) + samples(server, session, second.pid)
    line = wait_until(lambda: next((line for line in agent.err.splitlines() if "samples read" in line), None), 30, "the account")
    assert "DIFFER" not in line
    assert not server.command("configure", pid=first.pid)["ok"]
    # A replay shows the same marks.
    server.stop()
    again = start.server(name="again")
    assert [mark["name"] for mark in marks(again, session)] == [mark["name"] for mark in found]


def test_a_launched_command_stays_the_target(start):
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--", TESTS_BIN / "shares-workload", "600")
    program = start.workload("shares", 600)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 0, 30, "samples")
    refused = server.command("configure", pid=program.pid)
    assert not refused["ok"] and "launched" in refused["error"]


def test_changes_end_with_their_recording(start):
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--events", "cpu-clock", "--frequency", 49)
    program = start.workload("shares", 600)
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    settings = ("frequency", "unwind", "stack_size", "max_depth", "filter", "stat", "event_list", "kernel")
    idle = {name: server.command("status")[name] for name in settings}
    assert idle["event_list"] == "cpu-clock" and idle["frequency"] == 49 and idle["kernel"]

    started = server.command("start", pid=program.pid)
    assert started["events"] == ["cpu-clock"], started
    changed = server.command("configure", events=["page-faults", "cpu-clock"], frequency=199, unwind="fp", kernel=False, stat="context-switches")
    assert changed["ok"] and changed["applied"] == "now" and changed["events"] == ["page-faults", "cpu-clock"] and not changed["kernel"], changed
    assert server.command("stop")["ok"]
    assert {name: server.command("status")[name] for name in settings} == idle
    again = server.command("start", pid=program.pid)
    assert again["events"] == started["events"] and again["frequency"] == 49 and again["unwind"] == started["unwind"], again
    assert again["kernel"] == started["kernel"] and again["counters"] == started["counters"], again
    assert server.command("stop")["ok"]

    # A change while nothing is recorded applies to later recordings. Without an event list, the default events are used.
    later = server.command("configure", events=["page-faults"], frequency=199)
    assert later["applied"] == "at the next start" and server.command("status")["event_list"] == "page-faults"
    assert server.command("start", pid=program.pid)["events"] == ["page-faults"]
    assert server.command("stop")["ok"]
    usual = server.command("start", pid=program.pid, events=[])
    assert usual["events"] != ["page-faults"] and usual["frequency"] == 199, usual
