"""The findings of an agent without privileges. An applied remedy shows at the next check. Changes to sysctls are undone at the end."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from flamewire import BIN, Process, ended, wait_until
from sysctls import sysctl


@pytest.fixture
def nobody(start, tmp_path):
    """(server, agent's id) of an agent that runs as another user."""
    if os.geteuid() != 0:
        pytest.skip("NOT tested: switching to another user and changing sysctls need root")
    server = start.server()
    with tempfile.TemporaryDirectory(prefix="flamewire-agent-") as folder:
        os.chmod(folder, 0o755)
        copy = pathlib.Path(folder) / "flamewire-agent"
        shutil.copy(BIN / "flamewire-agent", copy)
        copy.chmod(0o755)
        agent = Process("agent", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "--server", "127.0.0.1", "--pair", server.code, "--port", server.port], tmp_path, cwd="/")
        with ended(agent):
            wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
            yield server


def findings(reply):
    """Findings by code. Event findings are keyed by name too."""
    assert reply["ok"], reply
    found = {finding["code"]: finding for finding in reply["findings"] if finding["code"] != "event"}
    assert all(finding["text"] and not (finding["works"] and finding["remedy"]) for finding in reply["findings"])
    return found


def test_privileges_that_are_missing_and_their_remedies(nobody, start):
    server = nobody
    program = start.workload("shares", 600)
    with sysctl(perf_event_paranoid=2, kptr_restrict=1):
        found = findings(server.command("reprobe"))
        assert found["perf-events"]["works"]
        assert not found["other-users"]["works"] and "cap_perfmon" in found["other-users"]["remedy"]
        assert not found["kernel-samples"]["works"] and found["kernel-samples"]["remedy"] == "sysctl -w kernel.perf_event_paranoid=1"
        assert "perf_event_paranoid is 2" in found["kernel-samples"]["text"]
        assert not found["kernel-names"]["works"] and "kptr_restrict=0" in found["kernel-names"]["remedy"]
        assert not found["tracepoints"]["works"] and found["tracepoints"]["remedy"]
        # A process of root cannot be profiled by this user. The message is the same as that of `start`.
        verified = server.command("verify_pid", pid=program.pid)
        assert verified["exists"] and not verified["permitted"] and "this user may not profile process" in verified["problem"]
        refused = server.command("start", pid=program.pid)
        assert not refused["ok"] and "this user may not profile process" in refused["error"]
        # status has the same findings without checking again.
        assert findings({"ok": True, **server.command("status")["capabilities"]}) == found
    # Half of the remedy has no visible effect, and the other half is the remaining remedy.
    with sysctl(perf_event_paranoid=2, kptr_restrict=0):
        found = findings(server.command("reprobe"))
        assert not found["kernel-names"]["works"] and found["kernel-names"]["remedy"].startswith("sysctl -w kernel.perf_event_paranoid=1, or "), found
        assert "kernel.perf_event_paranoid is 2" in found["kernel-names"]["text"]
    # The whole remedy, as an administrator would apply it, takes effect at once.
    with sysctl(perf_event_paranoid=1, kptr_restrict=0):
        found = findings(server.command("reprobe"))
        assert found["kernel-samples"]["works"] and found["kernel-names"]["works"]
        assert not found["other-users"]["works"]
    with sysctl(perf_event_paranoid=-1, kptr_restrict=0):
        assert findings(server.command("reprobe"))["other-users"]["remedy"]


def test_without_tracefs(tmp_path, start):
    """Without tracefs in the mount namespace, the message states that it is not mounted and how to mount it."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("NOT tested: root and a mount namespace are needed")
    server = start.server()
    script = "umount -l /sys/kernel/tracing 2>/dev/null; umount -l /sys/kernel/debug 2>/dev/null; mount -t tmpfs none /sys/kernel/tracing 2>/dev/null; exec \"$@\""
    start.process("agent", ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", BIN / "flamewire-agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port])
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    found = findings(server.command("reprobe"))
    assert not found["tracepoints"]["works"] and "tracefs" in found["tracepoints"]["text"] and found["tracepoints"]["remedy"].startswith("mount -t tracefs")
    assert found["kernel-samples"]["works"] and found["other-users"]["works"]


def test_every_listed_event_can_be_recorded(start):
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port)
    program = start.workload("shares", 600)
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    reply = server.command("reprobe")
    broken = {finding["name"] for finding in reply["findings"] if finding["code"] == "event"}
    assert broken.isdisjoint(reply["record_events"]) and "cpu-clock" in reply["record_events"]
    assert server.command("start", pid=program.pid, events=["cpu-clock"])["ok"]
    refused = server.command("reprobe")
    assert not refused["ok"] and "stop first" in refused["error"]
    assert server.command("stop")["ok"]
