"""Sessions that move between machines: with the data stored next to its stream, a session opens unchanged on another machine."""
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
from datetime import datetime

import pytest
from flamewire import BIN, ROOT, wait_until

SOURCE = """#include <fcntl.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((always_inline)) static inline unsigned long inner(unsigned long x) {
    for (int i = 0; i < 20000; ++i) x = (x ^ (x >> 17)) * 0x9E3779B97F4A7C15UL;  // HOT
    return x;
}
namespace work {
__attribute__((noinline)) void outer(unsigned long x) { sink = sink + inner(x); }
__attribute__((noinline)) void reader(int file) {
    static char block[1 << 16];
    for (int i = 0; i < 40; ++i) if (read(file, block, sizeof block) < 0) return;
}
}
int main() {
    const int file = open("/dev/zero", O_RDONLY);
    for (;;) { work::outer(sink); work::reader(file); }
}
"""

# Simulates another machine, without this one's programs and without its kernel symbols.
ELSEWHERE = ("unshare", "-m", "sh", "-c", 'mount --bind /dev/null /proc/kallsyms && exec "$0" "$@"')


@pytest.fixture
def recorded(start, tmp_path):
    """(server, id) of a session that has ended, of a deleted program, with its source."""
    place = tmp_path / "target"
    place.mkdir()
    source, program = place / "program.cc", place / "program"
    source.write_text(SOURCE)
    subprocess.run(["g++", "-O2", "-g", "-fno-omit-frame-pointer", "-o", program, source], check=True)
    server = start.server("--source-dir", place)
    running = start.process("program", [program])
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", running.pid, "--frequency", 997)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 2000, 30, "samples")
    assert agent.stop() == 0
    server.wait_ended()
    return server, server.only_session()["id"]


def shown(server, session):
    """All names and lines: every frame of the tree by line, and the table of functions, without their lines (which are those of their first samples)."""
    tree = server.get("/api/flamegraph", session=session, merge="line", min_share=0)
    functions = sorted(({**row, "line": 0} for row in server.get("/api/functions", session=session)["functions"]), key=lambda row: (row["name"], row["module"], row["kind"]))
    return {key: tree[key] for key in ("names", "modules", "files", "nodes", "total")}, functions


def modules(server, session):
    return {row["module"]["name"]: row["module"] for row in server.get("/api/modules", session=session)["modules"]}


def directory(server, session):
    return server.data_dir / "sessions" / session


def elsewhere(start, tmp_path, *arguments, name="elsewhere"):
    (tmp_path / "empty").mkdir(exist_ok=True)
    return start.server("--source-dir", tmp_path / "empty", *arguments, name=name, data_dir=tmp_path / name, program=(*ELSEWHERE, BIN / "flamewire-server"))


def test_names_are_kept_with_the_session(start, recorded, tmp_path):
    server, session = recorded
    before, before_modules = shown(server, session), modules(server, session)
    names = set(before[0]["names"])
    assert {"work::outer(unsigned long)", "inner", "work::reader(int)", "main"} <= names, sorted(names)
    kernel = {row["name"] for row in before[1] if row["kind"] == "kernel"}
    assert len(kernel) > 5 and "vfs_read" in kernel, kernel
    assert before_modules["program"]["state"] == "debug_info"
    server.stop()
    kept = directory(server, session) / "symbols.pb.zst"
    assert kept.stat().st_size < 100_000

    # protoc decodes the file by its schema and finds no unknown field.
    message = subprocess.run(["zstd", "-dc", kept], check=True, capture_output=True).stdout
    text = subprocess.run(["protoc", "--decode=flamewire.v1.KeptSymbols", "-I", ROOT / "docs", ROOT / "docs" / "kept.proto"], input=message, check=True, capture_output=True).stdout.decode()
    assert "work::outer(unsigned long)" in text and "quality: DEBUG_INFO" in text
    assert not [line for line in text.splitlines() if line.strip()[:1].isdigit()]

    shutil.move(tmp_path / "target", tmp_path / "hidden")
    other = elsewhere(start, tmp_path)
    shutil.copytree(directory(server, session), directory(other, session))
    after, after_modules = shown(other, session), modules(other, session)
    assert after == before
    module = after_modules["program"]
    assert (module["state"], module["quality"], module["file"]) == ("kept", "debug_info", str(tmp_path / "target" / "program")), module
    assert module["tried"] and after_modules["[kernel]"]["state"] == "kept"
    assert after_modules["[kernel]"]["file"] == "/proc/kallsyms"
    other.stop()

    # Without that file there are no names. A damaged one is reported and does no harm.
    kept = directory(other, session) / "symbols.pb.zst"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:len(whole) // 2])
    damaged = elsewhere(start, tmp_path, name="damaged")
    shutil.copytree(directory(other, session), directory(damaged, session))
    assert not {"work::outer(unsigned long)", "main"} & set(shown(damaged, session)[0]["names"])
    assert modules(damaged, session)["program"]["state"] == "not_found"
    assert any(notice["code"] == "kept-symbols" for notice in damaged.session(session)["notices"])


def import_file(server, path, name="session.flamewire", state="done"):
    content = path.read_bytes()
    identifier = f"travel-{abs(hash((str(path), content))):x}"
    for offset in range(0, len(content), 1 << 20):
        assert server.request("PUT", f"/api/uploads/{identifier}", body=content[offset:offset + (1 << 20)], offset=offset, size=len(content))[0] == 200
    begun = server.post("/api/imports", {"upload": identifier, "name": name})["id"]
    ended = wait_until(lambda: next((it for it in server.get("/api/imports")["imports"] if it["id"] == begun and it["state"] != "running"), None), 30, "the import")
    assert ended["state"] == state, ended
    return ended["session"] if state == "done" else ended["problem"]


def archive_of(server, session, path, **parameters):
    status, kind, body = server.request("GET", f"/api/export/session/{session}", format="flamewire", **parameters)
    assert (status, kind) == (200, "application/zstd")
    path.write_bytes(body)
    return path


def test_an_archive_opens_as_it_was(start, recorded, tmp_path):
    server, session = recorded
    before = shown(server, session)
    file = next(row["file"] for row in server.get("/api/source-files", session=session)["files"] if row["file"].endswith("program.cc"))
    lines = server.get("/api/source", session=session, file=file)["lines"]
    small = archive_of(server, session, tmp_path / "small.flamewire")
    archive = archive_of(server, session, tmp_path / "whole.flamewire", sources=1)
    listed = subprocess.run(["tar", "--zstd", "-tf", archive], check=True, capture_output=True, text=True).stdout.split()
    assert listed == [f"{session}/stream.flw", f"{session}/symbols.pb.zst", f"{session}/sources.pb.zst"]
    assert subprocess.run(["tar", "--zstd", "-xOf", archive, listed[0]], check=True, capture_output=True).stdout == (directory(server, session) / "stream.flw").read_bytes()
    message = subprocess.run(["zstd", "-dc", directory(server, session) / "sources.pb.zst"], check=True, capture_output=True).stdout
    text = subprocess.run(["protoc", "--decode=flamewire.v1.KeptSources", "-I", ROOT / "docs", ROOT / "docs" / "kept.proto"], input=message, check=True, capture_output=True).stdout.decode()
    assert f'name: "{file}"' in text and "// HOT" in text
    # An archive can be imported where it came from, as another session.
    again = import_file(server, archive)
    assert again == session + "_2" and shown(server, again) == before
    server.stop()

    shutil.move(tmp_path / "target", tmp_path / "hidden")
    other = elsewhere(start, tmp_path)
    assert import_file(other, archive, "whatever.bin") == session
    assert shown(other, session) == before
    assert modules(other, session)["program"]["state"] == "kept"
    source = other.get("/api/source", session=session, file=file)
    assert source["lines"] == lines and source["resolved"] == file and "kept with the session" in source["note"], source["note"]
    assert next(line for line in source["lines"] if line["line"] == source["hottest"])["source"].endswith("// HOT")
    # Store the sources again: sources that no longer exist here stay stored.
    kept = other.post(f"/api/sessions/{session}/sources")
    assert kept["files"] == 1 and kept["bytes"] == len(SOURCE) and file not in kept["not_found"], kept
    assert other.get("/api/source", session=session, file=file)["lines"] == lines
    without = import_file(other, small, "small.flamewire")
    assert without == session + "_2" and other.request("GET", "/api/source", session=without, file=file)[0] == 404
    # The session is listed after a restart, and deleted without remains.
    assert {it["id"] for it in other.sessions()} == {session, without}
    assert other.request("DELETE", f"/api/sessions/{session}")[0] == 200 and not directory(other, session).exists()
    assert not list(other.data_dir.glob("arriving-*"))
    assert other.request("GET", "/api/export/session/none", format="flamewire")[0] == 404
    assert other.request("GET", f"/api/export/session/{without}", format="flamewire", sources="yes")[0] == 400


def test_hostile_archives_are_refused_or_harmless(start, recorded, tmp_path):
    """Archives made by Python's tarfile: whatever names and types they contain, only a session's own files are written."""
    server, session = recorded
    stream = (directory(server, session) / "stream.flw").read_bytes()
    outside = tmp_path / "outside"
    outside.write_text("untouched")

    def entry(name, content=b"", **attributes):
        info = tarfile.TarInfo(name)
        info.size = len(content)
        for key, value in attributes.items():
            setattr(info, key, value)
        return info, content

    def packed(*entries, cut=None):
        plain = tmp_path / "hostile.tar"
        with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as tar:
            for info, content in entries:
                tar.addfile(info, io.BytesIO(content))
        if cut:
            plain.write_bytes(plain.read_bytes()[:cut])
        path = tmp_path / "hostile.flamewire"
        path.write_bytes(subprocess.run(["zstd", "-c", plain], check=True, capture_output=True).stdout)
        return path

    good = entry("x/stream.flw", stream)
    before = {path for path in tmp_path.rglob("*") if "data" not in path.parts}
    for entries, words in (
            ([entry("x/stream.flw", type=tarfile.SYMTYPE, linkname=str(outside))], "not a regular file"),
            ([entry("x/stream.flw", type=tarfile.LNKTYPE, linkname="/etc/passwd")], "not a regular file"),
            ([good, entry("x/symbols.pb.zst", type=tarfile.SYMTYPE, linkname=str(outside))], "not a regular file"),
            ([good, entry("y/stream.flw", stream)], "one session at a time"),
            ([entry("x/readme", b"hello")], "no stream.flw"),
            ([entry("x/stream.flw", b"no session at all")], "session"),
            ([good, entry("x/label.json", bytes(2 << 20))], "larger than any"),
            ([good] + [entry(f"x/{i}") for i in range(1200)], "more files")):
        problem = import_file(server, packed(*entries), state="failed")
        assert words in problem, (words, problem)
    for cut in (600, len(stream) // 2, len(stream) + 511):
        assert "cut off" in import_file(server, packed(good, cut=cut), state="failed")
    whole = packed(good)
    whole.write_bytes(whole.read_bytes()[:-100])
    assert "cut off" in import_file(server, whole, state="failed")
    # Names that point elsewhere do not match a session's file, or only their last component counts.
    for number, name in enumerate(("../../../stream.flw", "/etc/stream.flw", ".hidden/stream.flw", "a b;c/stream.flw", "x" * 300 + "/stream.flw")):
        imported = import_file(server, packed(entry("../../outside", b"written"), entry(name, stream), entry("/" + str(outside), b"written"), entry("x/.ssh/authorized_keys", b"k")), f"n{number}.flamewire")
        assert (directory(server, imported) / "stream.flw").read_bytes() == stream
        assert "/" not in imported and not imported.startswith("."), imported
        # The server adds its label, the marker of an import, and the symbols that it finds.
        assert {path.name for path in directory(server, imported).iterdir()} <= {"stream.flw", "imported", "session.json", "symbols.pb.zst"}
    assert outside.read_text() == "untouched"
    assert {path for path in tmp_path.rglob("*") if "data" not in path.parts} - before <= {tmp_path / "hostile.tar", tmp_path / "hostile.flamewire"}
    assert not list(server.data_dir.glob("arriving-*"))
    # Sparse regions cost an archive nothing: 3 GiB of them must not be written.
    holes = tmp_path / "holes" / "x" / "stream.flw"
    holes.parent.mkdir(parents=True)
    holes.write_bytes(stream)
    os.truncate(holes, 3 << 30)
    for form in ("--format=gnu", "--format=posix --sparse-version=0.0", "--format=posix --sparse-version=0.1", "--format=posix --sparse-version=1.0"):
        sparse = tmp_path / "sparse.tar"
        subprocess.run(["tar", "--sparse", *form.split(), "-C", holes.parent.parent, "-cf", sparse, "x/stream.flw"], check=True)
        assert sparse.stat().st_size < len(stream) + 20_000
        assert "stream.flw is a sparse file" in import_file(server, sparse, state="failed"), form
    assert not list(server.data_dir.glob("arriving-*"))
    holes.unlink()
    # The archive contains only zeros and would grow a thousandfold or more.
    bomb = tmp_path / "bomb"
    subprocess.run(f"(head -c 512 {tmp_path / 'hostile.tar'}; head -c 300000000 /dev/zero) | zstd -19 --long=27 -qc > {bomb}", shell=True, check=True)
    assert "times its size" in import_file(server, bomb, state="failed")
    # A hundredfold growth is refused too, for gzip and zstd.
    subprocess.run(f"(head -c 512 {tmp_path / 'hostile.tar'}; head -c 2000000 /dev/urandom; head -c 200000000 /dev/zero) > {tmp_path / 'grows'}", shell=True, check=True)
    for command in (f"gzip -c {tmp_path / 'grows'} > {bomb}", f"zstd -qc {tmp_path / 'grows'} > {bomb}"):
        subprocess.run(command, shell=True, check=True)
        assert 60 < (tmp_path / "grows").stat().st_size / bomb.stat().st_size < 110
        problem = import_file(server, bomb, state="failed")
        assert re.search(r"unpacks to more than 1\d\d MiB: beyond 64 MiB, at most 64 times its size", problem), problem
    (tmp_path / "grows").unlink()


def heat(server, session, **parameters):
    """Samples and weight of each function with its module and kind, in any order."""
    rows = server.get("/api/functions", session=session, **parameters)["functions"]
    return {(row["name"], row["module"], row["kind"]): (row["self_samples"], row["self"], row["total_samples"], row["total"]) for row in rows}


def test_a_window_becomes_a_session(start, recorded, tmp_path):
    """The new session shows the same as the original with that window as its filter, also where the program is absent."""
    server, session = recorded
    whole = server.session(session)
    begin, end = 500, 1500
    cut = server.post(f"/api/sessions/{session}/cut", {"start": begin, "end": end})["session"]
    assert cut != session
    made = server.session(cut)
    expected = server.get("/api/functions", session=session, start=begin, end=end)["total"]
    assert 0 < made["samples"] == expected["samples"] < whole["samples"]
    assert heat(server, cut) == heat(server, session, start=begin, end=end)
    assert abs(made["duration_ms"] - (end - begin)) < 20, made["duration_ms"]
    assert made["state"] == "ended" and made["host"] == whole["host"] and made["target"] == whole["target"] and made["pids"] == whole["pids"]
    assert made["size_bytes"] < whole["size_bytes"]
    assert any(notice["code"] == "cut" and session in notice["text"] for notice in made["notices"])
    assert sum(server.get("/api/timeline", session=cut, slices=10)["samples"]) == made["samples"]
    # Unwind totals cover only the window, not the recording since its beginning.
    assert 0 < made["unwind_totals"]["samples"] < whole["unwind_totals"]["samples"]
    # All windows together have the samples of the original.
    parts = [server.post(f"/api/sessions/{session}/cut", {"start": a, "end": b})["session"] for a, b in ((0, begin), (end, 1e9))]
    assert sum(server.session(part)["samples"] for part in (*parts, cut)) == whole["samples"]
    assert abs(sum(server.session(part)["duration_ms"] for part in (*parts, cut)) - whole["duration_ms"]) < 60
    for body, status in (({"start": 5, "end": 5}, 400), ({"start": -1, "end": 5}, 400), ({"end": 5}, 400), ({"start": 1e8, "end": 1e9}, 404)):
        assert server.request("POST", f"/api/sessions/{session}/cut", body=body)[0] == status, body
    assert len(server.sessions()) == 4
    names = shown(server, cut)
    server.stop()
    shutil.move(tmp_path / "target", tmp_path / "hidden")
    other = elsewhere(start, tmp_path)
    shutil.copytree(directory(server, cut), directory(other, cut))
    assert shown(other, cut) == names


def test_sessions_of_two_machines_become_one(start, recorded, tmp_path):
    """The other machine's session is this one's with another boot id and host, written by Python."""
    server, session = recorded
    whole = server.session(session)
    stranger = directory(server, "stranger")
    stranger.mkdir()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
    raw = (directory(server, session) / "stream.flw").read_bytes()
    out, at, changed = bytearray(raw[:12]), 12, 0
    while at < len(raw):
        arrival, size, flag = raw[at:at + 8], int.from_bytes(raw[at + 8:at + 12], "big"), raw[at + 12]
        payload = raw[at + 13:at + 13 + size]
        at += 13 + size
        if flag == 6:
            payload, flag = subprocess.run(["zstd", "-dc"], input=payload, check=True, capture_output=True).stdout, 5
        changed += payload.count(boot)
        payload = payload.replace(boot, b"f" * len(boot))
        out += arrival + len(payload).to_bytes(4, "big") + bytes([flag]) + payload
    assert changed
    (stranger / "stream.flw").write_bytes(out)
    merged = server.post("/api/sessions/merge", {"sessions": [session, "stranger"], "name": "both"})["session"]
    made = server.session(merged)
    assert made["samples"] == 2 * whole["samples"] and made["target"] == "both"
    # Only identical items are added up: functions have twice the samples, while processes and threads stay separate.
    single, double = heat(server, session), heat(server, merged)
    user = {key: value for key, value in single.items() if key[1] == "program"}
    assert user and all(double[key] == tuple(2 * number for number in value) for key, value in user.items())
    threads = server.get("/api/thread-summary", session=merged)["threads"]
    assert len(threads) == 2 * len(server.get("/api/thread-summary", session=session)["threads"])
    assert abs(made["duration_ms"] - whole["duration_ms"]) < 50
    assert abs(datetime.fromisoformat(made["started"].replace("Z", "+00:00")).timestamp() - datetime.fromisoformat(whole["started"].replace("Z", "+00:00")).timestamp()) < 0.05
    notice = next(notice for notice in made["notices"] if notice["code"] == "merged")
    assert session in notice["text"] and "stranger" in notice["text"]
    # Sessions of different times keep their own times.
    later = server.post("/api/sessions/merge", {"sessions": [server.post(f"/api/sessions/{session}/cut", {"start": a, "end": b})["session"] for a, b in ((1000, 1e9), (0, 500))]})["session"]
    slices = server.get("/api/timeline", session=later, slices=20, start=0, end=2000)["samples"]
    assert sum(slices[5:10]) <= 0.1 * sum(slices) and sum(slices[:5]) > 0 and sum(slices[10:]) > 0, slices
    for body, status in (({"sessions": [session]}, 400), ({"sessions": [session, session]}, 400), ({"sessions": [session, "none"]}, 404), ({}, 400)):
        assert server.request("POST", "/api/sessions/merge", body=body)[0] == status, body


def test_better_names_replace_stored_ones(start, recorded, tmp_path):
    """A stripped file does not remove the lines. If the original program is found again, it is used."""
    server, session = recorded
    before = shown(server, session)
    server.stop()
    hidden = tmp_path / "hidden"
    shutil.move(tmp_path / "target", hidden)
    (tmp_path / "target").mkdir()
    subprocess.run(["strip", "-o", tmp_path / "target" / "program", hidden / "program"], check=True)
    other = elsewhere(start, tmp_path)
    shutil.copytree(directory(server, session), directory(other, session))
    assert shown(other, session) == before
    assert modules(other, session)["program"]["state"] == "kept"
    shutil.copy(hidden / "program", tmp_path / "target" / "program")
    assert other.request("PATCH", "/api/config", body={"source_dir": str(hidden)})[0] == 200
    wait_until(lambda: modules(other, session)["program"]["state"] == "debug_info", 20, "the program's own names")
    assert shown(other, session) == before
