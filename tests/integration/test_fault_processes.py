"""Agents, servers and targets that die at any moment: shown data is correct, and no resources leak."""
import os
import random
import signal
import time

import flamewire
from faults import held
from flamewire import MEMORY, reports_of_unsampled, wait_until
from test_accounting import check_books


def test_agents_that_are_killed(start):
    """Each agent's session ends with the data that had arrived, and the server holds nothing of it afterwards."""
    server = start.server()
    randomness = random.Random(5)
    program = start.workload("shares", 600)
    before = None
    for turn in range(8):
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499, "--interval", 20, name=f"agent-{turn}")
        wait_until(lambda: len(server.sessions()) == turn + 1, 20, "its session")
        time.sleep(randomness.uniform(0, 0.5))
        agent.process.kill()
        agent.process.wait()
        wait_until(lambda: not server.get("/api/status")["agent_connected"], 10, "the server to notice")
        session = server.session(server.sessions()[0]["id"])
        assert session["state"] == "waiting" and session["lost"] == 0
        if session["samples"]:
            shown = session["samples"] - reports_of_unsampled(server, session)
            # The figures of the last batch are published a moment after its samples.
            wait_until(lambda: any(one["stats"]["samples_read"] >= shown for one in server.get("/api/agents")["agents"] if one.get("stats")), 10, "the agent's own count of these samples")
            assert server.get("/api/flamegraph", session=session["id"])["total"]["samples"] == session["samples"]
        if turn == 3:
            before = held(server)
    # A session that waits for its agent keeps only its file open. The last connection closes a moment after its agent has exited.
    wait_until(lambda: held(server).files <= before.files + 4, 20, f"what the server holds to be as before ({before})")
    after = held(server)
    assert after.threads <= before.threads and after.rss < before.rss + MEMORY * (32 << 20), (before, after)


def test_a_server_that_restarts_under_load(start):
    """Four agents at once, two restarts by signal and two by SIGKILL: four complete sessions."""
    port, http_port = flamewire.free_port(), flamewire.free_port()
    server = start.server(port=port, http_port=http_port)
    programs = [start.workload("shares", 600) for _ in range(4)]
    agents = [start.agent("--server", "127.0.0.1", "--port", port, "--pid", program.pid, "--frequency", 199, "--interval", 50, name=f"agent-{n}") for n, program in enumerate(programs)]
    wait_until(lambda: len(server.sessions()) == 4 and all(one["samples"] > 50 for one in server.sessions()), 30, "four sessions")
    for turn in range(4):
        if turn % 2:
            server.process.kill()
            server.process.wait()
        else:
            assert server.stop() == 0
        server = start.server(port=port, http_port=http_port)
        wait_until(lambda: sum(one["connected"] for one in server.get("/api/agents")["agents"]) == 4, 45, "all agents")
        have = {one["id"]: one["samples"] for one in server.sessions()}
        wait_until(lambda: all(one["samples"] > have[one["id"]] for one in server.sessions()), 20, "all to go on")
    for program in programs:
        program.stop()
    wait_until(lambda: all(one["state"] == "ended" for one in server.sessions()), 30, "their ends")
    read = sorted(one["stats"]["samples_read"] - one["stats"]["samples_duplicate"] + one["stats"]["samples_lost"] for one in server.get("/api/agents")["agents"])
    assert sorted(one["samples"] + one["lost"] for one in server.sessions()) == read and sum(one["lost"] for one in server.sessions()) == 0
    assert [agent.stop() for agent in agents] == [0] * 4


def test_a_target_that_forks_and_execs_and_dies(start):
    """Hundreds of processes that last for a moment: the agent follows them and keeps nothing of them after they exit."""
    server = start.server()
    churn = start.process("churn", ["sh", "-c", "while :; do for i in 1 2 3 4 5 6 7 8; do (exec sh -c 'n=0; while [ $n -lt 2000 ]; do n=$((n+1)); done; exec true') & done; wait; done"], start_new_session=True)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", churn.pid, "--frequency", 999)
    try:
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1000, 40, "samples")
        before = held(agent)
        have = server.only_session()["samples"]
        wait_until(lambda: server.only_session()["samples"] > have + 4000, 45, "many more")
        after = held(agent)
    finally:
        os.killpg(churn.pid, signal.SIGKILL)
    churn.process.wait()
    server.wait_ended()
    session = check_books(server)
    assert after.files <= before.files + 16 and after.threads <= before.threads and after.rss < before.rss + MEMORY * (16 << 20), (before, after)
    assert session["samples"] > 5000 and agent.stop() == 0
