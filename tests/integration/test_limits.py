"""Each limit in docs/limits.md that a peer can reach is reached, next to an honest recording that must lose nothing."""
import contextlib
import http.client
import json
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import time

import pytest
from flamewire import BIN, MEMORY, HttpError, free_port, wait_until
from hostile import Forged, HostileAgent
from test_accounting import check_books
from test_pairing import OWN, pair_file


def reached(server, limit):
    """How often the limit was reached, according to /metrics."""
    text = server.get("/metrics").decode()
    return int(re.search(rf'^flamewire_limit_reached_total{{limit="{limit}"}} (\d+)$', text, re.M)[1])


def session_of(server, target):
    return next((one for one in server.sessions() if one["target"].startswith(target)), None)


@contextlib.contextmanager
def honest(start, server):
    """A recording that runs during the test and must have every sample at the end."""
    program = start.workload("shares", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 199, name=f"honest-{time.monotonic_ns()}")
    session = wait_until(lambda: session_of(server, f"pid {program.pid}"), 20, "the honest session")["id"]
    wait_until(lambda: server.session(session)["samples"] > 30, 20, "its samples")
    yield session
    before = server.session(session)["samples"]
    wait_until(lambda: server.session(session)["samples"] > before + 30, 20, "the recording to continue")
    program.stop()
    server.wait_ended(session)
    mine = server.session(session)
    stats = next(one["stats"] for one in server.get("/api/agents")["agents"] if one["hello"].get("platform", {}).get("hostname") != "nowhere" and one.get("stats"))
    assert mine["lost"] == 0 and mine["samples"] == stats["samples_read"] - stats["samples_duplicate"], (mine["losses"], stats)
    assert agent.stop() == 0


def test_a_recording_belongs_to_its_key(start):
    """Knowing the id of another agent or of its recording gives no access to the recording."""
    server = start.server("--insecure")
    program = start.workload("shares", 600)
    agent = start.agent("--server", OWN, "--port", server.port, "--pair-file", pair_file(start.directory, server.pair()), "--pid", program.pid, "--frequency", 199)
    session = wait_until(lambda: server.sessions() and server.sessions()[0]["samples"] > 30 and server.sessions()[0], 20, "samples")["id"]
    stream = server.data_dir / "sessions" / session / "stream.flw"
    agent_info = next(one for one in server.get("/api/agents")["agents"] if one["connected"])
    hello = json.loads(agent_info["hello"]) if isinstance(agent_info["hello"], str) else agent_info["hello"]
    assert b'{"type":"link","key":"' in stream.read_bytes()[:100]
    sidecar = server.data_dir / "sessions" / session / "session.json"
    identity = bytes.fromhex(json.loads(wait_until(lambda: sidecar.exists() and sidecar.read_text(), 20, "the sidecar"))["recording"])
    mine = server.pair()
    for code in (None, mine):
        # Both with a hello for the recording, and with a batch but no such hello.
        with HostileAgent(server.port, code).hello("thief", identity, last=10**6) as thief:
            refusal = thief.await_frame(9)
            assert refusal and "begun with another pairing key" in refusal and "start the agent again" in refusal, (code, refusal)
        with HostileAgent(server.port, code).hello("thief") as thief:
            assert thief.await_frame(8) == {"recording": None, "seq": 0}
            forged = Forged(identity=identity)
            forged.seq = 10**6
            thief.send(5, forged.batch(strings=["evil"]))
            refusal = thief.await_frame(9)
            assert refusal and "begun with another pairing key" in refusal, (code, refusal)
        # Using another agent's name is refused too.
        with HostileAgent(server.port, code).hello(hello["agent_id"]) as thief:
            refusal = thief.await_frame(9)
            assert refusal and "an agent of this name is known already" in refusal, (code, refusal)
    assert server.err.count("security: ") == 6 and reached(server, "foreign_recordings") == 6
    assert b"evil" not in stream.read_bytes() and mine[17:] not in server.err
    # The same holds after a restart, with or without the sidecar file. The recording's own agent continues.
    port, http_port = server.port, server.http_port
    server.process.kill()
    server.process.wait()
    sidecar.unlink(missing_ok=True)
    server = start.server(port=port, http_port=http_port)
    with HostileAgent(server.port, mine).hello("thief", identity, last=10**6) as thief:
        assert "begun with another pairing key" in (thief.await_frame(9) or "")
    have = server.session(session)["samples"]
    wait_until(lambda: server.session(session)["samples"] > have, 40, "the recording to continue")
    program.stop()
    server.wait_ended(session)
    assert check_books(server, session)["lost"] == 0 and len(server.sessions()) == 1
    assert agent.stop() == 0


def test_connections_without_a_name(start):
    """They take no agent's slot, and are closed after a time limit."""
    server = start.server("--insecure")
    silent = []
    with honest(start, server):
        for _ in range(60):
            silent.append(HostileAgent(server.port))
        wait_until(lambda: reached(server, "unnamed_connections") == 12, 10, "twelve to be turned away")
        turned_away = server.get("/api/status")["turned_away"]
        assert any("have not sent a hello yet" in one["reason"] for one in turned_away), turned_away
        # A connection that sends its hello in time is accepted as soon as one of the others is closed.
        silent.pop(0).close()
        wait_until(lambda: HostileAgent(server.port).hello("late").await_frame(8, 2), 20, "a free slot")
        wait_until(lambda: reached(server, "hello_time") >= 40, 20, "the time limit")
    for one in silent:
        one.close()


def test_connections_with_a_name(start):
    server = start.server("--insecure", "--verbose")
    with honest(start, server), contextlib.ExitStack() as stack:
        code = server.pair()
        for number in range(16):
            agent = stack.enter_context(HostileAgent(server.port, code)).hello(f"clone-{number}")
            assert agent.await_frame(8) is not None
        refusal = stack.enter_context(HostileAgent(server.port, code)).hello("one-more").await_frame(9)
        assert "16 agents are connected with this pairing key already" in refusal and reached(server, "connections_of_key") == 1
        have = len([one for one in server.get("/api/agents")["agents"] if one["connected"]])
        for number in range(256 - have):
            agent = stack.enter_context(HostileAgent(server.port)).hello(f"many-{number}")
            assert agent.await_frame(8) is not None
        assert stack.enter_context(HostileAgent(server.port)).hello("too-many").await_frame(8, 5) is None
        assert reached(server, "agent_connections") == 1
        assert server.get("/api/status")["turned_away"][0]["reason"] == "256 are connected already"


def closes(server, data):
    """Whether the server closes a connection after receiving this data."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as one:
        with contextlib.suppress(ConnectionError):
            one.sendall(data)
        one.settimeout(1)
        try:
            while one.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
    return True


def hello_of(size):
    words = json.dumps({"type": "hello", "version": 1, "agent": "flamewire", "agent_version": "0", "platform": {}, "capabilities": {"x": ""}})
    return words.replace('"x": ""', '"x": "' + "x" * (size - len(words)) + '"').encode()


def test_hellos_are_bounded(start):
    server = start.server("--insecure")
    most = 256 << 10
    assert len(hello_of(most)) == most
    with HostileAgent(server.port) as agent:
        agent.send(3, hello_of(most))
        assert agent.await_frame(8) is not None
    assert closes(server, struct.pack("!IB", most + 1, 3) + hello_of(most + 1))
    wait_until(lambda: f"its hello has {most + 1} bytes, more than {most}" in str(server.get("/api/status")["turned_away"]), 5, "the reason")


def test_frames_are_bounded(start):
    server = start.server("--insecure")
    most = 64 << 20
    hello = struct.pack("!IB", 300, 3) + hello_of(300)
    assert not closes(server, hello + struct.pack("!IB", most, 5))
    assert closes(server, hello + struct.pack("!IB", most + 1, 5))
    wait_until(lambda: f"disconnected: a frame announces more than {most} bytes" in server.err, 5, "the reason")


def test_bodies_are_bounded(start):
    server = start.server()
    body = json.dumps({"host": "127.0.0.1", "port": 1}).encode()
    most = 1 << 20
    assert server.request("POST", "/api/agent/dials", body=body.ljust(most))[0] == 200
    status, _, answer = server.request("POST", "/api/agent/dials", body=body.ljust(most + 1))
    assert status == 413 and answer["error"]["message"] == "a body has at most 1 MiB"


def test_recordings_without_end(start):
    """An agent that begins recordings as fast as it can gets only as many per minute as there are slots for agents."""
    server = start.server()
    with honest(start, server), HostileAgent(server.port, server.code).hello("hasty") as agent:
        assert agent.await_frame(8)
        for number in range(270):
            agent.send(5, Forged(f"hasty-{number}").batch(stacks=1, rows=1))
        wait_until(lambda: reached(server, "new_recordings") > 0, 20, "the bound")
        problem = wait_until(lambda: next((one["problem"] for one in server.get("/api/agents")["agents"] if one["id"] == "hasty"), None), 10, "the message")
        assert "256 recordings were begun from there within 60 s: wait a minute" in problem
        # The honest agent has the same pairing code, and its recording began earlier.
        assert server.get("/api/sessions", limit=1)["total"] == 256


def test_an_import_that_takes_too_much_memory(start, tmp_path):
    """The import fails near its limit with a message that names the option. It leaves nothing, and other work continues."""
    file = tmp_path / "wide.folded"
    with file.open("w") as out:
        for line in range(100_000):
            out.write(";".join(f"f{line}_{depth}" for depth in range(12)) + " 1\n")
    small = tmp_path / "small.folded"
    small.write_text("main;work 3\n")
    server = start.server("--import-memory", "64M")
    with honest(start, server):
        before = resident(server)
        for path, words in ((file, "the import takes more than 64 MiB of memory, the limit of --import-memory"), (small, "")):
            upload = f"memory-{path.stem}"
            content = path.read_bytes()
            for offset in range(0, len(content), 1 << 20):
                assert server.request("PUT", f"/api/uploads/{upload}", content[offset:offset + (1 << 20)], offset=offset, size=len(content))[0] == 200
            begun = server.post("/api/imports", {"upload": upload, "name": path.name})["id"]
            ended = wait_until(lambda: next((one for one in server.get("/api/imports")["imports"] if one["id"] == begun and one["state"] != "running"), None), 60, "the import's end")
            assert ended["state"] == ("failed" if words else "done") and ended["problem"].startswith(words), ended
            assert server.request("GET", f"/api/uploads/{upload}")[0] == 404
            if words:
                assert len(server.sessions()) == 1 and len(list((server.data_dir / "sessions").iterdir())) == 1
        assert resident(server) - before < MEMORY * 110 << 20, (before, resident(server))
        assert reached(server, "import_memory") == 1
    # The command line applies the same limit.
    refused = subprocess.run([BIN / "flamewire", "report", file, "--import-memory", "32M"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and "the import takes more than 32 MiB of memory" in refused.stderr, refused
    enough = subprocess.run([BIN / "flamewire", "report", small, "--import-memory", "32M"], capture_output=True, text=True, timeout=60)
    assert enough.returncode == 0, enough
    wrong = subprocess.run([BIN / "flamewire", "report", small, "--import-memory", "much"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode != 0 and "--import-memory" in wrong.stderr, wrong


def test_names_without_end(start):
    """Memory for names is limited. Samples beyond it are not shown, but are in the file and counted."""
    server = start.server("--insecure", "--table-memory", "8M")
    with honest(start, server), HostileAgent(server.port).hello("wordy") as agent:
        assert agent.await_frame(8)
        forged = Forged("wordy")
        agent.send(5, forged.batch(stacks=10, rows=10))
        shown = forged.samples
        before = resident(server)
        for number in range(64):
            words = [f"{number}-{i}-" + "x" * 900 for i in range(1000)]
            agent.send(5, forged.batch(strings=words, stacks=100, rows=10, depth=3))
        agent.send(5, forged.batch(rows=10, count=5, end="stopped"))
        assert agent.acknowledged(forged.seq)
        session = wait_until(lambda: (one := session_of(server, "wordy")) and one["state"] == "ended" and server.session(one["id"]), 20, "its end")
        full = next(one for one in session["notices"] if one["code"] == "session-full")
        assert "are kept in its file and counted, but not shown" in full["text"] and "--table-memory" in full["remedy"]
        assert reached(server, "table_bytes") == 1
        # 58 MiB of names arrived; 8 MiB and one batch of them were kept.
        assert session["retention"]["memory_bytes"] < 16 << 20 and resident(server) - before < MEMORY * 48 << 20, (session["retention"], before, resident(server))
        missing = [loss for loss in session["losses"] if loss["reason"] == "memory_limit"]
        assert shown < session["samples"] < forged.samples and session["samples"] + sum(loss["count"] for loss in missing) == forged.samples, (session["samples"], session["losses"], forged.samples)
        assert session["end_reason"] == "stopped"
        assert server.get("/api/flamegraph", session=session["id"])["total"]["samples"] == session["samples"]
    # The file has everything, for a server with enough memory.
    server.stop()
    again = start.server(name="again", data_dir=server.data_dir)
    whole = again.session(session["id"])
    assert again.get("/api/flamegraph", session=session["id"])["total"]["samples"] == forged.samples
    assert again.session(session["id"])["lost"] == 0, whole["losses"]


def test_texts_without_end(start):
    """Notices and targets of megabytes are truncated, so they are not copied at full length."""
    server = start.server("--insecure")
    with honest(start, server), HostileAgent(server.port).hello("talker\n2026-01-01 error: forged" + "!" * 100_000) as agent:
        assert agent.await_frame(8)
        forged = Forged("talk" * 500_000)
        agent.send(5, forged.batch(stacks=1, rows=1, notices=[(f"code-{i}", "blah " * 50_000) for i in range(20)], end="why " * 100_000))
        assert agent.acknowledged(1)
        session = wait_until(lambda: session_of(server, "talktalk"), 10, "its session")
        session = server.session(session["id"])
        assert len(session["target"]) == 4096 and len(session["end_reason"]) == 500 and max(map(len, server.err.splitlines())) < 2000 and {len(one["text"]) for one in session["notices"]} == {1000}


def test_a_file_without_end(start):
    """When a session's file reaches its size limit, its batches wait with the agent. Other sessions are not affected."""
    server = start.server("--insecure", "--session-size", "256K")
    with HostileAgent(server.port).hello("big") as agent:
        assert agent.await_frame(8)
        forged = Forged("big")
        for _ in range(20):
            agent.send(5, forged.batch(strings=[str(time.monotonic_ns()) * 2500], stacks=1, rows=1))
        problem = wait_until(lambda: next((one["problem"] for one in server.get("/api/agents")["agents"] if one["id"] == "big"), None), 20, "the message")
        assert "which is all that a session gets" in problem and "--session-size" in problem and problem.endswith("It waits with the agent.")
        session = session_of(server, "big")
        stream = server.data_dir / "sessions" / session["id"] / "stream.flw"
        assert stream.stat().st_size <= 256 << 10 and reached(server, "session_bytes") == 1
        with honest(start, server):
            pass
        assert stream.stat().st_size <= 256 << 10 and reached(server, "session_bytes") == 1


def test_commands_without_answers(start):
    server = start.server("--insecure")
    with honest(start, server), HostileAgent(server.port).hello("mute") as agent:
        assert agent.await_frame(8)
        with contextlib.ExitStack() as stack:
            for _ in range(70):
                waiting = stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port)))
                body = b'{"cmd":"ping"}'
                waiting.sendall(b"POST /api/agent/command?agent=mute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            wait_until(lambda: reached(server, "commands_of_agent") >= 6, 20, "the bound")
            with pytest.raises(HttpError) as refused:
                server.command("ping", agent="mute")
            assert refused.value.status == 502 and "commands are already waiting for the agent" in refused.value.error["message"]


def test_an_agent_that_does_not_read(start):
    """The server sends its answers until 4 MiB are waiting."""
    server = start.server("--insecure")
    with honest(start, server), HostileAgent(server.port).hello("deaf", Forged().id) as agent:
        # Each hello is answered. The peer reads neither the 4 MiB of answers nor those in the socket's buffers.
        hello = json.dumps({"type": "hello", "version": 1, "agent": "flamewire", "agent_version": "0", "agent_id": "deaf", "platform": {}, "state": "idle", "recording": None}).encode()
        with contextlib.suppress(OSError):
            while reached(server, "outbox_bytes") == 0:
                for _ in range(2000):
                    agent.send(3, hello)
        assert reached(server, "outbox_bytes") == 1


def test_readers_of_the_stream(start):
    server = start.server()
    with honest(start, server), contextlib.ExitStack() as stack:
        for _ in range(128):
            stack.enter_context(server.stream())
        status, _, answer = server.request("GET", "/api/stream")
        assert status == 503 and "too many readers" in answer["error"]["message"] and reached(server, "streams") == 1


def test_connections_of_browsers(start):
    """A new connection beyond the limit replaces an idle one. Agents are not affected."""
    server = start.server()
    with honest(start, server):
        def connect():
            one = socket.create_connection(("127.0.0.1", server.http_port), timeout=10)
            one.sendall(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return one

        crowd = [connect() for _ in range(512)]
        for one in crowd:
            assert one.recv(12) == b"HTTP/1.1 200"
        assert reached(server, "http_connections") >= 1
        # As many incomplete requests as there may be connections: each is replaced by the next, and all yield to a complete request.
        halves = [socket.create_connection(("127.0.0.1", server.http_port), timeout=10) for _ in range(520)]
        for one in halves:
            one.sendall(b"GET /api/status HTTP/1.1\r\nHost: ")
        for _ in range(20):
            assert server.get("/api/status")["status"] == "ok"
        for one in [*crowd, *halves]:
            one.close()


def test_requests_that_never_end(start):
    """A header that arrives at one byte per second is closed after ten seconds. A slow upload and a kept-alive connection stay open."""
    server = start.server()
    slow, silent, kept = (socket.create_connection(("127.0.0.1", server.http_port), timeout=60) for _ in range(3))
    kept.sendall(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert kept.recv(1 << 20).startswith(b"HTTP/1.1 200")
    body = socket.create_connection(("127.0.0.1", server.http_port), timeout=60)
    size = 15 * 20_000
    body.sendall(f"PUT /api/uploads/slow-line?offset=0&size={size} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n".encode())
    slow.sendall(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    for _ in range(15):
        body.sendall(b"x" * 20_000)
        with contextlib.suppress(OSError):
            slow.sendall(b"y")
        time.sleep(1)
    for one in (slow, silent):
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(100) == b""
    assert body.recv(1000).startswith(b"HTTP/1.1 200")
    kept.sendall(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert kept.recv(1 << 20).startswith(b"HTTP/1.1 200")
    assert reached(server, "http_header_time") == 2


def test_connections_of_browsers_of_one_machine(start):
    """A host without the token cannot exclude others by opening many connections."""
    server = start.server("--http-bind", "0.0.0.0")
    token = {"Authorization": f"Bearer {(server.data_dir / 'http-token').read_text().strip()}"}
    crowd = [socket.create_connection((OWN, server.http_port), timeout=10) for _ in range(128)]
    for one in crowd:
        one.sendall(f"GET /api/status HTTP/1.1\r\nHost: {OWN}\r\n\r\n".encode())
        assert one.recv(12) == b"HTTP/1.1 401"
    with socket.create_connection((OWN, server.http_port), timeout=10) as refused, contextlib.suppress(ConnectionResetError):
        assert refused.recv(100) == b""

    def ask(host):
        page = http.client.HTTPConnection(host, server.http_port, timeout=10)
        page.request("GET", "/metrics", headers=token)
        return page.getresponse().read().decode()

    text = ask("127.0.0.1")
    assert re.search(r'^flamewire_limit_reached_total\{limit="http_connections_of_host"\} 1$', text, re.M), text
    crowd.pop().close()
    assert "flamewire" in wait_until(lambda: asked(ask, OWN), 10, "room for another one")
    for one in crowd:
        one.close()


def asked(ask, host):
    try:
        return ask(host)
    except (OSError, http.client.HTTPException):
        return ""


def test_invalid_requests(start):
    """Such connections are closed and counted, so /metrics shows the attempts."""
    server = start.server()
    fields = "".join(f"X-Field-{number}: {'x' * 10_000}\r\n" for number in range(60))
    wrong = [b"\0\xff\0\xff" * 64, b"GET / HTTP/9.9.9\r\n\r\n", f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{'Y: z' * 5000}: 1\r\n\r\n".encode(), f"GET /{'x' * (1 << 20)} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n".encode()]
    for data in wrong:
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=10) as one, contextlib.suppress(ConnectionError):
            one.sendall(data)
            assert one.recv(100) == b""
    assert reached(server, "http_message") == len(wrong)


def test_browsers_without_a_tls_handshake(start):
    """With TLS, a client that connects and sends nothing is disconnected after ten seconds."""
    key, chain = start.directory / "key.pem", start.directory / "chain.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", chain, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    server = start.server("--http-cert", chain, "--http-key", key)
    crowd = [socket.create_connection(("127.0.0.1", server.http_port), timeout=30) for _ in range(40)]
    for number, one in enumerate(crowd):
        if number % 2:
            one.sendall(b"\x16\x03\x01")
    for one in crowd:
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(100) == b""
        one.close()
    page = http.client.HTTPSConnection("127.0.0.1", server.http_port, timeout=30, context=ssl.create_default_context(cafile=chain))
    page.request("GET", "/metrics")
    text = page.getresponse().read().decode()
    assert re.search(r'^flamewire_limit_reached_total\{limit="tls_handshake_time"\} 40$', text, re.M), text
    page.close()


def test_dials(start):
    server = start.server()
    with pytest.raises(HttpError):
        for number in range(65):
            server.post("/api/agent/dials", {"host": "127.0.0.1", "port": 1 + number})
    assert reached(server, "dials") == 1 and len(server.get("/api/agent/dials")["dials"]) == 64


def test_new_dials(start):
    """Cancelling each attempt does not make it possible to scan a network for open ports quickly."""
    server = start.server()
    for number in range(64):
        server.post("/api/agent/dials", {"host": "127.0.0.1", "port": 1 + number})
        assert server.request("DELETE", "/api/agent/dials", host="127.0.0.1", port=1 + number)[0] == 200
    for path in ("/api/agent/dials", "/api/agent/connect"):
        with pytest.raises(HttpError, match="new addresses within 60 s"):
            server.post(path, {"host": "127.0.0.1", "port": 100})
    assert reached(server, "new_dials") == 2 and not server.get("/api/agent/dials")["dials"]


def test_frames_that_do_not_end(start):
    """Agents that begin the largest frame and never end it share one limit. Agents with ordinary frames are not affected."""
    server = start.server("--insecure")
    with honest(start, server), contextlib.ExitStack() as stack:
        for number in range(6):
            one = stack.enter_context(HostileAgent(server.port)).hello(f"endless-{number}")
            assert one.await_frame(8) is not None
            with contextlib.suppress(OSError):  # closed by the server meanwhile
                one.socket.sendall(struct.pack("!IB", 64 << 20, 5) + bytes(60 << 20))
        wait_until(lambda: reached(server, "unfinished_bytes") >= 1, 20, "the bound")


def test_an_agent_that_is_faster_than_the_disk(start):
    """The amount of data that waits for the disk is limited. Above the limit, the server stops reading the connection."""
    server = start.server("--insecure", "--session-size", "128K")
    with HostileAgent(server.port).hello("fast") as agent:
        assert agent.await_frame(8)
        forged = Forged("fast")
        before = resident(server)
        agent.socket.settimeout(3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                agent.send(5, forged.batch(strings=["y" * (1 << 20)]))
                sent += 1
        assert 16 <= sent < 60, sent
        wait_until(lambda: reached(server, "inbox_bytes") >= 1, 10, "the bound")
        assert resident(server) - before < MEMORY * 100 << 20
        with honest(start, server):
            pass


def resident(server):
    return int(re.search(r"^VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{server.pid}/status").read_text(), re.M)[1]) << 10


def test_a_server_that_is_hostile(start):
    """What an agent accepts from a server is limited too: it reports the reason, keeps running and serves the next server."""
    port = free_port()
    agent = start.agent("--listen", "--port", port, "--insecure")

    def talk(data, first=b""):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(first or frame_of(8, b'{"recording":null,"seq":0}'))
            with contextlib.suppress(OSError):
                connection.sendall(data)
                connection.settimeout(15)
                while connection.recv(65536):
                    pass

    def frame_of(flag, payload):
        return len(payload).to_bytes(4, "big") + bytes([flag]) + payload

    wait_until(lambda: "waiting" in agent.err or "listening" in agent.err, 10, "its start")
    before = int(re.search(r"^VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{agent.pid}/status").read_text(), re.M)[1])
    talk(b"\x00\x10\x00\x01\x02" + b"x" * 100)  # a command of 1 MiB and one byte
    talk(frame_of(2, b"[" * 100_000))
    talk(frame_of(9, b"\x1b[31m" + b"n" * 100_000))
    talk(frame_of(9, "one \x9b2J two \u202e three ".encode() + b"\x9b four"))
    flood = frame_of(2, b'{"id":"1","cmd":"list_processes","args":{}}') * 20_000
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(frame_of(8, b'{"recording":null,"seq":0}'))
        connection.settimeout(3)
        with contextlib.suppress(OSError):
            connection.sendall(flood)
    after = int(re.search(r"^VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{agent.pid}/status").read_text(), re.M)[1])
    assert agent.alive() and after - before < 20_000, (before, after)
    wait_until(lambda: "it refuses: one  2J two   three \ufffd four\n".encode() in agent.err_path.read_bytes(), 10, "the refusal, escaped")
    assert "\x1b" not in agent.err and max(map(len, agent.err.splitlines())) < 1500
    server = start.server("--insecure", "--agent", f"127.0.0.1:{port}")
    wait_until(lambda: server.get("/api/status")["agent_connected"], 60, "an honest server to be served")
    assert server.command("ping")["ok"]
