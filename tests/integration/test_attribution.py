"""Every sample has the right name, also with namespaces and deleted files. Processes that cannot be sampled are refused."""
import os
import shutil
import subprocess

import bounds
import pytest
from flamewire import BIN, TESTS_BIN, Tree, wait_until
from known_shares import check_known_shares
from other_root import copy_with_libraries, loaded_child

UNKNOWN = 4
KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=4)
UNNAMED = bounds.Check("samples that have no name", times=1)


def unknown(tree):
    """(name, self weight) of unknown frames in no module or in one of our programs, which have all their symbols.
    A stripped system library without debug info has functions without names, but their frames still belong to that module."""
    return [(name, weight) for name, weight, kind, module in zip(tree.names, tree.self_weight, tree.kind, tree.modules)
            if kind == UNKNOWN and weight and (not module or "workload" in module or module == "inside")]


def check_named(tree):
    samples = tree.answer["total"]["samples"]
    UNNAMED.at_most(samples * sum(weight for _, weight in unknown(tree)) / tree.weight, samples, 0.005, detail=unknown(tree)[:5])


@pytest.mark.recording
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and chroot need root; CI runs as root")
def test_namespaces_other_root_and_deleted_binary(start, tmp_path):
    """A target in its own pid and mount namespace with another root, whose binary was deleted after the start."""
    root = tmp_path / "root"
    copy_with_libraries(TESTS_BIN / "shares-workload", root, "/app/inside")
    launcher = start.process("unshare", ["unshare", "--fork", "--pid", "--mount", "--propagation", "unchanged", "--kill-child", "chroot", root, "/app/inside", "300"])
    target = loaded_child(launcher, "inside", TESTS_BIN / "shares-workload")
    (root / "app" / "inside").unlink()

    server = start.server("--binary", TESTS_BIN / "shares-workload")
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target, "--frequency", 999)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1500, 30, "samples")
    listed = server.command("list_processes")
    entry = next(process for process in listed["processes"] if process["pid"] == target)
    assert entry["ns_pid"] == 1 and entry["comm"] == "inside"
    assert agent.stop() == 0
    modules = server.wait_ended()["modules"]
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_known_shares(KNOWN, tree)
    check_named(tree)
    module = next((module for module in modules if module["path"].endswith("/app/inside")), None)
    assert module and module["build_id"], modules


def test_a_pid_that_is_gone(start):
    gone = subprocess.Popen(["true"])
    gone.wait()
    agent = start.agent("--output", start.directory / "never.flw", "--pid", gone.pid)
    assert agent.wait() == 1
    message = agent.err.strip().splitlines()[-1]
    assert str(gone.pid) in message and ("not found" in message or "no process" in message or "gone" in message), agent.err
    assert not (start.directory / "never.flw").exists()
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, name="idle")
    wait_until(lambda: server.get("/api/status")["agent_connected"], 10, "the agent")
    reply = server.command("start", pid=gone.pid)
    assert reply["ok"] is False and f"process {gone.pid} not found" in reply["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="switching to another user needs root; CI runs as root")
def test_another_users_process_is_refused(start, tmp_path):
    os.chmod(tmp_path, 0o755)
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/") and parent.stat().st_uid == os.geteuid():
            os.chmod(parent, 0o755)
    program = start.workload("shares", 600)
    agent_copy = tmp_path / "flamewire-agent"
    shutil.copy(BIN / "flamewire-agent", agent_copy)
    agent_copy.chmod(0o755)
    outcome = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", agent_copy, "--output", "-", "--pid", str(program.pid)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30, cwd="/")
    assert outcome.returncode == 1
    message = outcome.stderr
    assert str(program.pid) in message and "cap_perfmon" in message, message
