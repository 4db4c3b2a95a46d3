"""The privileges that an agent keeps, as the kernel reports them, and the processes that it allows a server to profile."""

import os
import pathlib
import shutil
import subprocess

import pytest
from flamewire import BIN, TESTS_BIN, wait_until


def statuses(pid):
    """Yields /proc/PID/status of each thread of the process."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        yield dict(line.split(":\t", 1) for line in (task / "status").read_text(encoding="utf-8").splitlines() if ":\t" in line)


def connected(server):
    return wait_until(lambda: [agent for agent in server.get("/api/agents")["agents"] if agent["connected"]], 20, "the agent")


def test_a_connected_agent_has_dropped_unneeded_privileges(start):
    if os.geteuid() != 0:
        pytest.skip("NOT tested: an ordinary user has no privileges to drop")
    server = start.server()
    program = start.workload("demo", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--unwind", "dwarf")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    server.command("list_processes")
    kept = {2: "dac_read_search", 14: "ipc_lock", 19: "sys_ptrace", 34: "syslog", 38: "perfmon", 40: "checkpoint_restore"}
    own = int(pathlib.Path("/proc/self/status").read_text(encoding="utf-8").split("CapEff:\t")[1].split()[0], 16)
    threads = list(statuses(agent.pid))
    assert len(threads) > 2
    for status in threads:
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == own & sum(1 << number for number in kept), status["Name"]
        assert int(status["CapInh"], 16) == 0
        assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1"), status["Name"]


def test_the_filter_can_be_switched_off_and_a_launched_command_has_none(start):
    server = start.server()
    # The command prints its own status: it starts programs, and runs as the user who started the agent.
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--no-seccomp", "--", "/bin/sh", "-c", "grep -E '^(Seccomp|NoNewPrivs|CapEff)' /proc/self/status; sleep 20")
    connected(server)
    assert {status["Seccomp"] for status in statuses(agent.pid)} == {"0"}
    agent.stop()
    again = start.agent("--server", "127.0.0.1", "--port", server.port, "--", "/bin/sh", "-c", "grep -E '^(Seccomp|NoNewPrivs|CapEff)' /proc/self/status; sleep 20", name="again")
    wait_until(lambda: "Seccomp:" in again.out, 20, "the command")
    seen = dict(line.split(":\t") for line in again.out.splitlines() if ":\t" in line)
    own = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    assert seen["Seccomp"] == "0" and seen["NoNewPrivs"] == "0"
    assert seen["CapEff"] == own.split("CapEff:\t")[1].split()[0]
    assert {status["Seccomp"] for status in statuses(again.pid)} == {"2"}


def refused(reply):
    assert reply["ok"] is False
    return reply["error"]


def test_a_server_can_choose_only_allowed_processes(start):
    server = start.server()
    # Programs of other tests have the usual names, so this one has its own.
    name = f"other-{os.getpid()}"
    shutil.copy(TESTS_BIN / "shares-workload", start.directory / name)
    allowed, other = start.workload("demo", 600), start.process("other", [start.directory / name, "600"])
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--allow-command", "demo-*,nothing")
    connected(server)
    reply = server.command("list_processes")
    listed = {process["pid"]: process for process in reply["processes"]}
    assert allowed.pid in listed and all(process["comm"].startswith("demo-") for process in listed.values())
    sentence = f"process {other.pid} ({name}) is not among those that this agent may profile: --allow-command limits them"
    assert refused(server.command("start", pid=other.pid)) == sentence
    assert refused(server.command("start", pids=[allowed.pid, other.pid])) == sentence
    assert refused(server.command("start", name=name)) == sentence
    check = server.command("verify_pid", pid=other.pid)
    assert check["exists"] and not check["permitted"] and check["problem"] == sentence and check["info"] == {"comm": "", "cmdline": ""}
    assert server.command("verify_pid", pid=allowed.pid)["permitted"]
    assert server.command("start", pid=allowed.pid)["ok"]
    assert refused(server.command("configure", pid=other.pid)) == sentence
    assert server.command("status")["pids"] == [allowed.pid]
    agent.stop()
    # Targets on the agent's own command line need no permission.
    start.agent("--server", "127.0.0.1", "--port", server.port, "--allow-pid", allowed.pid, "--allow-user", "nobody", "--pid", other.pid, name="own")
    wait_until(lambda: any(session["state"] == "live" and session["samples"] > 0 for session in server.sessions()), 20, "samples")
    server.command("stop")
    assert "--allow-user" in refused(server.command("start", pid=allowed.pid))
    assert "--allow-pid" in refused(server.command("start", pid=other.pid))


@pytest.mark.parametrize(("arguments", "words"), [
    (["--allow-user", "no-such-user-here"], "has no user no-such-user-here"),
    (["--allow-user", "root,,x"], "separated by commas"),
    (["--allow-pid", "x"], "--allow-pid must be a whole number"),
])
def test_wrong_lists(arguments, words):
    run = subprocess.run([BIN / "flamewire-agent", "--server", "127.0.0.1", *arguments], capture_output=True, text=True, timeout=20, check=False)
    assert run.returncode in (1, 2) and words in run.stderr and run.stderr.count("\n") == 1


def test_lists_are_for_servers(tmp_path):
    run = subprocess.run([BIN / "flamewire-agent", "--output", tmp_path / "x.flw", "--allow-pid", "1", "--", "true"], capture_output=True, text=True, timeout=20, check=False)
    assert run.returncode == 2 and "need --server or --listen" in run.stderr
