"""The agent's command line: modes, targets, exit codes, and a message of one sentence for each mistake."""
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import time

import bounds
import pytest
from flamewire import BIN, ROOT, SANITIZED, TESTS_BIN, Process, Tree, ended, wait_until
from known_shares import check_known_shares
from looks import Looks

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=4)
TOTAL = bounds.Check("samples by the program's CPU time", times=1)

AGENT = BIN / "flamewire-agent"


def run(*arguments, **options):
    return subprocess.run([str(AGENT), *map(str, arguments)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **options)


# The expected number of samples depends on the CPU time that the target got. On a busy machine that is less than one
# CPU per thread, so the kernel is asked.
def cpu_seconds(pid):
    """The CPU time of all live threads."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--server", "127.0.0.1", "--listen"],
        ["--output", "x.flw"],
        ["--server", "127.0.0.1", "--port", "0x"],
        ["--server", "127.0.0.1", "--port", "70000"],
        ["--server", "127.0.0.1", "--pid", "abc"],
        ["--server", "127.0.0.1", "--pid", "-3"],
        ["--server", "127.0.0.1", "--frequency", "0"],
        ["--server", "127.0.0.1", "--frequency", "99", "--count", "1000"],
        ["--server", "127.0.0.1", "--events", "no-such-event"],
        ["--server", "127.0.0.1", "--events", "cycles:q"],
        ["--server", "127.0.0.1", "--unwind", "magic"],
        ["--server", "127.0.0.1", "--interval", "-1"],
        ["--server", "127.0.0.1", "--no-such-option"],
        ["--server", "127.0.0.1", "--pid", "1", "--name", "x"],
        ["--output", "x.flw", "--cpus", "0", "--cpus", "1"],
        ["--output", "x.flw", "--container", "a", "--container", "b"],
        ["--output", "-", "--", "true"],
        ["--output", "x.flw", "--"],
    ],
    ids=lambda arguments: " ".join(arguments) or "nothing",
)
def test_usage_errors(arguments, tmp_path):
    outcome = run(*arguments, cwd=tmp_path)
    assert outcome.returncode == 2, outcome
    assert outcome.stdout == ""
    assert len(outcome.stderr.strip().splitlines()) == 1, outcome.stderr
    assert not list(tmp_path.iterdir())


def test_output_to_a_terminal_is_refused():
    master, terminal = pty.openpty()
    outcome = subprocess.run([AGENT, "--output", "-", "--pid", str(os.getpid())], stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=30)
    os.close(master)
    os.close(terminal)
    assert outcome.returncode == 2 and "terminal" in outcome.stderr


def test_help_and_version():
    usage = run("--help")
    assert usage.returncode == 0
    for option in ("--server", "--listen", "--bind", "--output", "--port", "--pid", "--name", "--delay", "--frequency", "--count", "--duration", "--rounds",
                   "--interval", "--events", "--unwind", "--no-kernel", "--help", "--version"):
        assert option in usage.stdout, option
    version = run("--version")
    assert version.returncode == 0 and (ROOT / "VERSION").read_text().strip() in version.stdout
    assert os.uname().machine in version.stdout
    notes = subprocess.run(["readelf", "-n", AGENT], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "build-id: " + re.search("Build ID: ([0-9a-f]+)", notes)[1] in version.stdout
    assert "frame pointers" in version.stdout and "zstd" in version.stdout


@pytest.mark.parametrize("code", [0, 7])
def test_exit_code_of_the_command(tmp_path, code):
    outcome = run("--output", tmp_path / "out.flw", "--", "sh", "-c", f"exit {code}")
    assert outcome.returncode == code, outcome.stderr


def test_signal_of_the_command(tmp_path):
    assert run("--output", tmp_path / "out.flw", "--", "sh", "-c", "kill -TERM $$").returncode == 128 + 15


def test_one_request_that_arrives_as_two_signals(tmp_path):
    """`timeout` signals its child, and then the whole group, which includes the child."""
    outcome = subprocess.run(["timeout", "--preserve-status", "-s", "INT", "1", AGENT, "--output", tmp_path / "out.flw", "--pid", str(os.getpid()), "--duration", "20"],
                             capture_output=True, text=True, timeout=30)
    assert outcome.returncode == 0 and "second signal" not in outcome.stderr and "agent ends: " in outcome.stderr, outcome


def test_a_second_signal_ends_the_agent_at_once(start, tmp_path):
    agent = start.agent("--output", tmp_path / "out.flw", "--", "sh", "-c", "trap '' INT; echo ready; sleep 30")
    wait_until(lambda: "ready" in agent.out, 20, "the command")
    os.kill(agent.pid, signal.SIGINT)
    wait_until(lambda: "agent ends: " in agent.err, 20, "the end of the recording")
    time.sleep(0.3)
    assert agent.alive()
    os.kill(agent.pid, signal.SIGINT)
    assert agent.wait(10) == 128 + signal.SIGINT and "second signal: ending at once" in agent.err, agent.err


def test_command_that_does_not_exist(tmp_path):
    outcome = run("--output", tmp_path / "out.flw", "--", "/no/such/program")
    assert outcome.returncode == 127 and "/no/such/program" in outcome.stderr and "No such file" in outcome.stderr


@pytest.mark.recording
def test_output_file_is_a_session(start, tmp_path):
    """--output writes a file that the server lists and replays, including the names of sampled kernel addresses."""
    outcome = run("--output", tmp_path / "run.flw", "--frequency", 999, "--", TESTS_BIN / "shares-workload", 2)
    used = int(outcome.stdout.split()[1]) / 1e9
    assert outcome.returncode == 0, outcome.stderr
    sessions = tmp_path / "data" / "sessions"
    sessions.mkdir(parents=True)
    os.rename(tmp_path / "run.flw", sessions / "run.flw")
    server = start.server("--binary", TESTS_BIN / "shares-workload")
    session = server.wait_ended()
    if SANITIZED:  # sanitizers make the agent slow
        assert 0.5 * 999 * used < session["samples"] < 1.05 * 999 * used
    else:
        # The program's own measurement does not include its exit.
        TOTAL.total(session["samples"], used, 999, edges=1, clock_s=0.005)
    check_known_shares(KNOWN, Tree(server.get("/api/flamegraph", min_share=0)))


def test_output_to_a_pipe(start, tmp_path):
    program = start.workload("shares", 600)
    begin = time.monotonic()
    with Looks(program.pid) as looks:
        outcome = subprocess.run([AGENT, "--output", "-", "--pid", str(program.pid), "--duration", "1", "--rounds", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    took_ms = 1000 * (time.monotonic() - begin)
    assert outcome.returncode == 0 and outcome.stdout.startswith(b"FLMWIRE\n"), outcome.stderr
    sessions = tmp_path / "data" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "pipe.flw").write_bytes(outcome.stdout)
    session = start.server().only_session()
    assert 1800 <= session["duration_ms"] <= took_ms, session
    least, most = looks.between(session["start_ns"], session["start_ns"] + 1_000_000 * session["duration_ms"])
    # A session begins before its events are open, which takes a while on a busy machine.
    assert 0.5 * 99 * least / 1e9 < session["samples"] <= (1 + bounds.STOLEN) * 99 * most / 1e9 + 2, (session["samples"], least, most)


def test_name_waits_for_the_process(start, tmp_path):
    # Other tests run the same workload at the same time, so this copy has its own name.
    named = tmp_path / f"named-{os.getpid()}"
    shutil.copy(TESTS_BIN / "shares-workload", named)
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--name", named.name, "--frequency", 499)
    time.sleep(1)
    assert not server.sessions()
    program = start.process("named", [named, 600])
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    assert server.only_session()["pids"] == [program.pid]


@pytest.mark.parametrize("by_server", [False, True])
def test_name_follows_processes_that_start_later(start, tmp_path, by_server):
    named = tmp_path / f"follow-{os.getpid()}"
    shutil.copy(TESTS_BIN / "shares-workload", named)
    server = start.server()
    target = () if by_server else ("--name", named.name)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 499, *target)

    def sampled(program):
        listed = server.only_session()["unwind_processes"] if server.sessions() else []
        return any(process["pid"] == program.pid and process["samples"] > 50 for process in listed)

    first = start.process("first", [named, 600])
    if by_server:
        wait_until(lambda: server.get("/api/agents")["agents"], 20, "the agent")
        assert server.command("start", name=named.name)["ok"]
    wait_until(lambda: sampled(first), 20, "samples of the first process")
    second = start.process("second", [named, 600])
    wait_until(lambda: sampled(second), 20, "samples of the second process")
    first.stop()
    second.stop()
    wait_until(lambda: server.command("status").get("waiting_for") == named.name, 20, "the agent to wait for another process")
    third = start.process("third", [named, 600])
    wait_until(lambda: sampled(third), 20, "samples of the third process")
    # All of this is one recording, which continues.
    assert server.only_session()["state"] != "ended"
    assert server.command("status")["state"] == "profiling"
    assert "waiting_for" not in server.command("status")
    # After a stop, no process is followed.
    assert server.command("stop")["ok"]
    start.process("fourth", [named, 600])
    time.sleep(2.5)
    assert server.command("status")["state"] == "idle"


def test_several_names_are_followed_into_a_file(start, tmp_path):
    """Processes of both names run one after the other. The recording waits for the next one, as it does with a server."""
    names = [f"{word}-{os.getpid()}" for word in ("one", "two")]
    for name in names:
        shutil.copy(TESTS_BIN / "shares-workload", tmp_path / name)
    agent = start.agent("--output", tmp_path / "both.flw", "--name", names[0], "--name", names[1], "--frequency", 499)
    wait_until(lambda: f"waiting for a process named {names[0]} or {names[1]}" in agent.err, 20, "the agent")
    pids = []
    for number, name in enumerate(names[::-1]):
        program = start.process(name, [tmp_path / name, 600])
        pids.append(program.pid)
        wait_until(lambda number=number: agent.err.count("profiling") + agent.err.count(": now ") > number, 20, "the recording")
        used = cpu_seconds(program.pid)
        wait_until(lambda program=program, used=used: cpu_seconds(program.pid) > used + 0.3, 60, "some samples")
        program.stop()
        wait_until(lambda number=number: agent.err.count("waiting for another process") > number, 20, "the agent to wait again")
    assert agent.stop() == 0, agent.err
    server = start.server("--import", tmp_path / "both.flw")
    session = server.wait_ended()
    samples = {thread["pid"]: thread["samples"] for thread in server.get("/api/thread-summary", session=session["id"])["threads"]}
    assert all(samples.get(pid, 0) > 50 for pid in pids), (samples, pids, agent.err)


def test_listening_agent_and_commands(start):
    """The server connects to the agent and controls all states of a recording with commands."""
    import flamewire
    port = flamewire.free_port()
    agent = start.agent("--listen", "--port", port)
    server = start.server()
    program = start.workload("shares", 600, 2)
    answer = server.post("/api/agent/connect", {"host": "127.0.0.1", "port": port, "pair": agent.code})
    assert answer["ok"] and answer["hello"]["agent"] == "flamewire"
    assert server.command("ping")["ok"]
    status = server.command("status")
    assert status["state"] == "idle" and status["agent_version"]
    used, begin = cpu_seconds(program.pid), time.monotonic()
    listed = server.command("list_processes")["processes"]
    percent = 100 * (cpu_seconds(program.pid) - used) / (time.monotonic() - begin)
    mine = next(process for process in listed if process["pid"] == program.pid)
    assert mine["comm"] == "shares-workload" and mine["cpu"] > percent / 2 > 0 and mine["user"] == "root" and "shares-workload" in mine["cmdline"]
    verified = server.command("verify_pid", pid=program.pid)
    assert verified["exists"] and verified["info"]["comm"] == "shares-workload"
    begin = time.monotonic()
    probed = server.command("reprobe", pid=program.pid)
    assert time.monotonic() - begin < 10 and "cpu-clock" in probed["record_events"]
    assert server.command("stop")["error"] == "not profiling"
    started = server.command("start", pid=program.pid, frequency=499, duration=3)
    assert started["ok"] and started["pid"] == program.pid and started["frequency"] == 499 and started["duration"] == 3
    assert "already profiling" in server.command("start", pid=program.pid)["error"]
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 20, "samples")
    assert server.command("pause")["ok"]
    wait_until(lambda: server.only_session()["state"] == "paused", 5, "pause")
    time.sleep(0.7)
    paused_at = server.only_session()["samples"]
    time.sleep(1)
    assert server.only_session()["samples"] == paused_at
    assert server.command("resume")["ok"]
    wait_until(lambda: server.only_session()["samples"] > paused_at + 200, 10, "samples after resume")
    configured = server.command("configure", frequency=1999)
    assert configured["ok"] and configured["frequency"] <= 1999
    before, used = server.only_session()["samples"], cpu_seconds(program.pid)
    time.sleep(2)
    used = cpu_seconds(program.pid) - used
    assert server.only_session()["samples"] - before > 1.3 * 999 * used  # more than 999 Hz can yield
    stopped = server.post("/api/stop")
    assert stopped["stopped"]
    server.wait_ended()
    # The last batch arrives a moment before the agent is idle.
    wait_until(lambda: server.command("status")["state"] == "idle", 10, "the agent to be done")
    assert server.only_session()["lost"] == 0
    # A second recording is a second session.
    assert server.command("start", pid=program.pid)["ok"]
    wait_until(lambda: len(server.sessions()) == 2, 10, "a second session")
    program.stop()
    wait_until(lambda: all(session["state"] == "ended" for session in server.sessions()), 10, "the end with the target")
    wait_until(lambda: server.command("status")["state"] == "idle", 10, "the agent to be done")
    assert agent.alive() and agent.stop() == 0


def test_the_sampling_thread_has_a_low_priority_after_the_start(start, tmp_path):
    """Only the sampling thread has the agent's initial priority, and only while it opens events. It starts the thread that reads
    JIT names meanwhile, and that thread does not keep this priority."""
    initial = os.getpriority(os.PRIO_PROCESS, 0)
    if initial >= 5:
        pytest.skip(f"NOT tested: this test runs at nice {initial}")
    workload = start.workload("jit", "map", 30_000)
    log = tmp_path / "calls"
    agent = Process("agent", ["strace", "-f", "-qq", "-e", "trace=setpriority", "-o", log, AGENT, "--output", tmp_path / "x.flw", "--pid", workload.pid, "--duration", 600], tmp_path)

    def calls():
        """(thread, nice value) of each successful call"""
        return re.findall(r"^(\d+) +setpriority\(PRIO_PROCESS, 0, (\d+)\) += 0$", log.read_text() if log.exists() else "", re.M)

    with ended(agent):
        found = wait_until(lambda: len(calls()) >= 4 and calls(), 60, "the end of the start")
    by_thread = {}
    for thread, nice in found:
        by_thread.setdefault(thread, []).append(int(nice))
    assert list(by_thread.values()) == [[5], [initial, 5], [5]], found


def test_descriptors_are_reserved_before_threads_start(start, tmp_path):
    """If the descriptor table grows later, each growth waits for the kernel's RCU, and the rings are not read meanwhile."""
    workload = start.workload("shares", 600)
    agent = start.agent("--output", tmp_path / "x.flw", "--pid", workload.pid, "--duration", 600)
    wait_until(lambda: "profiling pid" in agent.err, 60, "the recording")
    slots, limit = int(re.search(r"^FDSize:\s+(\d+)$", pathlib.Path(f"/proc/{agent.pid}/status").read_text(), re.M)[1]), resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)[0]
    assert slots >= min(limit, 16_384), (slots, limit)


def test_delay(start, tmp_path):
    """--delay skips the first second."""
    server = start.server()
    begin = time.monotonic_ns()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--delay", 1000, "--", TESTS_BIN / "shares-workload", 2)
    assert agent.wait() == 0
    server.wait_ended()
    session = server.only_session()
    # The program begins after `begin`, and the recording a second after that.
    edge = (begin - session["start_ns"]) / 1e6 + 1000
    assert session["samples"] > 0 and server.get("/api/flamegraph", end=edge)["total"]["samples"] == 0, (session, edge)
    # The program ran for two seconds and was recorded until it ended.
    assert server.get("/api/flamegraph", start=edge + 500)["total"]["samples"] > 0, (session, edge)
