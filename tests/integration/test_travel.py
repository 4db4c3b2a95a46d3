"""Sessions that travel: what a session keeps beside its stream opens on another machine as it was."""
import shutil
import subprocess

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

# Another machine: none of this one's programs, nor its kernel's names.
ELSEWHERE = ("unshare", "-m", "sh", "-c", 'mount --bind /dev/null /proc/kallsyms && exec "$0" "$@"')


@pytest.fixture
def recorded(start, tmp_path):
    """(server, id) of a session that has ended, of a program that is gone, with its source."""
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
    wait_until(lambda: server.only_session()["state"] == "ended", 20, "the end")
    return server, server.only_session()["id"]


def shown(server, session):
    """All that names and lines say: every frame of the tree by line, and the table of functions (whose line is the first that came)."""
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

    # protoc reads it by the schema; no field is unknown to it.
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

    # Without that file there is nothing to go by; and a damaged one is said, and harms nothing.
    kept = directory(other, session) / "symbols.pb.zst"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:len(whole) // 2])
    damaged = elsewhere(start, tmp_path, name="damaged")
    shutil.copytree(directory(other, session), directory(damaged, session))
    assert not {"work::outer(unsigned long)", "main"} & set(shown(damaged, session)[0]["names"])
    assert modules(damaged, session)["program"]["state"] == "not_found"
    assert any(notice["code"] == "kept-symbols" for notice in damaged.session(session)["notices"])


def test_better_names_than_the_kept_ones_win(start, recorded, tmp_path):
    """A stripped file here does not take the lines away; the program itself, found again, is what is used."""
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
