"""Changes of the machine below running programs: its clock is set, an administrator tightens a sysctl, the kernel kills the server for its
memory. The shown data stays correct, and data that is no longer available is reported."""
import os
import pathlib
import shutil
import signal
import tempfile
import time

import flamewire
from faults import memory_group
from flamewire import BIN, Process, Relay, ended, wait_until
from hostile import Forged, HostileAgent
from sanitized import plain_build_only
from sysctls import KERNEL, sysctl
from test_accounting import check_books

DAY = 86_400


@plain_build_only("libfaketime does not work with sanitizers")
def test_a_server_whose_clock_is_set(start):
    """The server's clock moves ten days ahead, then twenty back, while an agent records and a page is open. Times within the session come from the
    kernel, nothing is lost, and no client is disconnected."""
    offset = start.directory / "offset"
    offset.write_text("+0\n")
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    server = start.server(program=("env", f"LD_PRELOAD={library}", f"FAKETIME_TIMESTAMP_FILE={offset}", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", BIN / "flamewire-server"))
    program = start.workload("shares", 600)
    began = time.monotonic()
    relay = Relay(server.port)
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pid", program.pid, "--frequency", 199)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    with server.stream() as events:
        for days in (10, -10, 0):
            offset.write_text(f"{days * DAY:+d}\n")
            have = server.only_session()["samples"]
            wait_until(lambda: server.only_session()["samples"] > have + 100, 20, "more samples")
            assert any(name == "data_version" for name, _ in (next(events) for _ in range(20)))
    assert agent.err.count("connected to") == 1
    # A connection that begins while the clock shows another day.
    offset.write_text(f"{-10 * DAY:+d}\n")
    relay.cut()
    have = server.only_session()["samples"]
    wait_until(lambda: agent.err.count("connected to") == 2 and server.only_session()["samples"] > have + 100, 30, "the recording to continue")
    program.stop()
    server.wait_ended()
    session = check_books(server)
    took = (time.monotonic() - began) * 1e3
    assert time.strftime("%Y-%m-%d", time.gmtime(time.time() - 10 * DAY)) in server.err  # the log has that date
    assert session["lost"] == 0 and 2_000 < session["duration_ms"] < took, (session["duration_ms"], took)
    timeline = server.get("/api/timeline", session=session["id"])
    assert timeline["session_end_ms"] <= took
    assert agent.stop() == 0
    relay.close()


def test_an_agent_whose_clock_is_set(start, monkeypatch):
    """A board without a battery-backed clock starts in 1970 and gets its date from the network later. The session's times do not jump."""
    server = start.server("--insecure")
    real = time.time_ns
    with HostileAgent(server.port).hello("board") as agent:
        assert agent.await_frame(8)
        forged = Forged("board")
        began = time.monotonic()
        for seconds in (-real() // 10**9 + 3, 0, 400 * DAY, 0):
            monkeypatch.setattr(time, "time_ns", lambda: real() + seconds * 10**9)  # pylint: disable=cell-var-from-loop
            agent.send(5, forged.batch(stacks=10, rows=10))
            time.sleep(0.3)
        agent.send(5, forged.batch(rows=10, end="stopped"))
        assert agent.acknowledged(forged.seq)
        took = (time.monotonic() - began) * 1e3
    session = server.wait_ended()
    assert session["samples"] == forged.samples and session["lost"] == 0
    assert 1_000 < session["duration_ms"] < took + 100, (session["duration_ms"], took)
    assert server.get("/api/timeline", session=session["id"])["session_end_ms"] < took + 100


def test_perf_events_that_are_forbidden_while_recording(start):
    """Open events continue. New events are limited to what this user is still allowed, with a notice and its remedy."""
    server = start.server()
    with tempfile.TemporaryDirectory(prefix="flamewire-nobody-") as folder:
        os.chmod(folder, 0o755)
        for name in ("flamewire-agent", "shares-workload"):
            shutil.copy(BIN / name, folder)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        with sysctl(perf_event_paranoid=1):
            program = Process("program", [*nobody, f"{folder}/shares-workload", 600], start.directory, cwd="/")
            agent = Process("agent", [*nobody, f"{folder}/flamewire-agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--pid", program.pid, "--frequency", 199, "--unwind", "fp"], start.directory, cwd="/")
            with ended(program, agent):
                wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")

                def goes_on():
                    have = server.only_session()["samples"]
                    wait_until(lambda: server.only_session()["samples"] > have + 50, 20, "more samples")

                def excluded():
                    return [one for one in server.only_session()["notices"] if one["code"] == "kernel-excluded"]

                for level, frequency in ((2, 499), (3, 299)):
                    (KERNEL / "perf_event_paranoid").write_text(f"{level}\n")
                    goes_on()
                    assert len(excluded()) == level - 2
                    changed = server.command("configure", frequency=frequency)
                    assert changed["ok"] and changed["effective_frequency"] == frequency and not changed["kernel"], changed
                    goes_on()
                    assert excluded()[-1]["text"] == f"Kernel functions are not sampled: kernel.perf_event_paranoid is {level} and the agent has no CAP_PERFMON."
                    assert excluded()[-1]["remedy"] == "sysctl -w kernel.perf_event_paranoid=1"
                (KERNEL / "perf_event_paranoid").write_text("1\n")
                changed = server.command("configure", frequency=399)
                assert changed["ok"] and changed["kernel"], changed
                goes_on()
                program.stop()
                server.wait_ended()
                assert {one["reason"] for one in check_books(server)["losses"] if one["lost"]} == set()
                assert agent.stop() == 0


@plain_build_only("sanitizers need more memory than the control group has")
def test_a_server_that_the_kernel_kills_for_its_memory(start):
    """An agent sends an endless stream of names to a server in a control group of 128 MiB, and the kernel kills the server. The next server has all of
    both sessions, and with a limit that fits it is not killed."""
    port, http_port = flamewire.free_port(), flamewire.free_port()
    program = start.workload("shares", 600)
    forged = Forged("wordy")
    with memory_group(128 << 20) as words:
        server = start.server("--insecure", "--table-memory", "4G", port=port, http_port=http_port, program=(*words, BIN / "flamewire-server"))
        honest = start.agent("--server", "127.0.0.1", "--port", port, "--pid", program.pid, "--frequency", 199)
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 50, 20, "samples")
        kept = forged.batch(stacks=10, rows=10)
        batches = []
        with HostileAgent(port).hello("wordy") as agent:
            assert agent.await_frame(8)
            agent.send(5, kept)
            assert agent.acknowledged(1)
            try:
                for number in range(400):
                    batches.append(forged.batch(strings=[f"{number}-{i}-" + "x" * 900 for i in range(1000)], stacks=100, rows=10, depth=3))
                    agent.send(5, batches[-1])
            except OSError:
                pass
        assert server.wait(30) == -signal.SIGKILL, server.err[-2000:]
    with memory_group(256 << 20) as words:
        server = start.server("--insecure", "--table-memory", "16M", port=port, http_port=http_port, program=(*words, BIN / "flamewire-server"))
        wait_until(lambda: any(one["connected"] for one in server.get("/api/agents")["agents"]), 45, "the agent")
        with HostileAgent(port).hello("wordy", forged.id, last=len(batches) + 1) as agent:
            had = agent.await_frame(8)
            assert had and had["seq"] >= 1
            for batch in batches[had["seq"] - 1:]:
                agent.send(5, batch)
            agent.send(5, forged.batch(rows=10, end="stopped"))
            assert agent.acknowledged(forged.seq, 60)
        program.stop()
        wait_until(lambda: all(one["state"] == "ended" for one in server.sessions()), 30, "their ends")
        wordy = next(one for one in server.sessions() if one["target"] == "wordy")
        mine = next(one for one in server.sessions() if one["id"] != wordy["id"])
        whole = server.session(wordy["id"])
        assert whole["samples"] + flamewire.lost(whole) == forged.samples and "session-full" in {one["code"] for one in whole["notices"]}
        stats = next(one["stats"] for one in server.get("/api/agents")["agents"] if one["id"] != "wordy" and one.get("stats"))
        assert server.session(mine["id"])["lost"] == 0 and mine["samples"] == stats["samples_read"] - stats["samples_duplicate"]
        assert honest.stop() == 0 and server.stop() == 0
