"""Exact accounting: what the kernel sampled is what is shown plus what is stated as lost, whatever happens to link, server or rings."""
import signal
import time

import bounds
import flamewire
import pytest
from flamewire import Relay, wait_until
from known_shares import check_known_shares

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=8)


def kernel_samples(server):
    """(taken from the rings without duplicates, lost in the kernel) as the agent's last batch says."""
    stats = server.get("/api/agents")["agents"][0]["stats"]
    return stats["samples_read"] - stats["samples_duplicate"], stats["samples_lost"]


def check_books(server, session_id=None):
    session = server.session(session_id) if session_id else server.only_session()
    read, lost_in_kernel = kernel_samples(server)
    assert session["samples"] + flamewire.lost(session) == read + lost_in_kernel, (session["samples"], session["losses"], read, lost_in_kernel)
    return session


def test_stopped_agent_with_one_page_rings(start):
    """SIGSTOP of the agent for 2 s of the target's CPU time, with one-page rings: the kernel overflows them, and every lost sample is stated."""
    server = start.server()
    program = start.workload("shares", 60, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--ring-pages", 1, "--unwind", "fp")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    agent.signal(signal.SIGSTOP)
    before = flamewire.cpu_seconds(program.pid)
    wait_until(lambda: flamewire.cpu_seconds(program.pid) > before + 2, 60, "2 s of CPU time")
    agent.signal(signal.SIGCONT)
    time.sleep(1)
    program.stop()
    server.wait_ended()
    session = check_books(server)
    ring = [loss for loss in session["losses"] if loss["reason"] == "ring_full"]
    # 2 s of CPU time at 999 Hz do not fit into a page for each thread. (Of samples with a stack copy not one would.)
    assert sum(loss["count"] for loss in ring) > 1000, session["losses"]
    agent.stop()


def test_server_away_longer_than_the_spool(start):
    """The spool's bound is reached: the oldest is coarsened, then dropped, and the loss is stated exactly."""
    port, http_port = flamewire.free_port(), flamewire.free_port()
    server = start.server(port=port, http_port=http_port)
    relay = Relay(port)
    program = start.workload("bench", 60, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pid", program.pid, "--frequency", 4999, "--spool", 65_536, "--interval", 50)
    wait_until(lambda: server.sessions(), 20, "a session")
    time.sleep(1)
    relay.blocked = True
    relay.cut()
    time.sleep(14)
    relay.blocked = False
    wait_until(lambda: server.get("/api/status")["agent_connected"], 45, "the agent's return")
    time.sleep(1)
    program.stop()
    server.wait_ended(seconds=45)
    session = check_books(server)
    assert any(loss["reason"] == "spool_full" for loss in session["losses"]), session["losses"]
    agent.stop()
    relay.close()


@pytest.mark.recording
def test_three_agents_at_once(start):
    """Each agent has its own session; one that is killed leaves the others untouched."""
    server = start.server()
    programs = [start.workload("shares", 60) for _ in range(3)]
    agents = [start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 199, name=f"agent{number}")
              for number, program in enumerate(programs)]
    # The first batch says whose they are.
    sessions = wait_until(lambda: (found := server.sessions()) and sum(len(one["pids"]) for one in found) == 3 and found, 20, "three sessions")
    ids = {str(pid): session["id"] for session in sessions for pid in session["pids"]}
    status, _, body = server.request("GET", "/api/flamegraph")
    assert status == 409 and body["error"]["code"] == "several_sessions" and sorted(body["error"]["sessions"]) == sorted(ids.values())
    time.sleep(1)
    agents[0].process.kill()
    agents[0].process.wait()
    first = ids[str(programs[0].pid)]
    wait_until(lambda: server.session(first)["state"] == "waiting", 15, "the killed agent's session to wait")
    before = {pid: server.session(ids[str(programs[pid].pid)])["samples"] for pid in (1, 2)}
    for number in (1, 2):
        wait_until(lambda number=number: server.session(ids[str(programs[number].pid)])["samples"] > before[number] + 300, 60, "samples of the others")
        session = server.session(ids[str(programs[number].pid)])
        assert session["state"] == "live" and session["lost"] == 0
        tree = flamewire.Tree(server.get("/api/flamegraph", session=session["id"], min_share=0))
        check_known_shares(KNOWN, tree)
    for agent in agents[1:]:
        assert agent.stop() == 0
