"""Too many threads, too little memory, another clock, clients that do not read: shown data is correct, and memory does not grow."""
import pathlib
import re
import socket
import time

import flamewire
from faults import held
from flamewire import MEMORY, wait_until
from sanitized import plain_build_only
from test_accounting import check_books, kernel_samples


def test_two_thousand_threads(start):
    """A large server has this many threads, most of them asleep."""
    server = start.server()
    crowd = start.process("crowd", ["python3", "-c", "import threading, time\nthreading.stack_size(65536)\nready = []\ndef wait():\n    ready.append(1)\n    while True: time.sleep(2)\n"
                                    "for _ in range(2000): threading.Thread(target=wait, daemon=True).start()\nprint('ready', flush=True)\nwhile True: sum(range(10000))"])
    wait_until(lambda: "ready" in crowd.out, 30, "its threads")
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", crowd.pid, "--frequency", 199)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 40, "samples")
    assert len(list(pathlib.Path(f"/proc/{crowd.pid}/task").iterdir())) == 2001
    crowd.stop()
    server.wait_ended()
    session = check_books(server)
    # While two thousand events are opened, a ring can fill up. Then the loss is reported.
    assert {one["reason"] for one in session["losses"] if one["lost"]} <= {"ring_full"}, session["losses"]
    assert "threads-skipped" not in {one["code"] for one in session["notices"]}, session["notices"]
    assert agent.stop() == 0


def test_an_agent_with_another_monotonic_clock(start):
    """In a time namespace, the agent's CLOCK_MONOTONIC is hours ahead of the kernel's, which stamps the samples."""
    server = start.server()
    program = start.workload("shares", 600)
    agent = start.process("agent", ["unshare", "--time", "--monotonic", "100000", "--fork", "--kill-child", flamewire.BIN / "flamewire-agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--pid", program.pid, "--frequency", 199])
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 30, "samples")
    program.stop()
    server.wait_ended()
    session = check_books(server)
    assert session["lost"] == 0 and session["duration_ms"] < 60_000, session["duration_ms"]
    timeline = server.get("/api/timeline", session=session["id"])
    assert timeline["session_end_ms"] < 60_000
    agent.process.kill()  # unshare does not forward signals
    agent.process.wait()


@plain_build_only("they reserve 16 TiB of addresses")
def test_an_agent_with_little_memory(start):
    """The agent works within its memory limit, or reports in one sentence that it cannot."""
    server = start.server()
    output = {}
    for mib in (256, 64, 24, 12, 6):
        agent = start.process(f"agent-{mib}", ["prlimit", f"--as={mib << 20}", flamewire.BIN / "flamewire-agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 499, "--", flamewire.TESTS_BIN / "shares-workload", 2])
        code = agent.wait(30)
        output[mib] = code
        assert code in (0, 1), (mib, code, agent.err)
        if code == 1:
            lines = agent.err.splitlines()
            assert lines and re.search("out of memory|[Cc]annot allocate memory", agent.err), (mib, agent.err)
    assert output[256] == 0 and output[64] == 0, output
    assert server.alive()


def test_a_browser_that_does_not_read(start):
    """It holds at most one event of each kind. Other clients get their events as before."""
    server = start.server()
    program = start.workload("shares", 600, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--interval", 20)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    deaf = []
    for _ in range(20):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        one.connect(("127.0.0.1", server.http_port))
        one.sendall(b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
        deaf.append(one)
    time.sleep(1)
    before = held(server)
    notified = 0
    with server.stream() as events:
        until = time.monotonic() + 8
        for name, _ in events:
            notified += name == "data_version"
            if time.monotonic() > until:
                break
    after = held(server)
    assert notified > 20 and after.rss < before.rss + MEMORY * (16 << 20) and after.files <= before.files + 1, (notified, before, after)
    for one in deaf:
        one.close()
    wait_until(lambda: held(server).files <= before.files - 19, 20, "their places to be free")
    read, lost = kernel_samples(server)
    assert read >= 0 and lost == 0
    program.stop()
    server.wait_ended()
    assert check_books(server)["lost"] == 0 and agent.stop() == 0
