"""Garbage on every interface is refused with an error and disturbs nothing else."""
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time

import pytest
from flamewire import BIN, HttpError, wait_until
from hostile import Forged, HostileAgent
from session_files import record_ends


def frame(flag, payload):
    return struct.pack("!IB", len(payload), flag) + payload


def live_server(start):
    server = start.server("--insecure")
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 199)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 50, 20, "samples")
    return server


def check_still_recording(server):
    before = server.only_session()["samples"]
    wait_until(lambda: server.only_session()["samples"] > before, 10, "the recording to go on")
    assert server.alive()


def closed_by_peer(connection, seconds=10):
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_agent_port(start):
    server = live_server(start)
    randomness = random.Random(1)
    hello = frame(3, json.dumps({"type": "hello", "version": 1, "agent": "flamewire", "agent_version": "0", "platform": {}}).encode())
    doors = {
        "random bytes": randomness.randbytes(4096),
        "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "a huge length": struct.pack("!IB", 0xFFFFFFFF, 6),
        "hello that is not JSON": frame(3, b"{{{{"),
        "hello nested 100,000 deep": frame(3, b"[" * 100_000),
        "batch before hello": frame(5, b"\x0a\x10" + bytes(16)),
        "batch of random bytes": hello + frame(5, randomness.randbytes(500)),
        "invalid zstd": hello + frame(6, randomness.randbytes(500)),
        "zstd that claims 2 GiB": hello + frame(6, bytes.fromhex("28b52ffda000000080") + randomness.randbytes(40)),
    }
    for name, data in doors.items():
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(data)
            assert closed_by_peer(connection), name
    # A frame that stops in the middle affects only its connection.
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(struct.pack("!IB", 1000, 3) + b"{")
        time.sleep(0.3)
        check_still_recording(server)
    # Unknown flags are skipped: a future agent may use them.
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(hello + frame(99, b"whatever"))
        time.sleep(0.3)
        connection.settimeout(10)
        assert connection.recv(65536)[4] == 8  # the acknowledgement of the hello
    check_still_recording(server)
    assert len(server.sessions()) == 1


def test_http(start):
    server = live_server(start)
    for data in (b"\x00\xff\x00\xff" * 64, b"GET " + b"/x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"POST /api/agent/command HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
            connection.sendall(data)
            connection.settimeout(5)
            try:
                answer = connection.recv(4096)
            except (TimeoutError, ConnectionError):
                answer = b""
            assert b" 200 " not in answer
    for path, parameters, expected in (
        ("/api/flamegraph", {"event": "no-such-event"}, (400, 404)),
        ("/api/flamegraph", {"session": "../../etc"}, (400, 404)),
        ("/api/flamegraph", {"start": "abc"}, (400,)),
        ("/api/flamegraph", {"tid": "1,x"}, (400,)),
        ("/api/flamegraph", {"min_share": "nan"}, (400,)),
        ("/api/timeline", {"slices": "-4"}, (400,)),
        ("/api/source", {}, (400,)),
        ("/api/source", {"file": "/etc/passwd"}, (403, 404)),
        ("/api/source", {"file": "../../../../etc/passwd"}, (403, 404)),
        ("/api/sessions/..%2f..%2fetc", {}, (400,)),
        ("/api/thread-view", {}, (400,)),
        ("/api/nothing", {}, (404,)),
    ):
        status, _, body = server.request("GET", path, **parameters)
        assert status in expected, (path, parameters, status, body)
        assert body["error"]["message"]
    assert server.request("PUT", "/api/config", body={})[0] == 405
    # Whatever the answer is, pages of other sites must not embed it.
    for method, path, headers, expected in (
        ("GET", "/api/status", {}, 200),
        ("GET", "/api/flamegraph?start=abc", {}, 400),
        ("GET", "/api/status", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", "/api/nothing", {}, 404),
        ("PUT", "/api/config", {}, 405),
        ("GET", "/api/stream", {}, 200),
    ):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)) as browser:
            browser.request(method, path, headers=headers)
            answer = browser.getresponse()
            assert (answer.status, answer.getheader("Cross-Origin-Resource-Policy")) == (expected, "same-origin"), (method, path, headers)
    for body in (b"", b"[]", b"{", b"[" * 50_000, json.dumps({"cmd": "start", "args": 7}).encode(), json.dumps({"cmd": "rm -rf"}).encode(), json.dumps({"extra": 1, "cmd": "ping"}).encode()):
        status, _, answer = server.request("POST", "/api/agent/command", body=body)
        assert status == 400, (body[:40], status, answer)
    # Another site must not send commands, and a DNS name that resolves to this server must not read data.
    assert server.request("POST", "/api/stop", body={}, headers={"Origin": "http://evil.example"})[0] == 403
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        for path in ("/api/status", "/api/flamegraph", "/metrics"):
            status, _, _ = server.request("GET", path, headers=headers)
            assert status == 403, (path, headers)
    assert server.request("GET", "/api/stop")[0] == 405
    status, _, body = server.request("GET", "/api%2Fstatus")
    assert status == 400 and "slash" in body["error"]["message"], body
    assert server.request("GET", "/api/status", headers={"Host": "evil.example"})[0] == 403
    check_still_recording(server)


def test_json_nested_without_end(start):
    """Refused on every interface, and never stored in a session's file, where every later start would read it again."""
    server = start.server("--insecure")
    with HostileAgent(server.port).hello("nested") as agent:
        assert agent.await_frame(8)
        forged = Forged("nested")
        agent.send(5, forged.batch(stacks=1, rows=1))
        for kind in ("threads", "system"):
            agent.send(4, b'{"type":"%b","mono_ns":%d,"x":%b}' % (kind.encode(), time.monotonic_ns(), b"[" * 130_000 + b"]" * 130_000))
        agent.send(5, forged.batch(rows=1, end="stopped"))
        assert agent.acknowledged(forged.seq)
    session = server.wait_ended()["id"]
    for depth in (100, 90_000):
        for nested in (b"[" * 10 * depth, b'{"upload":' * depth, b'{"upload":' + b"[" * depth + b"]" * depth + b"}"):
            for method, path in (("POST", "/api/imports"), ("POST", "/api/sessions/merge"), ("POST", f"/api/sessions/{session}/cut"), ("POST", f"/api/sessions/{session}/sources"),
                                 ("PATCH", f"/api/sessions/{session}"), ("PATCH", "/api/config"), ("POST", "/api/config/toolchain"), ("POST", "/api/modules"), ("POST", "/api/pairing"),
                                 ("POST", "/api/agent/connect"), ("POST", "/api/agent/dials"), ("POST", "/api/agent/command"), ("POST", "/api/stop")):
                status, _, answer = server.request(method, path, body=nested)
                assert status < 500 and (path != "/api/imports" or status in (400, 413)), (method, path, depth, nested[:20], status, answer)
    server.stop()
    server = start.server(name="server-again", data_dir=server.data_dir)
    for path in ("/api/thread-states", "/api/thread-summary", "/api/metrics/current", "/api/metrics/history"):
        assert b"[" * 100 not in json.dumps(server.get(path, session=session)).encode()
    report = subprocess.run([BIN / "flamewire", "report", next(server.data_dir.glob("sessions/*/stream.flw"))], capture_output=True, text=True, timeout=60)
    assert report.returncode == 0, report


def test_imported_json_nested_without_end(start, tmp_path):
    """An imported stream was not checked by the code that receives from agents. Its nested frames count as damage, and the rest is shown."""
    forged, health = Forged("nested"), []
    for content in (b"7", b"[" * 130_000 + b"]" * 130_000, b'{"x":' * 130_000 + b"1" + b"}" * 130_000):
        health.append(frame(4, b'{"type":"system","mono_ns":%d,"cpu_percent":12.5,"x":%b}' % (time.monotonic_ns(), content)))
    frames = [frame(5, forged.batch(stacks=1, rows=1)), *health, frame(5, forged.batch(rows=1, end="stopped"))]
    stream = tmp_path / "nested.flw"
    stream.write_bytes(b"FLMWIRE\n" + struct.pack("<I", 1) + b"".join(struct.pack("<q", time.time_ns()) + one for one in frames))
    server = start.server("--import", stream)
    import_ = wait_until(lambda: (one := server.get("/api/imports/1"))["state"] != "running" and one, 60, "the import")
    assert import_["state"] == "done", import_
    session = server.session(import_["session"])
    assert session["samples"] == forged.samples, session
    notice = next(one["text"] for one in session["notices"] if one["code"] == "file-damaged")
    unread = sum(len(one) + 8 for one in health[1:])
    assert f"{unread:,} of {stream.stat().st_size:,} bytes" in notice, notice
    assert [one["x"] for one in server.get("/api/metrics/history", session=session["id"])] == [7]
    report = subprocess.run([BIN / "flamewire", "report", stream], capture_output=True, text=True, timeout=60)
    assert report.returncode == 0 and "nested" in report.stdout, report


def test_session_files(start):
    server = start.server()
    program = start.workload("shares", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 20, "samples")
    agent.stop()
    session = server.only_session()
    server.stop()
    directory = server.data_dir / "sessions"
    good = next(directory.glob("*/stream.flw"))
    content = good.read_bytes()
    half = max(end for end in record_ends(content) if end <= len(content) // 2)
    randomness = random.Random(2)
    for name, data in {"empty": b"", "noise": randomness.randbytes(10_000), "magic-only": content[:8], "torn": content[:half + 1],
                       "damaged": content[:300] + randomness.randbytes(200) + content[500:]}.items():
        (directory / name).mkdir()
        (directory / name / "stream.flw").write_bytes(data)
    server = start.server(name="server-again", data_dir=server.data_dir)
    listed = {entry["id"]: entry for entry in server.sessions()}
    assert listed[session["id"]]["samples"] == session["samples"] and listed[session["id"]]["notices"] == session["notices"]
    assert set(listed) == {session["id"], "torn", "damaged"}
    unreadable = server.get("/api/sessions")["unreadable"]
    for name in ("empty", "noise", "magic-only"):
        assert [sentence for sentence in unreadable if f"/{name}/" in sentence and "replace it with a good copy" in sentence], unreadable
        assert server.err.count(f"/{name}/stream.flw is ") + server.out.count(f"/{name}/stream.flw is ") == 1
        with pytest.raises(HttpError) as refused:
            server.get("/api/flamegraph", session=name)
        assert refused.value.status in (400, 404, 422, 500) and refused.value.error["message"]
    for name in ("torn", "damaged"):
        notice = listed[name]["notices"][0]
        assert notice["code"] == {"torn": "file-cut", "damaged": "file-damaged"}[name] and notice["remedy"], listed[name]
        assert listed[name]["lost_at_least"] and listed[name]["samples"] < session["samples"]
    torn = server.get("/api/flamegraph", session="torn")
    assert 0 < torn["total"]["samples"] < session["samples"]
    assert server.get("/api/flamegraph", session=session["id"])["total"]["samples"] == session["samples"]
    program.stop()


def test_command_json_at_the_agent(start):
    """A hostile server: the agent refuses its commands, keeps running and serves the next one."""
    import flamewire
    port = flamewire.free_port()
    agent = start.agent("--listen", "--port", port, "--insecure")

    def connect():
        def attempt():
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=5)
            except OSError:
                return None
        connection = wait_until(attempt, 10, "the listening agent")
        header = b""
        while len(header) < 5:
            header += connection.recv(5 - len(header))
        length, flag = struct.unpack("!IB", header)
        hello = b""
        while len(hello) < length:
            hello += connection.recv(length - len(hello))
        assert flag == 3 and json.loads(hello)["type"] == "hello"
        connection.sendall(frame(8, json.dumps({"recording": None, "seq": 0}).encode()))
        return connection

    def reply(connection):
        header = b""
        while len(header) < 5:
            piece = connection.recv(5 - len(header))
            assert piece, "closed"
            header += piece
        length, _ = struct.unpack("!IB", header)
        payload = b""
        while len(payload) < length:
            payload += connection.recv(length - len(payload))
        return json.loads(payload)

    for data in (b"\xff" * 64, struct.pack("!IB", 1 << 30, 2), frame(8, b"[" * 9999), os.urandom(2000)):
        with connect() as connection:
            connection.sendall(data)
            time.sleep(0.2)
        assert agent.alive()
    with connect() as connection:
        for command in ({"id": "1", "cmd": "no-such"}, {"id": "2", "cmd": "start"}, {"id": "3", "cmd": "start", "args": {"pid": "x"}},
                        {"id": "4", "cmd": "start", "args": {"pid": -1}}, {"id": "5", "cmd": "start", "args": {"pid": 1 << 40}},
                        {"id": "6", "cmd": "configure", "args": {"frequency": 10**12}}, {"id": "7", "cmd": "stop"}):
            connection.sendall(frame(2, json.dumps(command).encode()))
            answer = reply(connection)
            assert answer["id"] == command["id"] and answer["ok"] is False and answer["error"], answer
        connection.sendall(frame(2, json.dumps({"id": "8", "cmd": "ping"}).encode()))
        assert reply(connection) == {"id": "8", "ok": True}
    assert agent.stop() == 0


def test_names_do_not_control_a_terminal(start, tmp_path):
    """In the server's log and in the table of `report`, escapes, their single-byte forms, and controls of the writing direction are removed."""
    evil = "e\x1b[2Jv\x9b31mi\u202el"
    server = start.server("--insecure")
    with HostileAgent(server.port).hello(evil):
        wait_until(lambda: " connected from " in server.err, 20, "the line of the log")
    folded = tmp_path / "evil.folded"
    folded.write_text(f"main;{evil} 5\n", encoding="utf-8")
    printed = subprocess.run([BIN / "flamewire", "report", folded], check=True, capture_output=True, text=True, timeout=60).stdout
    for text in (server.err, printed):
        assert "e [2Jv 31mi l" in text and not set(text) & set("\x1b\x9b\u202e"), text


def test_unwind_tables_that_take_forever(start, tmp_path):
    """One function's table remembers and restores its state a quarter of a million times, and each of its frames runs this. The agent
    ends these stacks early, reports it, and still handles signals."""
    source = tmp_path / "tables.S"
    source.write_text("""
.section .note.GNU-stack, "", @progbits
.text
.globl main
.type main, @function
main:
.cfi_startproc
.rept 240000
.cfi_remember_state
.cfi_restore_state
.endr
mov %rsp, %rbx
again:
.rept 200
call 1f
1:
.endr
mov $20000000, %rcx
2: dec %rcx
jnz 2b
mov %rbx, %rsp
jmp again
.cfi_endproc
.size main, . - main
""")
    program = tmp_path / "tables"
    subprocess.run(["gcc", "-o", program, source], check=True)
    target = start.process("tables", [program])
    agent = start.agent("--output", tmp_path / "out.flamewire", "--pid", target.pid, "--frequency", 99, "--unwind", "dwarf")
    wait_until(lambda: "take too long to read: some of its stacks end early" in agent.err, 60, "the notice")
    os.kill(agent.pid, signal.SIGINT)
    assert agent.wait(60) == 0 and "agent ends: " in agent.err, agent.err
