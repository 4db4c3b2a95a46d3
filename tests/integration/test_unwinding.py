"""Call stacks of live recordings, from the agent to the server's names: a program whose files change while it runs, a stripped program, and a 32-bit
program. tests/captures/test_unwinding_scenes.py checks all other call paths on captures."""
import errno
import os
import re
import shutil
import subprocess

import bounds
import pytest
from flamewire import TESTS_BIN, wait_until
from stacks import PLUGINS, TRAMPOLINES, Recording, Stack, check_paths, check_scenes, up_to

pytestmark = pytest.mark.recording
# For each leaf function of each recording.
CUTS = bounds.Check("samples of a call path that are cut", times=38)
ENCODING = bounds.Check("stacks from assembly without tables that have the function called by main", times=1)
ASSEMBLY_STOPPED = bounds.Check("stacks from assembly without tables that stop early", times=1)
TRAMPOLINES_CUT = bounds.Check("truncated samples through trampolines", times=3)
TRAMPOLINES_WHOLE = bounds.Check("stacks through trampolines that reach the root", times=3)
THROUGH = bounds.Check("interrupted code on the other stack that is followed to the root", times=3)


def program(name):
    return TESTS_BIN / f"unwind-{name}-workload"


def recorded(server):
    """The Recording of the server's only session, once it has ended."""
    session = server.wait_ended(seconds=60)
    stacks = []
    for line in server.get(f"/api/export/session/{session['id']}", format="collapsed").decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        comm, *frames = stack.split(";")
        stacks.append(Stack(comm, frames, int(count)))
    return Recording(stacks, session["unwind_totals"], session["unwind_processes"], session)


def attach(start, server, *pids):
    return start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--unwind", "dwarf", "--pid", ",".join(map(str, pids)))


def runs_32_bit_programs():
    """Whether the kernel runs 32-bit programs. Not every x86-64 kernel does."""
    try:
        process = subprocess.Popen([program("32")])
    except OSError as error:
        assert error.errno == errno.ENOEXEC, error
        return False
    process.kill()
    process.wait()
    return True


def test_stripped_program_beside_a_32_bit_one(start, tmp_path):
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program("scenes")], check=True)
    server = start.server("--binary", program("scenes"))
    targets = [start.process("stripped", [stripped, 3])]
    both = os.uname().machine == "x86_64" and runs_32_bit_programs()
    if both:
        targets.append(start.process("small", [program("32")]))
    attach(start, server, *(target.pid for target in targets))
    recording = recorded(server)
    assert {process["pid"] for process in recording.processes} == {target.pid for target in targets}
    assert {process["mode"] for process in recording.processes} == {"dwarf"}
    check_scenes(recording, CUTS, THROUGH)
    if both:
        leaves = [stack for stack in recording.stacks if "small_leaf_32" in stack.frames]
        assert sum(stack.count for stack in leaves) > 1000
        for stack in leaves:
            assert up_to(stack.frames, "small_leaf_32") == ["_start", "main_32", *["small_middle_32"] * 6, "small_leaf_32"], stack
    elif os.uname().machine == "x86_64":
        pytest.skip("this kernel cannot run 32-bit programs, so only the stripped program was recorded")


def launched(start, *command, unwind="dwarf", stack_size=65528):
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--events", "cpu-clock", "--no-kernel",
                        "--unwind", unwind, "--stack-size", stack_size, "--", *command)
    assert agent.wait(60) == 0, agent.err
    return recorded(server)


def test_stack_pages_that_were_never_touched(start):
    """The kernel's copy ends at such a page. Stacks are whole once the agent has read these pages, which it does with the first samples."""
    recording = launched(start, program("skipped-pages"), 3)
    check_paths(recording, {"late_leaf": ["main", "skipped_outer", "skipped_middle"]}, CUTS, least=1000)
    assert recording.totals["stopped"] == 0, recording.totals


@pytest.mark.skipif(not program("x264").exists(), reason="libx264-dev is not installed")
def test_assembly_without_tables(start):
    """Two thirds of the samples are in libx264's assembly, and its callers have large arrays."""
    recording = launched(start, program("x264"), 4)
    # main itself generates the images in 2 % of the time. Stacks from before the first read of missing pages are truncated.
    encoding = recording.count(lambda s: "main" in s.frames and "x264_encoder_encode" in s.frames)
    ENCODING.at_least(encoding, recording.totals["samples"], 0.9, detail=recording.totals)
    ASSEMBLY_STOPPED.at_most(recording.totals["stopped"], recording.totals["samples"], 0.02, detail=recording.totals)


@pytest.mark.skipif(not program("trampolines").exists(), reason="CPython has no trampolines for this architecture")
@pytest.mark.parametrize("mode", ["auto", "dwarf", "hybrid"])
def test_trampolines_in_anonymous_memory(start, mode):
    """CPython's trampolines have no table and, in older versions for x86-64, no frame pointer."""
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--events", "cpu-clock", "--no-kernel", "--unwind", mode, "--", program("trampolines"), 2)
    assert agent.wait(60) == 0, agent.err
    recording = recorded(server)
    check_paths(recording, TRAMPOLINES, TRAMPOLINES_CUT, cut_share=0.01)
    recording.check_whole(TRAMPOLINES_WHOLE, 0.99)
    # The mode must not use frame pointers more than at the beginning.
    assert [process["mode"] for process in recording.processes] == ["hybrid" if mode == "hybrid" else "dwarf"]


def test_program_file_is_gone(start, tmp_path):
    """One file is deleted, the other is replaced by another program."""
    server = start.server("--binary", program("scenes"))
    copies = [tmp_path / "deleted", tmp_path / "replaced"]
    for copy in copies:
        shutil.copy(program("scenes"), copy)
    targets = [start.process(f"{copy.name}-target", [copy, 3, tmp_path / f"{copy.name}.running"]) for copy in copies]
    for copy in copies:
        wait_until((tmp_path / f"{copy.name}.running").exists, 20, "the target's first round")
    (tmp_path / "deleted").unlink()
    shutil.copy(program("recursion"), tmp_path / "other")
    os.rename(tmp_path / "other", tmp_path / "replaced")
    attach(start, server, *(target.pid for target in targets))
    recording = recorded(server)
    for copy in copies:
        check_scenes(recording.without(lambda s, comm=copy.name: s.comm != comm), CUTS, THROUGH)


def sections(path):
    """name -> (file offset, size)"""
    listed = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"\]\s+(\.\S+)\s+\S+\s+[0-9a-f]+\s+([0-9a-f]+)\s+([0-9a-f]+)", listed)
    return {name: (int(offset, 16), int(size, 16)) for name, offset, size in found}


def test_library_overwritten_in_place(start, tmp_path):
    library = tmp_path / "plugin.so"
    shutil.copy(TESTS_BIN / "unwind-plugin-a.so", library)
    # Another build-id and garbage for tables. The code, and everything that the dynamic linker needs, stay for now.
    overwritten = [sections(library)[name] for name in (".note.gnu.build-id", ".eh_frame_hdr", ".eh_frame")]
    server = start.server("--binary", TESTS_BIN / "unwind-plugin-a.so")
    target = start.process("target", [program("host"), 60, library])
    agent = attach(start, server, target.pid)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 60, "samples")
    with open(library, "r+b") as file:
        for offset, size in overwritten:
            file.seek(offset + size // 2)
            file.write(os.urandom(size // 2))
    # The tables that are needed now were not read before.
    (tmp_path / "plugin.so.late").touch()
    before = server.only_session()["samples"]
    wait_until(lambda: server.only_session()["samples"] > before + 1000, 60, "more samples")
    assert agent.alive() and target.alive()
    # Overwriting its code too ends the target, but not the agent.
    with open(library, "r+b") as file:
        file.write(b"\xcc" * library.stat().st_size)
    assert target.wait(30) != 0
    recording = recorded(server)
    assert agent.alive()
    notices = {notice["code"]: notice for notice in recording.session["notices"]}
    assert "overwritten" in notices["module-changed"]["text"] and "plugin.so" in notices["module-changed"]["text"]
    # Stacks reach the root or are marked as truncated. They never have another function's callers.
    check_paths(recording, {"plugin_leaf_a": PLUGINS["plugin_leaf_a"]}, CUTS, least=400)
    late = {"plugin_late_leaf_a": ["main", "host_loop", "host_call", "plugin_late_entry", "plugin_late_middle_a"]}
    check_paths(recording, late, CUTS, least=900, cut_share=1.0)
