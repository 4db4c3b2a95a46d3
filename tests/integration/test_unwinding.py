"""Stacks of programs without frame pointers, by the checks of tests/harness/stacks.py. tests/captures replays further recordings."""
import collections
import os
import re
import shutil
import subprocess

import bounds
import pytest
from flamewire import SANITIZED, TESTS_BIN, wait_until
from stacks import (CUT, PLUGINS, SCENES, START, WITHOUT_TABLES, Recording, Stack, at_root, callers_of_work, check_modes, check_paths, check_scenes,
                    cut_on_its_own_stack, depth_of, on_its_own_stack, up_to)

pytestmark = pytest.mark.recording
# Each leaf of each recording.
CUTS = bounds.Check("samples of a call path that are cut", times=90)
WRONG = bounds.Check("samples of a call path whose callers are wrong", times=7)
WHOLE = bounds.Check("stacks that reach the root", times=7)
LEFT = bounds.Check("stacks that do not reach the root, and why", times=3)
THROUGH = bounds.Check("interrupted code on the other stack that is followed to the root", times=7)
LIMITED = bounds.Check("stacks that the frame limit cuts", times=1)
JOINED = bounds.Check("stacks that are joined", times=2)


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


def attach(start, *pids, server_options=()):
    server = start.server(*server_options)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--unwind", "dwarf", "--pid", ",".join(map(str, pids)))
    return server, agent


def record(start, mode, *command, options=(), server_options=(), agent_code=0):
    """Runs `command` under the agent until it ends."""
    server = start.server(*server_options)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--unwind", mode, *options, "--", *command)
    assert agent.wait(120) == agent_code, agent.err
    return recorded(server)


@pytest.mark.parametrize("variant", ["scenes-nopie", "scenes-static"])
def test_call_paths(start, variant):
    recording = check_scenes(record(start, "dwarf", program(variant), 4), CUTS, THROUGH)
    assert [process["mode"] for process in recording.processes] == ["dwarf"]
    # Handlers on their own stack, and their way back, are the ones that cannot be followed to the root.
    own = recording.count(cut_on_its_own_stack)
    LEFT.at_most(recording.totals["stopped"] + recording.totals["truncated"] - own, recording.totals["samples"], 0.0005)


def test_stripped(start, tmp_path):
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program("scenes")], check=True)
    check_scenes(record(start, "dwarf", stripped, 4, server_options=("--binary", program("scenes"))), CUTS, THROUGH)


def test_only_debug_frame(start):
    check_scenes(record(start, "dwarf", program("scenes-debugframe"), 4), CUTS, THROUGH, assembly=False)


def test_frame_pointers_and_no_tables(start):
    # In its first and last instructions a function has no frame, and its caller's caller stands for its caller.
    recording = record(start, "dwarf", program("scenes-fponly"), 4)
    check_paths(recording.without(lambda s: on_its_own_stack(s) or "on_same_stack" in s.frames), SCENES, CUTS, WRONG, wrong_share=0.02)


def test_neither_tables_nor_frame_pointers(start):
    recording = record(start, "dwarf", program("scenes-notables"), 3)
    # The innermost function is known; where nothing tells how to leave it, that is said, and no caller is made up.
    leaves = [stack for stack in recording.stacks if "plain_leaf" in stack.frames]
    assert sum(stack.count for stack in leaves) > 50
    for stack in leaves:
        frames = up_to(stack.frames, "plain_leaf")
        assert frames[0] in CUT or frames[-3:-1] == ["plain_outer", "plain_middle"], stack
    assert recording.totals["stopped"] > 100


def test_libraries_come_and_go(start):
    libraries = [TESTS_BIN / f"unwind-plugin-{letter}.so" for letter in "ab"]
    recording = record(start, "dwarf", program("host"), 4, *libraries)
    check_paths(recording, PLUGINS, CUTS, least=500)
    # What the compiler puts into each library for its beginning and end has no tables. Its pages come at each loading, which takes long on
    # some machines.
    begun = recording.count(lambda s: s.frames[0] in CUT and s.frames[1] in WITHOUT_TABLES)
    WHOLE.at_least(recording.totals["whole"], recording.totals["samples"] - begun, 0.9993, detail=recording.totals)
    LEFT.at_most(begun, recording.totals["samples"], 0.012)


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_program_file_is_gone(start, tmp_path, what):
    copy, marker = tmp_path / "scenes", tmp_path / "running"
    shutil.copy(program("scenes"), copy)
    target = start.process("target", [copy, 5, marker])
    wait_until(marker.exists, 20, "the target's first round")
    if what == "deleted":
        copy.unlink()
    else:
        shutil.copy(program("recursion"), tmp_path / "other")
        os.rename(tmp_path / "other", copy)
    server, _ = attach(start, target.pid, server_options=("--binary", program("scenes")))
    check_scenes(recorded(server), CUTS, THROUGH)


def sections(path):
    """name -> (file offset, size)"""
    listed = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"\]\s+(\.\S+)\s+\S+\s+[0-9a-f]+\s+([0-9a-f]+)\s+([0-9a-f]+)", listed)
    return {name: (int(offset, 16), int(size, 16)) for name, offset, size in found}


def test_library_overwritten_in_place(start, tmp_path):
    library = tmp_path / "plugin.so"
    shutil.copy(TESTS_BIN / "unwind-plugin-a.so", library)
    # Another file by its build-id, with garbage for tables; the code and what the dynamic linker needs stay for now.
    overwritten = [sections(library)[name] for name in (".note.gnu.build-id", ".eh_frame_hdr", ".eh_frame")]
    target = start.process("target", [program("host"), 60, library])
    server, agent = attach(start, target.pid, server_options=("--binary", TESTS_BIN / "unwind-plugin-a.so"))
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 60, "samples")
    with open(library, "r+b") as file:
        for offset, size in overwritten:
            file.seek(offset + size // 2)
            file.write(os.urandom(size // 2))
    # What is needed of the tables now was not read before.
    (tmp_path / "plugin.so.late").touch()
    before = server.only_session()["samples"]
    wait_until(lambda: server.only_session()["samples"] > before + 1000, 60, "more samples")
    assert agent.alive() and target.alive()
    # Now its code as well: that is the end of the target, not of the agent.
    with open(library, "r+b") as file:
        file.write(b"\xcc" * library.stat().st_size)
    assert target.wait(30) != 0
    recording = recorded(server)
    assert agent.alive()
    notices = {notice["code"]: notice for notice in recording.session["notices"]}
    assert "overwritten" in notices["module-changed"]["text"] and "plugin.so" in notices["module-changed"]["text"]
    # Right to the root, or said to be cut; never another function's callers.
    check_paths(recording, {"plugin_leaf_a": PLUGINS["plugin_leaf_a"]}, CUTS, least=400)
    late = {"plugin_late_leaf_a": ["main", "host_loop", "host_call", "plugin_late_entry", "plugin_late_middle_a"]}
    check_paths(recording, late, CUTS, least=900, cut_share=1.0)


def test_two_thousand_frames_within_the_copy(start):
    options = ("--max-depth", 4096, "--stack-size", 65528)
    recording = record(start, "dwarf", program("recursion"), "small", 2, options=options)
    bottom = [stack for stack in recording.stacks if "small_bottom" in stack.frames]
    assert sum(stack.count for stack in bottom) > 1500
    for stack in bottom:
        assert depth_of(stack, "small_dive") == 2001 and at_root(up_to(stack.frames, "main")), (len(stack.frames), stack.frames[:5])
    recording.check_whole(WHOLE, 0.9998)
    assert recording.session["max_depth"] == 4096 and recording.session["stack_bytes"] == 65528


def test_two_thousand_frames_beyond_the_copy(start):
    recording = record(start, "dwarf", program("recursion"), "slow", 4, options=("--max-depth", 4096))
    # By a look at each deep stack while it is there, for which an agent with sanitizers has less time.
    recording.check_whole(WHOLE, 0.87 if SANITIZED else 0.965)
    assert recording.totals["joined"] > 500
    deepest = max((stack for stack in recording.stacks if stack.frames[0] not in CUT), key=lambda stack: depth_of(stack, "slow_dive"))
    assert depth_of(deepest, "slow_dive") > 1990
    for stack in recording.stacks:
        if "slow_dive" in stack.frames and stack.frames[0] not in CUT:
            assert at_root(up_to(stack.frames, "main")) and stack.frames[stack.frames.index("main") + 1] == "slow_dive", stack.frames[:6]
            inside = stack.frames[stack.frames.index("main") + 1:]
            dives = len(inside) - inside[::-1].index("slow_dive")
            assert inside[:dives] == ["slow_dive"] * dives, stack.frames[:6]


def test_the_frame_limit_is_said(start):
    recording = record(start, "dwarf", program("recursion"), "small", 1, options=("--max-depth", 300, "--stack-size", 65528))
    cut = [stack for stack in recording.stacks if stack.frames[0] == "[truncated]"]
    LIMITED.at_least(sum(stack.count for stack in cut), recording.totals["samples"], 0.97)
    for stack in cut:
        # On its way down it may be so deep that of the frames above it not all have room.
        assert sum(name in ("small_dive", "small_bottom", "main") or START.search(name) is not None for name in stack.frames) == 300, stack.frames[:4]
    losses = {loss["reason"]: loss for loss in recording.session["losses"]}
    assert losses["stack_truncated"]["count"] == recording.totals["truncated"] and not losses["stack_truncated"]["lost"]


def test_a_stack_that_no_sample_saw_grow_is_completed(start):
    recording = record(start, "dwarf", program("recursion"), "stay", 8)
    found = callers_of_work(recording)
    JOINED.at_least(found["work_a", "caller_a"], sum(found.values()), 0.965, detail=found)


@pytest.mark.parametrize("mode", ["leap", "shifts"])
def test_callers_that_changed_unseen_are_not_mistaken(start, mode):
    recording = record(start, "dwarf", program("recursion"), mode, 4)
    found = callers_of_work(recording)
    assert found["work_a", "caller_b"] == found["work_b", "caller_a"] == 0, found
    assert sum(found.values()) > 3000


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a 32-bit program of another architecture")
def test_32_bit_beside_64_bit(start):
    small, large = start.process("small", [program("32")]), start.process("large", [program("scenes"), 4])
    server, _ = attach(start, small.pid, large.pid)
    recording = recorded(server)
    assert {process["pid"] for process in recording.processes} == {small.pid, large.pid}
    leaves = [stack for stack in recording.stacks if "small_leaf_32" in stack.frames]
    assert sum(stack.count for stack in leaves) > 1000
    for stack in leaves:
        assert up_to(stack.frames, "small_leaf_32") == ["_start", "main_32", *["small_middle_32"] * 6, "small_leaf_32"], stack
    check_scenes(recording, CUTS, THROUGH)


def test_the_demo_without_frame_pointers_reaches_the_root(start):
    recording = record(start, "dwarf", program("demo"), 8)
    assert recording.totals["samples"] > 1500
    recording.check_whole(WHOLE, 0.9998)
    roots = collections.Counter()
    for stack in recording.stacks:
        roots[stack.frames[0]] += stack.count
    WHOLE.at_least(sum(count for name, count in roots.items() if "clone" in name or name.endswith("_start")), recording.totals["samples"], 0.9998, detail=roots)


def test_auto_without_frame_pointers_is_dwarf(start):
    recording = record(start, "auto", program("modes-none"), 4)
    process = recording.processes[0]
    assert process["mode"] == "dwarf" and process["why"] and process["stack_bytes"] > 0, process
    check_modes(recording, CUTS, WHOLE)
    status = recording.session
    assert status["unwind"] == "auto"


def test_frame_pointers_alone_do_not_claim_the_root(start):
    recording = record(start, "fp", program("modes-none"), 2)
    assert recording.totals["stack_bytes"] == 0 and recording.totals["whole"] == 0, recording.totals
    assert recording.totals["open_end"] + recording.totals["stopped"] + recording.totals["truncated"] == recording.totals["samples"]
