"""Stacks of programs without frame pointers: each workload knows its own call paths, and every sample must be on one of them.

A stack is either right to the root, or it says that it is not: `[truncated]` or `[incomplete]` stand where callers are missing, and
`[caller missing]` where a chain of frame pointers stepped over one. tests/captures replays further recordings, with the checks of this file."""
import collections
import os
import re
import shutil
import subprocess

import bounds
import pytest
from flamewire import SANITIZED, TESTS_BIN, wait_until

pytestmark = pytest.mark.recording
# Each leaf of each recording.
CUTS = bounds.Check("samples of a call path that are cut", times=90)
WRONG = bounds.Check("samples of a call path whose callers are wrong", times=7)
WHOLE = bounds.Check("stacks that reach the root", times=7)
LEFT = bounds.Check("stacks that do not reach the root, and why", times=3)
THROUGH = bounds.Check("interrupted code on the other stack that is followed to the root", times=7)
LIMITED = bounds.Check("stacks that the frame limit cuts", times=1)
JOINED = bounds.Check("stacks that are joined", times=2)

CUT = ("[truncated]", "[incomplete]")
SKIPPED = "[caller missing]"
START = re.compile(r"_start$|__libc_start_|__libc_init|\[.*libc\.so|generic_start_main")
WITHOUT_TABLES = ("_init", "_fini", "frame_dummy", "__do_global_dtors_aux", "register_tm_clones", "deregister_tm_clones")
SIGRETURN = re.compile(r"__restore_rt$|\[libc\.so\.6\+0x[0-9a-f]+\]$|\[unwind-scenes.*\]$")

Stack = collections.namedtuple("Stack", "comm frames count")


def program(name):
    return TESTS_BIN / f"unwind-{name}-workload"


class Recording:
    """Call stacks with the counters of their unwinding. `session` is what the server reports of a live recording."""

    def __init__(self, stacks, totals, processes, session=None):
        self.stacks, self.totals, self.processes, self.session = stacks, totals, processes, session
        for counts in (self.totals, *self.processes):
            assert counts["samples"] == sum(counts[ending] for ending in ("whole", "joined", "truncated", "open_end", "stopped")), counts
        assert self.totals["samples"] == sum(process["samples"] for process in self.processes)
        # A stack that is not whole has a marker in place of its missing callers; no other stack has one.
        assert self.count(lambda s: s.frames[0] == "[truncated]") == self.totals["truncated"]
        assert self.count(lambda s: s.frames[0] == "[incomplete]") == self.totals["stopped"]
        assert self.count(lambda s: any(cut in s.frames[1:] for cut in CUT)) == 0

    def without(self, unwanted):
        """A copy that has only its stacks."""
        rest = Recording.__new__(Recording)
        rest.stacks = [stack for stack in self.stacks if not unwanted(stack)]
        return rest

    def count(self, wanted):
        return sum(stack.count for stack in self.stacks if wanted(stack))

    def check_whole(self, check, share):
        check.at_least(self.totals["whole"] + self.totals["joined"], self.totals["samples"], share, detail=self.totals)


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


def up_to(frames, leaf):
    return frames[:frames.index(leaf) + 1]


def at_root(outer, first="main"):
    """Nothing but the start of the program stands outside of its first function."""
    return bool(outer) and outer[-1] == first and len(outer) > 1 and outer[0].endswith("_start") and all(START.search(name) for name in outer[:-1])


def check_paths(recording, paths, cuts, wrong_paths=None, least=20, wrong_share=0.0, cut_share=0.0002):
    """paths: the leaf's name -> its callers from main on. Every stack with the leaf has exactly them below the program's start, but for a
    share that says that it is cut or lacks the leaf's caller, and that is right as far as it goes."""
    for leaf, callers in paths.items():
        seen = whole = cut = 0
        wrong = []
        wanted = [*callers, leaf]
        for stack in recording.stacks:
            if leaf not in stack.frames:
                continue
            seen += stack.count
            frames = up_to(stack.frames, leaf)
            if frames[0] in CUT:
                right = frames[1:] == wanted[len(wanted) - len(frames) + 1:]
                cut += stack.count if right else 0
            elif SKIPPED in frames:
                right = frames[-len(wanted):-2] == wanted[:-2] and frames[-2] == SKIPPED and at_root(frames[:-len(wanted) + 1])
                cut += stack.count if right else 0
            else:
                right = frames[-len(wanted):] == wanted and at_root(frames[:-len(wanted) + 1])
                whole += stack.count if right else 0
            if not right:
                wrong.append(stack)
        assert seen >= least, f"{leaf} has {seen} samples"
        if wrong_paths:
            wrong_paths.at_most(sum(stack.count for stack in wrong), seen, wrong_share, detail=(leaf, wrong[:5]))
        else:
            assert not wrong, (leaf, seen, wrong[:5])
        if cut_share < 1:
            cuts.at_most(cut, seen, cut_share, detail=leaf)


SCENES = {
    "plain_leaf": ["main", "plain_outer", "plain_middle"],
    "vla_leaf": ["main", "alloca_outer", "vla_middle"],
    "same_stack_interrupted": ["main", "same_stack_outer"],
    "own_stack_interrupted": ["main", "own_stack_outer"],
    "noreturn_leaf": ["main", "noreturn_outer", "noreturn_middle"],
    "plt_loop": ["main", "plt_outer"],
    "vdso_loop": ["main", "vdso_outer"],
}
ASSEMBLY = {
    "asm_leaf_register": ["main", "asm_outer", "asm_cfa_in_register"],
    "asm_leaf_expression": ["main", "asm_outer", "asm_cfa_expression"],
    "asm_leaf_elsewhere": ["main", "asm_outer", "asm_saved_elsewhere"],
    "asm_leaf_pushes": ["main", "asm_outer", "asm_pushes"],
    "asm_pushes": ["main", "asm_outer"],
}


def on_its_own_stack(stack):
    """In the handler that has a stack of its own, or behind it, in the code that returns from it."""
    frames = stack.frames
    if "on_own_stack" in frames:
        return True
    return "own_stack_interrupted" in frames and any(SIGRETURN.search(name) for name in frames[frames.index("own_stack_interrupted"):])


def cut_on_its_own_stack(stack):
    """The handler's stack is all that was copied, up to the return from it."""
    return stack.frames[0] in CUT and "on_same_stack" not in stack.frames and (on_its_own_stack(stack) or SIGRETURN.search(stack.frames[1]) is not None)


def check_scenes(recording, cuts, through, assembly=True):
    # A handler on its own stack is looked at below: its stack is another piece of memory.
    check_paths(recording.without(on_its_own_stack), SCENES, cuts)
    if assembly and os.uname().machine == "x86_64":
        check_paths(recording, ASSEMBLY, cuts)
    # A handler's caller is whatever it interrupted, through the kernel's return from it.
    handled = [stack for stack in recording.stacks if "on_same_stack" in stack.frames]
    assert sum(stack.count for stack in handled) > 20
    for stack in handled:
        outer = stack.frames[:stack.frames.index("on_same_stack")]
        assert SIGRETURN.search(outer[-1]), stack
        assert "same_stack_outer" in outer and at_root(up_to(outer, "main")), stack
    # On a stack of its own a handler's copy has nothing of the thread's stack: what it interrupted is known, its callers as far as they
    # were seen just before; else it says that they are missing.
    handled = [stack for stack in recording.stacks if "on_own_stack" in stack.frames]
    assert sum(stack.count for stack in handled) > 20
    for stack in handled:
        outer = stack.frames[:stack.frames.index("on_own_stack")]
        assert SIGRETURN.search(outer[-1]), stack
        assert outer[0] in CUT or (at_root(up_to(outer, "main")) and outer[outer.index("main") + 1] == "own_stack_outer"), stack
    for stack in recording.stacks:
        if on_its_own_stack(stack) and "on_own_stack" not in stack.frames:
            outer = up_to(stack.frames, "own_stack_interrupted")
            assert outer[0] in CUT or (at_root(up_to(outer, "main")) and outer[outer.index("main") + 1] == "own_stack_outer"), stack
    seen = [stack for stack in handled if "own_stack_interrupted" in stack.frames]
    assert sum(stack.count for stack in seen) > 20
    # The timer is so fast that the thread is mostly in its handler; all else that was interrupted is followed to the root.
    through.at_least(sum(stack.count for stack in seen if stack.frames[0] not in CUT), sum(stack.count for stack in seen), 0.6)
    # Through qsort() and back, by a PLT entry.
    compared = [stack for stack in recording.stacks if "libc_compare" in stack.frames]
    assert sum(stack.count for stack in compared) > 20
    for stack in compared:
        assert at_root(up_to(stack.frames, "main")) and stack.frames[stack.frames.index("main") + 1] == "libc_outer", stack
        between = stack.frames[stack.frames.index("libc_outer") + 1:stack.frames.index("libc_compare")]
        assert between and all(re.search("sort|libc", name) for name in between), stack
    return recording


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


PLUGINS = {f"plugin_leaf_{letter}": ["main", "host_loop", "host_call", "plugin_entry", f"plugin_middle_{letter}"] for letter in "ab"}


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


def depth_of(stack, name):
    return sum(frame == name for frame in stack.frames)


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


def callers_of_work(recording):
    """(whose work, its outermost caller or None when that is missing) -> samples"""
    found = collections.Counter()
    for stack in recording.stacks:
        work = next((name for name in stack.frames if name in ("work_a", "work_b")), None)
        if work is None:
            continue
        if stack.frames[0] in CUT:
            found[work, None] += stack.count
            continue
        caller = stack.frames[stack.frames.index("main") + 1]
        assert at_root(up_to(stack.frames, "main")), stack.frames[:6]
        inside = stack.frames[stack.frames.index(caller) + 1:stack.frames.index(work)]
        assert set(inside) == {"wide_dive"} and len(inside) <= 200, stack.frames[:8]
        found[work, caller] += stack.count
    return found


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


CHAIN = [f"step_{n}" for n in range(8, 0, -1)]
MODES = {
    "part_leaf": ["main", "step_10", "step_9", "modes_part"],
}


def check_modes(recording, cuts, whole):
    check_paths(recording, MODES, cuts, least=200, cut_share=0.0005)
    straight = ["main", *CHAIN, "modes_leaf"]
    through = ["main", "step_10", "step_9", "modes_part", "modes_leaf"]
    seen = right = 0
    for stack in recording.stacks:
        if "modes_leaf" not in stack.frames:
            continue
        seen += stack.count
        frames = up_to(stack.frames, "modes_leaf")
        for wanted in (straight, through):
            right += stack.count if frames[-len(wanted):] == wanted and at_root(frames[:-len(wanted) + 1]) else 0
    assert seen > 500, seen
    whole.at_least(right, seen, 0.999)
    recording.check_whole(whole, 0.999)


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
