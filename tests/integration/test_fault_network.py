"""Connections that lose, delay, stall and break: one session results, every sample is in it or reported as lost, and nothing leaks."""
import os
import shutil
import subprocess
import time

import flamewire
import pytest
from faults import SlowLine, Wire, held
from flamewire import MEMORY, wait_until
from test_accounting import check_books

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("nft") or subprocess.run(["unshare", "--net", "true"], check=False).returncode != 0,
                                reason="NOT tested: network namespaces need root, iproute2 and nftables; CI has them")


@pytest.fixture
def wire():
    made = Wire()
    try:
        yield made
    finally:
        made.close()


def over(start, wire, server, program, *more):
    """An agent at the other end of the network."""
    return start.process("agent", [*wire.inside, flamewire.BIN / "flamewire-agent", "--server", wire.here, "--port", server.port, "--insecure", "--pid", program.pid, *more])


def end(server, program, seconds=60):
    program.stop()
    wait_until(lambda: server.only_session()["state"] == "ended" and server.only_session()["end_reason"] == "target exited", seconds, "the end of the session")
    return check_books(server)


@needs_root
def test_one_packet_of_a_hundred_is_lost_on_a_slow_line(start, wire):
    server = start.server("--insecure")
    wire.rules("numgen random mod 100 < 1 drop")
    wire.rate(512)
    program = start.workload("shares", 600, 2)
    agent = over(start, wire, server, program, "--frequency", 999, "--interval", 50)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 3000, 40, "samples")
    session = end(server, program)
    assert session["lost"] == 0 and len(server.sessions()) == 1, session["losses"]
    assert agent.stop() == 0


@needs_root
def test_a_plug_that_is_pulled(start, wire):
    """Neither end is notified. Samples from the outage arrive later."""
    server = start.server("--insecure")
    program = start.workload("shares", 600, 2)
    agent = over(start, wire, server, program, "--frequency", 999, "--interval", 50)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    for seconds in (0.5, 4):
        wire.down()
        have = server.only_session()["samples"]
        time.sleep(seconds)
        wire.up()
        wait_until(lambda: server.only_session()["samples"] > have + 1000, 40, "the recording to continue")
    session = end(server, program)
    assert session["lost"] == 0 and len(server.sessions()) == 1, session["losses"]
    assert agent.stop() == 0


@needs_root
def test_a_server_that_dies_while_the_line_is_down(start, wire):
    """The agent's connection has no peer any more, and only the next server can reset it."""
    port, http_port = flamewire.free_port(), flamewire.free_port()
    server = start.server("--insecure", port=port, http_port=http_port)
    program = start.workload("shares", 600, 2)
    agent = over(start, wire, server, program, "--frequency", 999, "--interval", 50)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    wire.rules("drop")
    time.sleep(0.5)
    server.process.kill()
    server.process.wait()
    server = start.server("--insecure", port=port, http_port=http_port)
    have = server.only_session()["samples"]
    time.sleep(2)
    wire.rules()
    wait_until(lambda: server.only_session()["samples"] > have + 1000, 45, "the recording to continue")
    session = end(server, program)
    assert session["lost"] == 0 and len(server.sessions()) == 1, session["losses"]
    assert agent.stop() == 0


def test_delays_and_stalls(start):
    server = start.server()
    line = SlowLine(server.port, delay=0.3)
    program = start.workload("shares", 600, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", line.port, "--pid", program.pid, "--frequency", 999, "--interval", 50)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1000, 30, "samples")

    def more(seconds):
        have = server.only_session()["samples"]
        wait_until(lambda: server.only_session()["samples"] > have + 500, seconds, "the recording to continue")

    def faults():
        for seconds in (0.2, 1, 3):
            line.stalled = True
            time.sleep(seconds)
            line.stalled = False
            more(20)
        # Half open: the agent's data was dropped, so the connection cannot continue.
        line.swallowing = True
        time.sleep(1)
        line.swallowing = False
        line.cut()
        more(40)

    faults()
    before = held(server), held(agent)  # this includes the symbols of all files: reading them takes 20 MiB and more
    faults()
    after = held(server), held(agent)
    for was, now in zip(before, after):
        assert now.files <= was.files + 1 and now.threads <= was.threads and now.rss < was.rss + MEMORY * (8 << 20), (before, after)
    session = end(server, program)
    assert session["lost"] == 0 and len(server.sessions()) == 1, session["losses"]
    assert agent.stop() == 0
    line.close()
