"""Managing sessions: names and tags, the list and its search, and the retention rules that delete old ones."""
import contextlib
import os
import re
import shutil
import struct
import time

import pprof
import pytest
from flamewire import BIN, TESTS_BIN, Process, wait_until


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A small session file of a real recording."""
    folder = tmp_path_factory.mktemp("recording")
    file = folder / "small.flw"
    agent = Process("agent", [BIN / "flamewire-agent", "--output", file, "--frequency", 999, "--", TESTS_BIN / "lines-workload", "2"], folder)
    assert agent.wait(60) == 0, agent.err
    return file


def put(server_data, recording, names):
    """Adds copies of a recording as sessions, the oldest first. The ctime of a file is its arrival time."""
    folder = server_data / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(recording, folder / f"{name}.flw")
        time.sleep(0.02)


def change(server, session, **body):
    return server.request("PATCH", f"/api/sessions/{session}", body=body)


def ids(server, **parameters):
    return sorted(session["id"] for session in server.get("/api/sessions", **parameters)["sessions"])


def test_a_live_session_is_named_tagged_and_found(start):
    server = start.server("--tag", "lab=7", "--tag", "board=imx8 rev b")
    program = start.workload("shares", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    session = wait_until(lambda: server.sessions(), 20, "a session")[0]["id"]
    assert server.session(session)["tags"] == {"lab": "7", "board": "imx8 rev b"}
    with server.stream() as events:
        status, _, answer = change(server, session, name="  Before the Fix ", tags={"branch": "main", "lab": None}, keep=True)
        assert status == 200 and answer["state"] == "live"
        assert (answer["name"], answer["tags"], answer["keep"]) == ("Before the Fix", {"branch": "main", "board": "imx8 rev b"}, True)
        assert any(name == "sessions" for name, _ in events)
    for body, part in (({"name": "x" * 257}, "at most 256 bytes"), ({"tags": {"a b": "c"}}, "one word"), ({"tags": {f"k{i}": "v" for i in range(65)}}, "at most 64 tags"),
                       ({"nmae": "x"}, "not nmae"), ({"keep": "yes"}, "true or false")):
        status, _, answer = change(server, session, **body)
        assert status == 400 and part in answer["error"]["message"], answer
    assert change(server, "no-such", name="x")[0] == 404
    assert server.request("PATCH", f"/api/sessions/{session}", body={"name": "x"}, headers={"Origin": "http://elsewhere"})[0] == 403
    for words in ("before FIX", "branch=main", "board=imx8", "shares-workload cpu", session[4:]):
        assert ids(server, q=words) == [session], words
    for words in ("after", "lab=7", "branch=topic", "before after"):
        assert ids(server, q=words) == [], words
    # Exports contain the label.
    wait_until(lambda: server.session(session)["samples"] > 200, 20, "samples")
    assert agent.stop() == 0
    server.wait_ended(session)
    change(server, session, tags={"pid": "of mine"})
    profile = pprof.Profile(server.get(f"/api/export/session/{session}", format="pprof"))
    for _, _, labels in profile.samples:
        assert (labels["branch"], labels["board"], labels["tag:pid"], labels["pid"]) == ("main", "imx8 rev b", "of mine", program.pid)
    metadata = server.get(f"/api/export/session/{session}", format="json")["metadata"]
    assert metadata["name"] == "Before the Fix" and metadata["tags"] == {"branch": "main", "board": "imx8 rev b", "pid": "of mine"}
    meta = server.get(f"/api/export/session/{session}", format="firefox")["meta"]
    assert meta["product"] == "Before the Fix"
    assert [(entry["label"], entry["value"]) for entry in meta["extra"][0]["entries"]] == sorted(metadata["tags"].items())
    assert server.get(f"/api/export/session/{session}", format="speedscope")["name"] == "Before the Fix"
    # The label also survives a kill of the server.
    server.process.kill()
    server.process.wait()
    (server.data_dir / "sessions" / session / "session.json").unlink()
    again = start.server(name="again", data_dir=server.data_dir)
    kept = again.only_session()
    assert (kept["name"], kept["keep"], kept["tags"]) == ("Before the Fix", True, metadata["tags"])


def test_the_list_in_pages(start, recording, tmp_path):
    names = [f"s{number:03}" for number in range(25)]
    put(tmp_path / "data", recording, names)
    server = start.server()
    everything = server.get("/api/sessions")
    assert everything["total"] == 25 and [one["id"] for one in everything["sessions"]] == names[::-1]
    assert everything["size_bytes"] == 25 * os.stat(recording).st_size and everything["keep"] == {"count": 0, "days": 0, "size_bytes": 0}
    seen = []
    for offset in range(0, 30, 10):
        page = server.get("/api/sessions", offset=offset, limit=10)
        assert page["total"] == 25 and page["offset"] == offset
        seen += [one["id"] for one in page["sessions"]]
    assert seen == names[::-1]
    change(server, "s007", tags={"kind": "odd"})
    found = server.get("/api/sessions", q="KIND=odd", limit=1)
    assert found["total"] == 1 and found["sessions"][0]["id"] == "s007" and found["size_bytes"] == os.stat(recording).st_size


def deletions(server):
    return re.findall(r"session (\S+) deleted by (.*)", server.err)


def test_the_oldest_are_deleted_by_count_unless_pinned_or_in_use(start, recording, tmp_path):
    put(tmp_path / "data", recording, ["a", "b", "c", "d", "e", "f"])
    first = start.server()
    assert ids(first) == list("abcdef") and deletions(first) == []
    change(first, "a", keep=True)
    first.stop()
    server = start.server("--keep-count", "3", name="keeping")
    wait_until(lambda: len(ids(server)) == 4, 20, "the oldest to go")
    assert ids(server) == ["a", "d", "e", "f"]
    assert [name for name, _ in deletions(server)] == ["b", "c"] and "--keep-count 3: it was the oldest of 5" in server.err
    assert server.get("/api/sessions")["keep"] == {"count": 3, "days": 0, "size_bytes": 0}
    assert sorted(path.name for path in (tmp_path / "data" / "sessions").glob("*.flw")) == ["a.flw", "d.flw", "e.flw", "f.flw"]
    # The oldest session is in use, so the next one is deleted when another recording ends.
    server.get("/api/flamegraph", session="d")
    assert start.agent("--server", "127.0.0.1", "--port", server.port, "--", TESTS_BIN / "lines-workload", "1").wait(60) == 0
    wait_until(lambda: len(ids(server)) == 4 and "e" not in ids(server), 30, "one more to go")
    assert ids(server)[1:] == ["a", "d", "f"]


def test_no_rule_deletes_a_live_session(start, recording, tmp_path):
    put(tmp_path / "data", recording, ["a", "b"])
    server = start.server("--keep-count", "1", "--keep-size", "1K")
    program = start.workload("shares", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    wait_until(lambda: len(ids(server)) == 1 and server.get("/api/status")["live_sessions"], 40, "only what is live")
    assert {name for name, _ in deletions(server)} == {"a", "b"}
    # Its final size exceeds the limit, but it stays because it is the newest.
    session = server.only_session()["id"]
    wait_until(lambda: server.session(session)["size_bytes"] > 2048, 30, "2 KiB")
    assert agent.stop() == 0
    server.wait_ended(session)
    time.sleep(11)
    assert ids(server) == [session]


def test_old_and_large_sessions_are_deleted(start, recording, tmp_path):
    size = os.stat(recording).st_size
    put(tmp_path / "data", recording, ["a", "b", "c", "d"])
    server = start.server("--keep-size", str(2 * size + 1))
    wait_until(lambda: ids(server) == ["c", "d"], 20, "the oldest to go")
    assert "--keep-size" in server.err
    for wrong, part in (("--keep-size", "a number followed by K, M, G or T"), ("--keep-count", "--keep-count"), ("--keep-days", "--keep-days"), ("--tag", "KEY=VALUE")):
        process = start.process("wrong", [BIN / "flamewire-server", wrong, "much"])
        assert process.wait() == 2 and part in process.err, process.err


def batches_until(data, size):
    """The number of complete batch frames in the first `size` bytes (docs/wire/session-file.md)."""
    count, at = 0, 12
    while at + 13 <= size:
        length, flag = struct.unpack(">IB", data[at + 8:at + 13])
        at += 13 + length
        if at <= size and flag in (5, 6):
            count += 1
    return count


def test_a_file_cut_at_any_byte_of_its_last_4_kib(start, recording, tmp_path):
    """A real recording, cut at 4,097 places, each a session: it opens and has all complete batches."""
    data = recording.read_bytes()
    folder = tmp_path / "data" / "sessions"
    folder.mkdir(parents=True)
    shortest = max(12, len(data) - 4096)
    for size in range(shortest, len(data) + 1):
        (folder / f"cut{size}.flw").write_bytes(data[:size])
    server = start.server()

    def read():
        answer = {}
        for offset in range(0, len(data) + 1 - shortest, 1000):
            page = server.request("GET", "/api/sessions", check=False, offset=offset, limit=1000)[2]
            answer.update((one["id"], one) for one in page["sessions"])
        return answer

    # A list request reads new files for at most 1.5 s. Sessions that it has not read yet have no batches.
    expected = {f"cut{size}": batches_until(data, size) for size in range(shortest, len(data) + 1)}
    with contextlib.suppress(AssertionError):
        wait_until(lambda: {name: one["batches"] for name, one in read().items()} == expected, 60, "all to be read")
    sessions = read()
    samples = {}
    for size in range(shortest, len(data) + 1):
        session = sessions[f"cut{size}"]
        assert session["batches"] == expected[f"cut{size}"], size
        assert not any(notice["code"] in ("stream-unreadable", "stream-damaged", "batch-unreadable") for notice in session["notices"]), (size, session["notices"])
        assert samples.setdefault(session["batches"], session["samples"]) == session["samples"]
    assert sessions[f"cut{len(data)}"]["samples"] == max(samples.values()) > 100
