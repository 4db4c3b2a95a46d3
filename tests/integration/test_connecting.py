"""Connecting to agents from the page: readable states and errors, retries until cancelled, and no access for pages of other sites."""
import concurrent.futures
import socket

import pytest
from flamewire import HttpError, free_port, wait_until


def dial_of(server, port):
    return next((dial for dial in server.get("/api/agent/dials")["dials"] if dial["port"] == port), None)


def test_dials_until_connected_or_cancelled(start):
    server = start.server()
    assert server.get("/api/agent/dials") == {"dials": []}
    port = free_port()
    begun = server.post("/api/agent/dials", {"host": "127.0.0.1", "port": port})["dials"]
    assert [(dial["host"], dial["port"]) for dial in begun] == [("127.0.0.1", port)]
    waiting = wait_until(lambda: (dial := dial_of(server, port)) and dial["state"] == "waiting" and dial, 20, "a refusal")
    assert "refuses connections" in waiting["problem"] and "--listen" in waiting["problem"] and waiting["next_in_ms"] <= 30_000
    wait_until(lambda: dial_of(server, port)["attempts"] >= 2, 20, "another attempt")
    agent = start.agent("--listen", "--port", port, "--pair-file", start.directory / "code")
    # A second request skips the wait for the next retry.
    server.post("/api/agent/dials", {"host": "127.0.0.1", "port": port, "pair": (start.directory / "code").read_text().strip()})
    connected = wait_until(lambda: (dial := dial_of(server, port))["state"] == "connected" and dial, 60, "the connection")
    assert connected["agent"] and connected["problem"] == "" and len(server.get("/api/agent/dials")["dials"]) == 1
    agent.stop()
    assert "ended" in wait_until(lambda: dial_of(server, port)["problem"], 20, "the end of the connection")
    second = start.agent("--listen", "--port", port, "--pair-file", start.directory / "code", name="second")
    wait_until(lambda: dial_of(server, port)["state"] == "connected", 60, "the connection again")
    status, _, answer = server.request("DELETE", "/api/agent/dials", host="127.0.0.1", port=port)
    assert status == 200 and answer == {"dials": []}
    wait_until(lambda: not any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 20, "the end")
    assert second.alive()
    assert server.request("DELETE", "/api/agent/dials", host="127.0.0.1", port=port)[0] == 404


def test_unreachable_addresses(start):
    server = start.server()
    # An unknown name fails faster than an address that neither accepts nor refuses (a socket with a full queue).
    server.post("/api/agent/dials", {"host": "no-such-host.invalid", "port": 9})
    problem = wait_until(lambda: dial_of(server, 9)["problem"], 60, "the resolver's answer")
    assert "no-such-host.invalid" in problem and ("spelling" in problem or "network" in problem or ":9" in problem)
    # Something else listens there: the problem is reported, and the server tries again.
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server.post("/api/agent/dials", {"host": "127.0.0.1", "port": port})
        connection, _ = other.accept()
        connection.close()
        assert wait_until(lambda: dial_of(server, port)["problem"], 30, "what was wrong")
    for body in ({}, {"host": ""}, {"host": "a b"}, {"host": "a/b"}, {"host": "x" * 300}, {"host": "h", "port": 0}, {"host": "h", "port": 65536}, {"host": "h", "port": "9"}, {"host": "h", "more": 1}):
        with pytest.raises(HttpError) as refused:
            server.post("/api/agent/dials", body)
        assert refused.value.status == 400, body
    # The number of addresses is limited.
    with pytest.raises(HttpError) as refused:
        for number in range(100):
            server.post("/api/agent/dials", {"host": f"no-{number}.invalid", "port": 9})
    assert refused.value.status == 409 and "cancel" in refused.value.error["message"]


def test_connect_uses_the_attempt_under_way(start):
    server = start.server()
    # The queue of this socket is full, so an attempt neither succeeds nor fails before its time limit.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        address = {"host": "127.0.0.1", "port": full.getsockname()[1]}
        server.post("/api/agent/dials", address)

        def connect():
            with pytest.raises(HttpError) as refused:
                server.post("/api/agent/connect", address)
            return refused.value

        with concurrent.futures.ThreadPoolExecutor() as pool:
            requests = [pool.submit(connect), pool.submit(connect)]
            # One of them waits for the attempt, so the other one is refused at once.
            concurrent.futures.wait(requests, return_when=concurrent.futures.FIRST_COMPLETED)
            dial = dial_of(server, address["port"])
            assert dial["attempts"] == 1 or dial["problem"], "a second attempt began next to the first one"
            answers = [request.result() for request in requests]
        assert sorted(answer.status for answer in answers)[0] == 409 and any("already connecting" in answer.error["message"] for answer in answers)
        assert any("no answer from" in answer.error["message"] for answer in answers)


def test_not_for_pages_of_other_sites(start):
    server = start.server()
    for method in ("POST", "DELETE"):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
            status, _, _ = server.request(method, "/api/agent/dials", body={"host": "127.0.0.1", "port": 1}, headers=headers, check=False)
            assert status == 403, (method, headers)
    assert server.get("/api/agent/dials") == {"dials": []}
