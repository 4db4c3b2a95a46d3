"""perf.data files as sessions. perf's recordings are imported, and every function has the samples that `perf script` reports. Damaged and foreign
files open with their intact part and a notice. Without perf and without the corpus, only the second half runs."""

import collections
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from flamewire import PATIENCE, TESTS_BIN, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", ROOT.parent / "shared" / "corpus"))
PERF = shutil.which("perf")


def imported(start, *files, arguments=()):
    """Returns the server, and the sessions in the order of the files."""
    server = start.server(*arguments, *(word for file in files for word in ("--import", file)))

    def ended():
        imports = server.get("/api/imports")["imports"]
        return len(imports) == len(files) and all(one["state"] != "running" for one in imports) and imports

    imports = wait_until(ended, 120, "the end of all imports")
    assert all(one["state"] == "done" for one in imports), imports
    sessions = {one["id"]: one for one in server.sessions()}
    return server, [sessions[one["session"]] for one in reversed(imports)]


def folded(server, session):
    """[(frames outermost first, samples)]"""
    status, _, text = server.request("GET", f"/api/export/session/{session['id']}", format="collapsed")
    assert status == 200
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in text.decode().splitlines()]


def bare(name):
    return re.sub(r"\(anonymous namespace\)::", "", name).split("(")[0].split("@")[0]


def of_perf(data):
    """From perf: the number of samples, function -> samples with it anywhere, and samples whose stack does not reach a program's entry."""
    command = [PERF, "script", "--no-inline", "-i", data, "-F", "ip,sym"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    samples = [block.splitlines() for block in text.strip().split("\n\n")]
    totals, broken = collections.Counter(), 0
    for lines in samples:
        names = [bare(line.split(None, 1)[1]) for line in lines if len(line.split(None, 1)) == 2]
        totals.update(set(names))
        broken += not names or names[-1] not in ("_start", "_dl_start_user")
    return len(samples), totals, broken


@pytest.mark.skipif(PERF is None, reason="perf is not installed: nothing was recorded")
def test_functions_have_the_samples_of_perf_script(start, tmp_path):
    workload = [TESTS_BIN / "shares-workload", "1"]
    files = {"chains": ["-g"], "stacks": ["--call-graph", "dwarf,8192"], "packed": ["-g", "-z"], "stream": ["-g"]}
    for name, options in files.items():
        command = [PERF, "record", "-q", "-e", "cpu-clock:u", "-F", "499", *options, "-o", "-" if name == "stream" else tmp_path / name, "--"]
        # In a stream, the program's output would be mixed with the records.
        quiet = ["sh", "-c", 'exec "$0" "$@" >/dev/null', *workload]
        with (tmp_path / f"{name}.out").open("wb") as out:
            subprocess.run([*command, *quiet], check=True, stdout=out, timeout=120)
    (tmp_path / "stream.out").rename(tmp_path / "stream")
    server, sessions = imported(start, *(tmp_path / name for name in files))
    for name, session in zip(files, sessions):
        number, theirs, broken = of_perf(tmp_path / name)
        assert session["samples"] == number, (name, session)
        assert "perf record" in session["target"] and session["frequency_hz"] == 499 and session["host"] == os.uname().nodename
        assert [event["name"] for event in session["events"]] == ["cpu-clock"], session["events"]
        ours = collections.Counter()
        for frames, count in folded(server, session):
            for function in {bare(frame) for frame in frames}:
                ours[function] += count
        for function in ("burn_10", "burn_20", "burn_30", "burn_40", "round_of_work", "main"):
            # A stack copy that perf cannot unwind to its end may have more functions here. oracle_unwind_replay compares such stacks with gdb.
            more = broken if name == "stacks" else 0
            assert 0 < theirs[function] <= ours[function] <= theirs[function] + more, (name, function, ours[function], theirs[function], broken)
        # The weights are nanoseconds: the sum of the samples' periods.
        weight = server.get("/api/functions", session=session["id"], limit=1)["total"]["weight"]
        assert weight == pytest.approx(number * 1e9 / 499, rel=0.001)


# Code that is generated at run time: two functions that count down, each at its own address and called in turn, and their perf map. The second
# address had another function before, and a third function has no line.
JIT = """
import ctypes, mmap, os, sys, time
def place(count):
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # mov ecx, count; dec ecx; jnz; ret
    memory.write(b"\\xb9" + count.to_bytes(4, "little") + b"\\xff\\xc9\\x75\\xfc\\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, address, ctypes.CFUNCTYPE(None)(address)
long, short, nameless = place(3_000_000), place(1_000_000), place(1_000_000)
with open(f"/tmp/perf-{os.getpid()}.map", "w") as out:
    out.write(f"{long[1]:x} 20 jit::long_loop(int)\\n{short[1]:x} 20 before\\n{short[1]:x} 20 Jit.shortLoop\\n")
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for one in (long, short, nameless):
        one[2]()
"""


@pytest.mark.skipif(PERF is None or os.uname().machine != "x86_64", reason="perf is not installed, or another architecture: nothing was recorded")
def test_jit_code_has_the_names_of_its_perf_map(start, tmp_path):
    program = tmp_path / "jit.py"
    program.write_text(JIT)
    data = tmp_path / "jit.data"
    subprocess.run([PERF, "record", "-q", "-F", "999", "-e", "cpu-clock:u", "-g", "-o", data, "--", "/usr/bin/python3", program, "2"], check=True, timeout=60)
    number, totals, _ = of_perf(data)
    pid = int(subprocess.run([PERF, "script", "-i", data, "-F", "pid"], check=True, capture_output=True, text=True, timeout=60).stdout.split()[0])
    written = pathlib.Path(f"/tmp/perf-{pid}.map")
    try:
        assert totals["jit::long_loop"] > number * 0.4 and totals["Jit.shortLoop"] > number * 0.1 and "before" not in totals
        server, (session,) = imported(start, data)
        functions = {one["name"]: one for one in server.get("/api/functions", session=session["id"], limit=10000)["functions"]}
        assert functions["jit::long_loop(int)"]["kind"] == functions["Jit.shortLoop"]["kind"] == "jit"
        found = collections.Counter()
        for frames, samples in folded(server, session):
            for name in {bare(frame) for frame in frames}:
                found[name] += samples
        assert {name: found[name] for name in ("jit::long_loop", "Jit.shortLoop", "before")} == {name: totals[name] for name in ("jit::long_loop", "Jit.shortLoop", "before")}
        # A function without a line in the map appears by its address.
        assert sum(samples for frames, samples in folded(server, session) if frames[-1].startswith("[jit+0x")) > number * 0.1
        notices = {one["code"]: one["text"] for one in server.session(session["id"])["notices"]}
        assert str(written) in notices["import-perf-maps"] and "import-no-perf-maps" not in notices
        # For another machine's file, or without the map, no names are guessed. A sysroot has the target's map.
        root = tmp_path / "root"
        (root / "tmp").mkdir(parents=True)
        shutil.move(written, root / "tmp" / written.name)
        server.stop()
        for arguments, named in (((), False), (("--sysroot", root), True)):
            other = start.server(*arguments, "--import", data, name=f"server-{named}", data_dir=tmp_path / f"data-{named}")
            wait_until(lambda: [one for one in other.get("/api/imports")["imports"] if one["state"] == "done"], 60, "the import")
            again = other.sessions()[0]
            notices = {one["code"]: one for one in other.session(again["id"])["notices"]}
            assert any("Jit.shortLoop" in frames for frames, _ in folded(other, again)) == named
            assert ("import-perf-maps" in notices) == named
            if not named:
                assert f"{pid} (python3)" in notices["import-no-perf-maps"]["text"] and "--sysroot" in notices["import-no-perf-maps"]["remedy"]
            other.stop()
    finally:
        written.unlink(missing_ok=True)


def without_event_names(stream):
    """A perf.data stream as older versions of perf wrote it: names of tracepoints are only in the kernel's descriptions of them."""
    tracing_data, event_update, feature = 66, 78, 80
    kept, at = bytearray(stream[:16]), 16
    while at < len(stream):
        kind, _, size = struct.unpack_from("<IHH", stream, at)
        if kind == tracing_data:
            size += struct.unpack_from("<I", stream, at + 8)[0] + 7 & ~7
        if kind not in (event_update, feature):
            kept += stream[at:at + size]
        at += size
    return bytes(kept)


@pytest.mark.skipif(PERF is None or os.geteuid() != 0, reason="perf is not installed, or tracepoints need root: nothing was recorded")
def test_tracepoints_of_old_streams_have_names(start, tmp_path):
    command = 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@" -o - sleep 0.3'
    recorded = subprocess.run(["unshare", "-m", "sh", "-c", command, "sh", PERF, "record", "-q", "-a", "-e", "sched:sched_switch",
                               "-e", "sched:sched_wakeup"], check=True, stdout=subprocess.PIPE, timeout=60 * PATIENCE).stdout
    old = tmp_path / "old.data"
    old.write_bytes(without_event_names(recorded))
    text = subprocess.run([PERF, "script", "-i", old, "-F", "event"], check=True, capture_output=True, text=True, timeout=60 * PATIENCE).stdout
    expected = collections.Counter(line.strip().rstrip(":") for line in text.split())
    assert len(expected) == 2, text
    server, [session] = imported(start, old)
    assert {one["name"]: one["samples"] for one in session["events"]} == expected


@pytest.mark.skipif(not CORPUS.exists(), reason=f"{CORPUS} is absent: nothing was compared")
def test_copied_stacks_of_another_machine(start):
    """A static program that another tool unwound and symbolized: with the program file, the functions are the same."""
    folder = CORPUS / "plain" / "kdab"
    server, [session] = imported(start, folder / "vector_static_gcc__perf.data", arguments=("--binary", folder / "vector_static_gcc__vector_static_gcc_v9.1.0"))
    text = (folder / "vector_static_gcc__perf.data.expected.txt").read_text()
    samples = re.split(r"\n\n(?=\S)", text)
    assert session["samples"] == len(samples) == 45
    stacks = folded(server, session)
    for function in ("main", "__libc_start_main", "_start"):
        theirs = sum(re.search(rf"\t{function} vector_static", sample) is not None for sample in samples)
        ours = sum(count for frames, count in stacks if function in map(bare, frames))
        assert ours == theirs > 20, (function, ours, theirs)
    assert session["unwind"] == "dwarf" and session["host"] == "agathebauer" and session["kernel_release"] == "5.3.0-arch1-1-ARCH"
    # The recording's kernel is another one, so no names may come from the running kernel.
    assert not any(frame.startswith("do_syscall") for frames, _ in stacks for frame in frames)
    assert any(frame.startswith("[kernel+0x") for frames, _ in stacks for frame in frames)


@pytest.mark.skipif(not CORPUS.exists(), reason=f"{CORPUS} is absent: nothing was compared")
def test_branch_record_stacks_of_another_machine(start):
    """The same program recorded with --call-graph lbr."""
    folder = CORPUS / "plain" / "kdab"
    server, [session] = imported(start, folder / "vector_static_gcc__perf.lbr.data", arguments=("--binary", folder / "vector_static_gcc__vector_static_gcc_v9.1.0"))
    samples = re.split(r"\n\n(?=\S)", (folder / "vector_static_gcc__perf.lbr.data.expected.txt").read_text())
    assert session["samples"] == len(samples) == 29 and session["unwind"] == "lbr"
    stacks = folded(server, session)
    for function in ("main", "__libc_start_main"):
        theirs = sum(re.search(rf"\t{function} vector_static", sample) is not None for sample in samples)
        ours = sum(count for frames, count in stacks if function in map(bare, frames))
        assert ours == theirs > 10, (function, ours, theirs)


@pytest.mark.skipif(not CORPUS.exists(), reason=f"{CORPUS} is absent: nothing was compared")
def test_truncated_files_are_reported(start, tmp_path):
    whole = (CORPUS / "google+perf_data_converter/src/quipper/testdata/perf.data.callgraph-3.8").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    # The file of a killed perf: the size of the data is missing, and nothing follows the data.
    (tmp_path / "killed").write_bytes(whole[:48] + bytes(8) + whole[56 : len(whole) // 2])
    server, [cut, killed] = imported(start, tmp_path / "cut", tmp_path / "killed")
    assert 0 < cut["samples"] == killed["samples"] < 1768
    assert "import-damaged" in [notice["code"] for notice in cut["notices"]]
    assert {"import-damaged", "import-unfinished"} <= {notice["code"] for notice in killed["notices"]}
