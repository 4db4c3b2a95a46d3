"""Exact accounting: shown samples plus reported losses equal the kernel's samples, whatever happens to the link, the server or the rings."""
import bounds
import flamewire
import pytest
from flamewire import Relay, wait_until
from known_shares import check_known_shares

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=8)


def kernel_samples(server):
    """(samples read from the rings without duplicates, samples lost in the kernel), from the agent's last batch."""
    stats = server.get("/api/agents")["agents"][0]["stats"]
    return stats["samples_read"] - stats["samples_duplicate"], stats["samples_lost"]


def check_books(server, session_id=None):
    session = server.session(session_id) if session_id else server.only_session()
    read, lost_in_kernel = kernel_samples(server)
    samples = session["samples"] - flamewire.reports_of_unsampled(server, session)
    assert samples + flamewire.lost(session) == read + lost_in_kernel, (samples, session["losses"], read, lost_in_kernel)
    return session


def test_server_away_longer_than_the_spool(start):
    """When the spool is full, the oldest batches are coarsened, then dropped. The loss is reported exactly."""
    port, http_port = flamewire.free_port(), flamewire.free_port()
    server = start.server(port=port, http_port=http_port)
    relay = Relay(port)
    program = start.workload("bench", 600, 2)
    # This many distinct samples fill the smallest spool in less than 1.5 s of the program's CPU time.
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pid", program.pid, "--frequency", 14_999, "--events", "cpu-clock,task-clock", "--spool", 65_536, "--interval", 50)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1000, 20, "samples")
    relay.blocked = True
    relay.cut()
    before = flamewire.cpu_seconds(program.pid)
    wait_until(lambda: flamewire.cpu_seconds(program.pid) > before + 3, 60, "3 s of CPU time")
    relay.blocked = False
    wait_until(lambda: server.get("/api/status")["agent_connected"], 45, "the agent's return")
    seen = server.only_session()["samples"]
    wait_until(lambda: server.only_session()["samples"] > seen, 20, "samples after its return")
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
    programs = [start.workload("shares", 600) for _ in range(3)]
    agents = [start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499, name=f"agent{number}")
              for number, program in enumerate(programs)]
    # The pids of a session arrive with its first batch.
    sessions = wait_until(lambda: (found := server.sessions()) and sum(len(one["pids"]) for one in found) == 3 and found, 20, "three sessions")
    ids = {str(pid): session["id"] for session in sessions for pid in session["pids"]}
    status, _, body = server.request("GET", "/api/flamegraph")
    assert status == 409 and body["error"]["code"] == "several_sessions" and sorted(body["error"]["sessions"]) == sorted(ids.values())
    wait_until(lambda: all(one["samples"] > 0 for one in server.sessions()), 20, "samples of each")
    agents[0].process.kill()
    agents[0].process.wait()
    first = ids[str(programs[0].pid)]
    wait_until(lambda: server.session(first)["state"] == "waiting", 15, "the killed agent's session to wait")
    before = {pid: server.session(ids[str(programs[pid].pid)])["samples"] for pid in (1, 2)}
    for number in (1, 2):
        wait_until(lambda number=number: server.session(ids[str(programs[number].pid)])["samples"] > before[number] + 300, 60, "samples of the others")
        session = server.session(ids[str(programs[number].pid)])
        assert session["state"] == "live" and session["lost"] == 0
    for number in (1, 2):
        assert agents[number].stop() == 0
        session = server.wait_ended(ids[str(programs[number].pid)])
        check_known_shares(KNOWN, flamewire.Tree(server.get("/api/flamegraph", session=session["id"], min_share=0)))
