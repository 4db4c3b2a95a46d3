"""PerfLens agents: a simulated one, written from the description of its protocol, with samples of our own and with chunks that a real one wrote.
Its data becomes a live session like that of our agent. Commands and replies use its protocol on the wire and ours in the answers."""

import collections
import gzip
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading

import pytest
from flamewire import ROOT, wait_until

CORPUS = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", ROOT.parent / "shared" / "corpus"))
TEXT, TEXT_ZSTD, COMMAND, REPLY, METRICS = range(5)
REFUSAL = 9
CODE = "00112233445566778899aabbccddeeff"


class FakeAgent:
    def __init__(self, port, code=None):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.code, self.paired, self.state = code, code is None, "idle"
        self.commands, self.flags, self.closed = [], [], threading.Event()
        hello = {"type": "hello", "version": 1, "agent": "perflens", "agent_version": "0.10.0",
                 "platform": {"arch": "x86_64", "kernel": "6.1.0-fake", "perf_version": "perf version 6.12", "perf_event_paranoid": 2}}
        self.send(REPLY, hello | ({"auth": "token"} if code else {}))
        threading.Thread(target=self.serve, daemon=True).start()

    def send(self, flag, payload):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.socket.sendall(struct.pack("!IB", len(data), flag) + data)

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def serve(self):
        try:
            while True:
                length, flag = struct.unpack("!IB", self.read(5))
                self.flags.append(flag)
                payload = self.read(length)
                if flag == REFUSAL:
                    self.closed.set()
                    return
                command = json.loads(payload)
                self.commands.append(command)
                self.send(REPLY, {"id": command["id"], **self.answer(command["cmd"], command.get("args", {}))})
        except (ConnectionError, OSError):
            self.closed.set()

    def answer(self, name, args):
        if name == "auth":
            self.paired = args["token"] == self.code
            return {"ok": True} if self.paired else {"ok": False, "error": "auth failed"}
        if not self.paired:
            return {"ok": False, "error": "unauthenticated"}
        if name == "status":
            return {"ok": True, "state": self.state, "pid": 0, "frequency": 99, "duration": 8}
        if name == "list_processes":
            return {"ok": True, "processes": [{"pid": 7, "comm": "app", "cmdline": "app --now", "cpu": 1.5}]}
        if name == "verify_pid":
            return {"ok": True, "exists": True, "pid": args["pid"], "info": {"comm": "app", "cmdline": "app --now"}}
        if name == "start":
            self.state = "profiling"
            return {"ok": True, "pid": args["pid"], "frequency": args.get("frequency", 99), "duration": args["duration"], "events": ["cycles"], "callgraph": "fp", "mode": "continuous"}
        if name == "stop":
            self.state = "idle"
            return {"ok": True}
        return {"ok": False, "error": f"unknown command: {name}"}

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def sample(seconds, period, *frames, comm="app", tid=7, event="cycles"):
    """Frames are given innermost first."""
    return f"{comm}  7/{tid} {seconds:.6f}: {period} {event}: \n" + "".join(f"\t{0x1000 + i:x} {name}+0x1 (/usr/bin/app)\n" for i, name in enumerate(frames)) + "\n"


def folded(server, session, **parameters):
    return collections.Counter({line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1])
                                for line in server.get(f"/api/export/session/{session}", format="collapsed", **parameters).decode().splitlines()})


def only_agent(server):
    return wait_until(lambda: [agent for agent in server.get("/api/agents")["agents"] if agent["connected"]], 20, "the agent")[0]


def test_refused_without_the_option(start):
    server = start.server("--insecure")
    agent = FakeAgent(server.port)
    assert agent.closed.wait(20)
    assert "--accept-perflens" in wait_until(lambda: "PerfLens" in server.err and server.err, 20, "the reason")
    (turned_away,) = server.get("/api/status")["turned_away"]
    assert turned_away["address"].startswith("127.0.0.1:") and "--accept-perflens" in turned_away["reason"]
    assert server.get("/api/agents")["agents"] == []


def test_refused_without_encryption(start):
    """PerfLens has no encryption, so even a loopback connection is refused."""
    server = start.server("--accept-perflens")
    agent = FakeAgent(server.port)
    assert agent.closed.wait(20)
    (turned_away,) = wait_until(lambda: server.get("/api/status")["turned_away"], 20, "the refusal")
    assert "without encryption, which only --insecure allows" in turned_away["reason"]
    assert server.get("/api/agents")["agents"] == []


def test_a_live_session(start):
    server = start.server("--insecure", "--accept-perflens", "--perflens-token", CODE)
    agent = FakeAgent(server.port, CODE)
    known = only_agent(server)
    assert known["hello"]["agent"] == "perflens" and known["hello"]["agent_version"] == "0.10.0" and known["hello"]["platform"]["kernel"] == "6.1.0-fake"
    wait_until(lambda: [command["cmd"] for command in agent.commands] == ["auth", "status"], 20, "the pairing code")
    assert server.command("list_processes")["processes"] == [{"pid": 7, "comm": "app", "cmdline": "app --now", "cpu": 1.5, "ns_pid": 0, "user": "", "container": ""}]
    assert server.command("verify_pid", pid=7)["permitted"] is True
    refused = server.command("start", pids=[7, 8])
    assert refused["ok"] is False and "one process at a time" in refused["error"]
    assert "flamewire-agent" in server.command("counters", by="thread")["error"]
    started = server.command("start", pids=[7], frequency=199, interval=1000, events="cycles,instructions", unwind="auto")
    assert started["ok"] and started["pids"] == [7] and started["interval"] == 1000
    assert agent.commands[-1]["args"] == {"pid": 7, "frequency": 199, "duration": 1, "events": ["cycles", "instructions"]}
    agent.send(TEXT, (sample(100.0, 10, "leaf", "middle", "main") + sample(100.5, 20, "leaf", "middle", "main") + sample(100.6, 5, "other", "main", tid=8, comm="pool")).encode())
    session = wait_until(lambda: server.sessions(), 20, "a session")[0]["id"]
    wait_until(lambda: server.session(session)["samples"] == 3, 20, "three samples")
    live = server.session(session)
    assert live["state"] == "live" and live["target"] == "pid 7" and live["arch"] == "x86_64" and live["kernel_release"] == "6.1.0-fake" and live["frequency_hz"] == 199
    agent.send(METRICS, {"ts": 1784084510.2, "type": "system", "cpu": {"overall_pct": 12.5, "per_core": [25.0, 0.0], "num_cores": 2}, "mem": {"total_kb": 1000, "used_kb": 250, "available_kb": 750, "used_pct": 25.0}})
    wait_until(lambda: server.get("/api/metrics/current", session=session).get("system"), 20, "health")
    # A second chunk reuses the names of the first one. Counters follow it.
    text = sample(101.0, 7, "leaf", "middle", "main") + "\n### PERF_STAT ###\n\n Performance counter stats for process id '7':\n\n         1,000      instructions\n\n       1.000000000 seconds time elapsed\n"
    agent.send(TEXT_ZSTD, subprocess.run(["zstd", "-q", "-1", "--no-check", "--content-size", "--stream-size", str(len(text)), "-c"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout)
    wait_until(lambda: server.session(session)["samples"] == 4, 20, "four samples")
    # Unreadable data is reported, and later data is still read.
    agent.send(TEXT_ZSTD, b"no zstd at all")
    agent.send(TEXT, sample(101.5, 1, "leaf", "main").encode())
    wait_until(lambda: server.session(session)["samples"] == 5, 20, "five samples")
    assert any("could not be read" in notice["text"] for notice in server.session(session)["notices"])
    assert folded(server, session) == {"app;main;middle;leaf": 3, "app;main;leaf": 1, "pool;main;other": 1}
    assert folded(server, session, value="weight")["app;main;middle;leaf"] == 37
    counters = {one["name"]: one for one in server.get("/api/counters", session=session, by="total")["groups"][0]["counters"]}
    assert counters["instructions"]["value"] == 1000, counters
    assert server.command("stop")["ok"]
    server.wait_ended(session)
    # The next start begins another session, which ends with the connection.
    server.command("start", pid=7)
    agent.send(TEXT, sample(200.0, 1, "again").encode())
    second = wait_until(lambda: [one for one in server.sessions() if one["id"] != session], 20, "another session")[0]["id"]
    agent.close()
    server.wait_ended(second)
    assert folded(server, second) == {"app;again": 1}
    # It never received a message that its protocol does not define.
    assert set(agent.flags) == {COMMAND}
    # Read from the disk, the session is the same.
    server.stop()
    later = start.server(name="later", data_dir=server.data_dir)
    assert folded(later, session) == {"app;main;middle;leaf": 3, "app;main;leaf": 1, "pool;main;other": 1}


def test_the_pairing_code(start):
    server = start.server("--insecure", "--accept-perflens", "--perflens-token", "f" * 32)
    wrong = FakeAgent(server.port, CODE)
    assert wrong.closed.wait(20)
    assert "--perflens-token" in wait_until(lambda: "refused the pairing code" in server.err and server.err, 20, "the reason")
    server.stop()
    without = start.server("--insecure", "--accept-perflens", name="without")
    agent = FakeAgent(without.port, CODE)
    only_agent(without)
    answer = without.command("list_processes")
    assert answer["ok"] is False and "--perflens-token CODE" in answer["error"]
    agent.close()


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_chunks_of_a_real_one(start):
    folder = CORPUS / "harshithsunku+perflens" / "tests" / "fixtures" / "session-x86-baseline"
    metadata = json.loads((folder / "metadata.json").read_text())
    server = start.server("--insecure", "--accept-perflens")
    agent = FakeAgent(server.port)
    only_agent(server)
    for path in sorted(folder.glob("chunk_*.gz")):
        agent.send(TEXT, gzip.decompress(path.read_bytes()))
    wait_until(lambda: server.sessions() and server.sessions()[0]["samples"] == metadata["total_samples"], 60, "all samples")
    agent.close()
    session = server.sessions()[0]["id"]
    server.wait_ended(session)
    assert sorted(one["name"] for one in server.session(session)["events"]) == metadata["event_types"]
    # perf stat ran once per chunk and wrote scaled values. Ours are scaled once, by the sum of all times.
    expected = collections.Counter()
    for path in folder.glob("chunk_*.gz"):
        stat = gzip.decompress(path.read_bytes()).decode().split("### PERF_STAT ###")[1]
        for number, name in re.findall(r"^ +([\d,]+) +([a-z-]+)", stat, re.M):
            expected[name] += int(number.replace(",", ""))
    counters = {one["name"]: one["value"] for one in server.get("/api/counters", session=session, by="total")["groups"][0]["counters"]}
    for name in metadata["event_types"]:
        assert expected[name] and counters[name] == pytest.approx(expected[name], rel=0.01), name
