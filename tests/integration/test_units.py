"""The systemd units: how much of the machine they leave accessible, and that the programs work within these limits. There is no systemd in this test, so
strace and setpriv replace it."""
import os
import re
import shutil
import subprocess

import pytest
from flamewire import BIN, ROOT, Process, Tree, share_of, wait_until

# systemd's own exposure score, times ten.
EXPOSURE = {"agent": 45, "server": 30}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can grant capabilities; CI runs as root")


def unit(name):
    return (ROOT / f"cmake/package/flamewire-{name}.service.in").read_text().replace("@FLAMEWIRE_BINDIR@", str(BIN))


def words(text, setting):
    return [word for line in re.findall(rf"^{setting}=(.*)$", text, re.M) for word in line.split()]


def members(group):
    """The system calls of one of systemd's groups."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", group], check=True, capture_output=True, text=True, timeout=30).stdout
    names = [line.strip() for line in listed.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {call for name in names for call in (members(name) if name.startswith("@") else {name})}


def permitted_calls(text):
    calls, without = set(), False
    for word in words(text, "SystemCallFilter"):
        without = without or word.startswith("~")
        name = word.removeprefix("~")
        found = members(name) if name.startswith("@") else {name}
        calls = calls - found if without else calls | found
    assert len(calls) > 200
    return calls


def called(trace):
    return set(re.findall(r"^(?:\d+ +)?(\w+)\(", trace.read_text(errors="replace"), re.M))


@pytest.mark.parametrize("name", ["agent", "server"])
def test_exposure(name, tmp_path):
    path = tmp_path / f"flamewire-{name}.service"
    path.write_text(unit(name))
    analyzed = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE[name]}", path], capture_output=True, text=True, timeout=60)
    assert analyzed.returncode == 0 and f"Overall exposure level for {path.name}" in analyzed.stdout, analyzed.stdout[-3000:] + analyzed.stderr


@as_root
def test_programs_work_within_the_limits_of_their_units(start, tmp_path):
    """An agent of another user profiles the whole system, with kernel names. It makes no system call that a unit refuses."""
    text = unit("agent")
    rights = [name.removeprefix("CAP_").lower() for name in words(text, "AmbientCapabilities")]
    assert sorted(words(text, "CapabilityBoundingSet")) == sorted(words(text, "AmbientCapabilities")) and "perfmon" in rights
    given = ",".join(f"+{right}" for right in rights)
    os.chmod(tmp_path, 0o755)
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/") and parent.stat().st_uid == os.geteuid():
            os.chmod(parent, 0o755)
    agent_program = shutil.copy(BIN / "flamewire-agent", tmp_path)
    server = start.server()
    server_trace = tmp_path / "server.trace"
    server_strace = Process("strace", ["strace", "-f", "-qq", "-p", server.pid, "-o", server_trace], tmp_path)
    wait_until(lambda: server_strace.err or server_trace.exists(), 20, "strace")
    target = start.workload("shares", 600)
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    agent = Process("agent", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps=-all,{given}", f"--ambient-caps=-all,{given}", f"--bounding-set=-all,{given}",
                              "--no-new-privs", "strace", "-D", "-f", "-qq", "-o", folder / "agent.trace", agent_program, "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "-a", "--events", "cpu-clock"],
                    tmp_path, cwd="/")
    try:
        wait_until(lambda: server.sessions() and share_of(Tree(server.get("/api/flamegraph")).shares(), "main") > 0, 60, "a profile")
        assert target.alive() and agent.alive(), agent.err
        wait_until(lambda: any(module["kind"] == "kernel" for module in server.session(server.sessions()[0]["id"])["modules"]), 30, "frames of the kernel")
        notices = {notice["code"] for notice in server.session(server.sessions()[0]["id"])["notices"]}
        assert not notices & {"user-only", "kernel-addresses-hidden", "kernel-names-missing", "whole-cpus"}, notices
    finally:
        agent.stop()
    server_strace.stop()
    assert server.stop() == 0
    for name, trace in (("agent", folder / "agent.trace"), ("server", server_trace)):
        calls = called(trace)
        assert len(calls) > 10 and calls <= permitted_calls(unit(name)) | {"execve"}, (name, calls - permitted_calls(unit(name)))
