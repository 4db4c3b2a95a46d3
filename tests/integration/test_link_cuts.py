"""Exact accounting over a link that is cut repeatedly."""
import random
import time

import flamewire
from flamewire import Relay, wait_until
from test_accounting import check_books


def test_a_hundred_cuts_and_server_kills(start):
    """Random link cuts and kill -9 of the server while recording: one session, nothing lost or duplicated, and an equal replay."""
    randomness = random.Random(20)
    port, http_port = flamewire.free_port(), flamewire.free_port()
    server = start.server(port=port, http_port=http_port)
    relay = Relay(port)
    program = start.workload("shares", 600, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pid", program.pid, "--frequency", 999, "--interval", 50)
    wait_until(lambda: server.sessions(), 20, "a session")
    kills = 0
    for turn in range(100):
        time.sleep(randomness.uniform(0.02, 0.25))
        if turn % 10 == 9:
            server.process.kill()
            server.process.wait()
            relay.cut()
            kills += 1
            server = start.server(port=port, http_port=http_port)
        else:
            relay.cut()
        # Every cut must hit an established link, so wait until the agent reconnects (backoff starts at 1 s after each good connection).
        wait_until(lambda: server.get("/api/status")["agent_connected"], 45, "the agent's return")
    assert kills == 10
    time.sleep(1)
    program.stop()
    server.wait_ended(seconds=45)
    session = check_books(server)
    assert session["lost"] == 0, session["losses"]
    assert session["samples"] > 1000
    live = server.get("/api/flamegraph", min_share=0)
    assert agent.stop() == 0
    server.stop()
    replayed = start.server(port=port, http_port=http_port)
    again = replayed.only_session()
    assert again["samples"] == session["samples"] and again["batches"] == session["batches"]
    other = replayed.get("/api/flamegraph", min_share=0, session=again["id"])
    assert other["total"] == live["total"]
    relay.close()
