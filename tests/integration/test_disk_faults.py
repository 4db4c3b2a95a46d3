"""Full disks, read-only directories and two servers on one directory: messages are clear and nothing is lost. Each server has its own
mount namespace, in which the test creates its disk and breaks it."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import pytest
from flamewire import BIN, wait_until
from test_accounting import check_books

needs_root = pytest.mark.skipif(os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
                                reason="NOT tested: mount namespaces need root; CI runs as root")

UNSHARE = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]


def inside(server, *words):
    """Runs a command in the server's mount namespace."""
    subprocess.run(["nsenter", "--target", str(server.pid), "--mount", *[str(word) for word in words]], check=True)


def seen_inside(server, path):
    return pathlib.Path(f"/proc/{server.pid}/root{path}")


def fill(server):
    """Fills the disk to the last byte. Returns the file that does it."""
    filler = seen_inside(server, server.data_dir) / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


@pytest.fixture
def small_disk(start, tmp_path):
    """A server whose data directory is a disk of 2 MiB."""
    data = tmp_path / "data"
    data.mkdir()
    script = f'mount -t tmpfs -o size=2m flamewire {data} && exec "$@"'
    return start.server(data_dir=data, program=[*UNSHARE, script, "sh", BIN / "flamewire-server"])


def notice(server, session, code="disk"):
    return next((one for one in server.session(session)["notices"] if one["code"] == code), None)


def replayed(start, server, session, name):
    """Another server on a copy of the files on the small disk."""
    copy = start.directory / name
    (copy / "sessions").mkdir(parents=True)
    shutil.copytree(seen_inside(server, server.data_dir) / "sessions" / session, copy / "sessions" / session)
    return start.server(name=name, data_dir=copy)


@needs_root
def test_a_disk_that_fills_while_recording(start, small_disk):
    server = small_disk
    program = start.workload("shares", 600, 2)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499, "--interval", 50)
    session = wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300 and server.only_session(), 20, "samples")["id"]
    filler = fill(server)
    full = wait_until(lambda: notice(server, session), 20, "the notice")
    assert "No space left on device" in full["text"] and "The agent keeps its samples" in full["text"] and full["remedy"] == "free some space under the data directory"
    # The notice can come from a record longer than a batch, while a batch still fits.
    problem = wait_until(lambda: server.get("/api/agents")["agents"][0]["problem"], 20, "the agent's problem")
    assert "No space left" in problem and "free some space" in problem and problem.endswith("It waits with the agent.")
    # Existing samples are shown, no new ones arrive, and commands still reach the agent.
    have = server.session(session)["samples"]
    assert have > 300 and server.get("/api/flamegraph", session=session)["total"]["samples"] == have
    assert server.command("ping")["ok"]
    # A label cannot be written either. The message states why, and the old label stays.
    status, _, answer = server.request("PATCH", f"/api/sessions/{session}", body={"name": "x", "tags": {str(n): "v" * 250 for n in range(60)}})
    assert status == 500 and "No space left on device: free some space" in answer["error"]["message"] and server.session(session)["name"] == ""
    # The file is complete up to its last record.
    torn = replayed(start, server, session, "full")
    assert torn.only_session()["samples"] == have and not notice(torn, session, "stream-damaged")
    assert server.session(session)["samples"] == have
    filler.unlink()
    wait_until(lambda: not notice(server, session) and server.session(session)["samples"] > have + 300, 30, "the recording to continue")
    assert server.get("/api/agents")["agents"][0]["problem"] == ""
    program.stop()
    server.wait_ended(session)
    whole = check_books(server, session)
    assert whole["lost"] == 0, whole["losses"]
    again = replayed(start, server, session, "freed")
    assert again.only_session()["samples"] == whole["samples"] and again.only_session()["lost"] == 0
    assert "its batches wait" in server.err and "its batches are written again" in server.err
    assert agent.stop() == 0


@needs_root
def test_a_start_on_a_full_disk(start, small_disk):
    """Sessions on the disk are shown. The token cannot be stored, so it is valid for this run only."""
    folder = small_disk.data_dir
    fill(small_disk)
    held = f"/proc/{small_disk.pid}/root{folder}"
    program = ["nsenter", "--target", str(small_disk.pid), "--mount", BIN / "flamewire-server"]
    inside(small_disk, "mkdir", "-p", f"{folder}/empty/sessions")
    server = start.server(token=True, name="second", data_dir=f"{folder}/empty", program=program)
    assert re.search(r"^the page's token is for this run only: cannot write .*/http-token: No space left on device", server.err, re.M), server.err
    assert not pathlib.Path(held, "empty", "http-token").exists()
    token = urllib.parse.urlparse(server.page).query.removeprefix("token=")
    assert server.request("GET", "/api/sessions")[0] == 401
    assert server.request("GET", "/api/sessions", headers={"Authorization": f"Bearer {token}"})[0] == 200


@needs_root
def test_a_recording_that_begins_on_a_full_disk(start, small_disk):
    server = small_disk
    filler = fill(server)
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    problem = wait_until(lambda: [agent["problem"] for agent in server.get("/api/agents")["agents"] if agent["problem"]], 20, "the problem")[0]
    assert "No space left on device: free some space under the data directory" in problem
    assert server.sessions() == []
    filler.unlink()
    session = wait_until(lambda: server.sessions(), 20, "the session")[0]["id"]
    program.stop()
    server.wait_ended(session)
    assert check_books(server, session)["lost"] == 0


@needs_root
def test_a_sessions_directory_that_becomes_read_only(start, tmp_path):
    data = tmp_path / "data"
    (data / "sessions").mkdir(parents=True)
    server = start.server("--tag", "lab=7", data_dir=data, program=[*UNSHARE, 'exec "$@"', "sh", BIN / "flamewire-server"])
    folder = data / "sessions"
    inside(server, "mount", "--bind", folder, folder)
    inside(server, "mount", "-o", "remount,bind,ro", folder)
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    problem = wait_until(lambda: [agent["problem"] for agent in server.get("/api/agents")["agents"] if agent["problem"]], 20, "the problem")[0]
    assert "Read-only file system: make the data directory writable for the server" in problem
    inside(server, "umount", folder)
    session = wait_until(lambda: server.sessions(), 20, "the session")[0]["id"]
    # When the directory is read-only again, existing sessions can be viewed but not changed.
    program.stop()
    server.wait_ended(session)
    assert check_books(server, session)["lost"] == 0
    inside(server, "mount", "--bind", folder, folder)
    inside(server, "mount", "-o", "remount,bind,ro", folder)
    assert server.get("/api/functions", session=session)["functions"]
    for method, body in (("PATCH", {"name": "x"}), ("DELETE", None)):
        status, _, answer = server.request(method, f"/api/sessions/{session}", body=body)
        assert status == 500 and "Read-only file system: make the data directory writable" in answer["error"]["message"], answer
    assert [one["id"] for one in server.sessions()] == [session] and server.session(session)["tags"] == {"lab": "7"}
    assert "Read-only file system" in server.err


def refusal(start, data, program=()):
    """The one line that a server prints when it cannot start."""
    process = start.process(f"refused-{time.monotonic_ns()}", [*program, BIN / "flamewire-server", "--port", 0, "--http-port", 0, "--data-dir", data])
    assert process.wait(20) == 1
    lines = process.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("flamewire-server: "), lines
    return lines[0]


@needs_root
def test_a_data_directory_that_cannot_be_written(start, tmp_path):
    """The error is reported at the start, in one sentence with the remedy, with and without existing files."""
    empty, used = tmp_path / "empty", tmp_path / "used"
    empty.mkdir()
    (used / "sessions").mkdir(parents=True)
    (used / "lock").touch()
    for data in (empty, used):
        output = refusal(start, data, [*UNSHARE, f'mount --bind {data} {data} && mount -o remount,bind,ro {data} && exec "$@"', "sh"])
        assert "Read-only file system: make it writable for this user, or name another place by --data-dir" in output, output
    output = refusal(start, used, [*UNSHARE, f'mount --bind {used}/sessions {used}/sessions && mount -o remount,bind,ro {used}/sessions && exec "$@"', "sh"])
    assert f"cannot write {used}/sessions: Read-only file system: make it writable" in output
    # Another user can list the directory, but cannot write root's files.
    with tempfile.TemporaryDirectory(prefix="flamewire-data-") as folder:
        os.chmod(folder, 0o755)
        pathlib.Path(folder, "sessions").mkdir()
        output = refusal(start, folder, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        assert f"cannot write {folder}/lock: Permission denied: make it writable for this user" in output, output


def test_a_second_server_on_the_same_directory(start):
    server = start.server()
    output = refusal(start, server.data_dir)
    assert output == f"flamewire-server: another flamewire-server uses {server.data_dir}: stop it, or give this one its own --data-dir"
    assert server.get("/api/status")["status"] == "ok"
    # A server that was killed leaves no lock behind.
    server.process.kill()
    server.process.wait()
    assert start.server(name="next", data_dir=server.data_dir).get("/api/status")["status"] == "ok"
