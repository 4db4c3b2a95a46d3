"""Call stacks of stored captures: every sample must be on a known call path of its workload (tests/harness/stacks.py)."""
import collections

import bounds
import pytest
from stacks import (CUT, PLUGINS, SCENES, START, WITHOUT_TABLES, at_root, callers_of_work, check_modes, check_paths, check_scenes, cut_on_its_own_stack,
                    depth_of, on_its_own_stack, up_to)

# For each leaf function of each capture.
CUTS = bounds.Check("samples of a call path that are cut", times=48)
WHOLE = bounds.Check("stacks that reach the root", times=9)
LEFT = bounds.Check("stacks that do not reach the root, and why", times=1)
THROUGH = bounds.Check("interrupted code on the other stack that is followed to the root", times=4)
LIMITED = bounds.Check("stacks that the frame limit cuts", times=1)
JOINED = bounds.Check("stacks that are joined", times=3)


@pytest.fixture
def imported(replayed, start):
    """name -> the server's description of the session that the replay wrote."""
    def report(name):
        server = start.server("--import", replayed(name).session)
        return server.wait_ended()

    return report


def test_call_paths(replayed):
    check_scenes(replayed("call-paths").recording(), CUTS, THROUGH)


@pytest.mark.parametrize("name", ["call-paths-nopie", "call-paths-static-stripped"])
def test_call_paths_of_other_kinds_of_programs(replayed, name):
    recording = check_scenes(replayed(name).recording(), CUTS, THROUGH)
    assert [process["mode"] for process in recording.processes] == ["dwarf"]
    # Only a handler with its own stack, and its return, may lack callers.
    own = recording.count(cut_on_its_own_stack)
    assert recording.totals["stopped"] + recording.totals["truncated"] == own


def test_only_debug_frame(replayed):
    check_scenes(replayed("call-paths-debug-frame").recording(), CUTS, THROUGH, assembly=False)


@pytest.mark.parametrize("name", ["call-paths-frame-pointers", "call-paths-no-tables"])
def test_without_tables(replayed, name):
    recording = replayed(name).recording()

    # The copy for a handler with its own stack has nothing of the thread's stack, and a function that never returns has no return path to follow.
    def ends_early(stack):
        return on_its_own_stack(stack) or (name == "call-paths-no-tables" and "noreturn_leaf" in stack.frames)

    paths = {leaf: callers for leaf, callers in SCENES.items() if leaf != "own_stack_interrupted" and not (name == "call-paths-no-tables" and leaf == "noreturn_leaf")}
    check_paths(recording.without(ends_early), paths, CUTS, cut_share=1)
    assert recording.totals["stopped"] == recording.count(lambda s: s.frames[0] == "[incomplete]" and ends_early(s))
    # alloca makes the stack deeper than the copy.
    assert recording.totals["truncated"] == recording.count(lambda s: s.frames[0] == "[truncated]" and "alloca_outer" in s.frames)


def test_libraries_come_and_go(replayed):
    recording = replayed("plugins").recording()
    check_paths(recording, PLUGINS, CUTS, least=500)
    # The start files of each library have no tables. Their pages are faulted in at each load, which takes long on some machines.
    begun = recording.count(lambda s: s.frames[0] in CUT and s.frames[1] in WITHOUT_TABLES)
    WHOLE.at_least(recording.totals["whole"], recording.totals["samples"] - begun, 0.9993, detail=recording.totals)
    LEFT.at_most(begun, recording.totals["samples"], 0.012)


def test_two_thousand_frames_within_the_copy(replayed, imported):
    recording = replayed("deep-in-copy").recording()
    bottom = [stack for stack in recording.stacks if "small_bottom" in stack.frames]
    assert sum(stack.count for stack in bottom) > 1500
    for stack in bottom:
        assert depth_of(stack, "small_dive") == 2001 and at_root(up_to(stack.frames, "main")), (len(stack.frames), stack.frames[:5])
    recording.check_whole(WHOLE, 0.9998)
    session = imported("deep-in-copy")
    assert session["max_depth"] == 4096 and session["stack_bytes"] == 65528


def test_two_thousand_frames_beyond_the_copy(replayed):
    """The agent completes stacks by reading the memory of the program."""
    recording = replayed("deep-beyond-copy").recording()
    # The exception is the first dive, in which the agent has proven no callers yet: 3.5 % of 4 s.
    assert recording.totals["truncated"] <= 140 and recording.totals["stopped"] == 0, recording.totals
    assert recording.totals["joined"] > 500
    deepest = max((stack for stack in recording.stacks if stack.frames[0] not in CUT), key=lambda stack: depth_of(stack, "slow_dive"))
    assert depth_of(deepest, "slow_dive") > 1990
    for stack in recording.stacks:
        if "slow_dive" in stack.frames and stack.frames[0] not in CUT:
            assert at_root(up_to(stack.frames, "main")) and stack.frames[stack.frames.index("main") + 1] == "slow_dive", stack.frames[:6]
            inside = stack.frames[stack.frames.index("main") + 1:]
            dives = len(inside) - inside[::-1].index("slow_dive")
            assert inside[:dives] == ["slow_dive"] * dives, stack.frames[:6]


def test_the_frame_limit_is_reported(replayed, imported):
    recording = replayed("frame-limit").recording()
    cut = [stack for stack in recording.stacks if stack.frames[0] == "[truncated]"]
    LIMITED.at_least(sum(stack.count for stack in cut), recording.totals["samples"], 0.97)
    for stack in cut:
        # While the program descends, its outermost frames may be beyond the limit.
        assert sum(name in ("small_dive", "small_bottom", "main") or START.search(name) is not None for name in stack.frames) == 300, stack.frames[:4]
    losses = {loss["reason"]: loss for loss in imported("frame-limit")["losses"]}
    assert losses["stack_truncated"]["count"] == recording.totals["truncated"] and not losses["stack_truncated"]["lost"]


def test_deep_stacks_are_joined(replayed):
    recording = replayed("deep-stacks").recording()
    found = callers_of_work(recording)
    assert found["work_a", "caller_b"] == found["work_b", "caller_a"] == 0, found
    JOINED.at_least(found["work_a", "caller_a"] + found["work_b", "caller_b"], sum(found.values()), 0.965, detail=found)
    JOINED.at_least(recording.totals["joined"], recording.totals["samples"], 0.53)


def test_a_stack_that_grew_between_samples_is_completed(replayed):
    found = callers_of_work(replayed("deep-stays").recording())
    JOINED.at_least(found["work_a", "caller_a"], sum(found.values()), 0.965, detail=found)


@pytest.mark.parametrize("name, least", [("deep-turns", 1000), ("deep-leaps", 3000), ("deep-shifts", 3000)])
def test_callers_that_changed_between_samples_are_not_confused(replayed, name, least):
    found = callers_of_work(replayed(name).recording())
    assert found["work_a", "caller_b"] == found["work_b", "caller_a"] == 0, found
    assert sum(found.values()) > least


def test_exceptions_are_unwound_while_they_are_thrown(replayed):
    recording = replayed("exceptions").recording()
    recording.check_whole(WHOLE, 0.99)
    names = {name: f"(anonymous namespace)::{name}" for name in ("catch_outer()", "rethrow_outer()", "throw_leaf(unsigned int)", "throw_middle(unsigned int)")}
    leaf = names["throw_leaf(unsigned int)"]
    thrown = [stack for stack in recording.stacks if leaf in stack.frames]
    assert sum(stack.count for stack in thrown) > 100
    for stack in thrown:
        frames = up_to(stack.frames, leaf)
        wanted = ["main", names["catch_outer()"], names["rethrow_outer()"], *[names["throw_middle(unsigned int)"]] * 7, leaf]
        assert frames[-len(wanted):] == wanted and at_root(frames[:-len(wanted) + 1]), stack


def test_the_demo_without_frame_pointers_reaches_the_root(replayed):
    recording = replayed("demo").recording()
    assert recording.totals["samples"] > 500
    assert recording.totals["whole"] == recording.totals["samples"], recording.totals
    roots = collections.Counter()
    for stack in recording.stacks:
        roots[stack.frames[0]] += stack.count
    assert all("clone" in name or name.endswith("_start") for name in roots), roots


@pytest.mark.parametrize("name, modes", [("auto-mixed", ("hybrid", "dwarf")), ("auto-frame-pointers", ("fp",)), ("auto-no-frame-pointers", ("dwarf",))])
def test_auto_chooses_by_what_the_program_needs(replayed, name, modes):
    recording = replayed(name).recording()
    assert recording.processes[0]["mode"] in modes
    check_modes(recording, CUTS, WHOLE)


def test_auto_reports_why_it_chose(imported):
    session = imported("auto-no-frame-pointers")
    process = session["unwind_processes"][0]
    assert process["mode"] == "dwarf" and process["why"] and process["stack_bytes"] > 0, process
    assert session["unwind"] == "auto"


def test_frame_pointers_alone_do_not_claim_the_root(replayed, imported):
    replay = replayed("frame-pointers-alone")
    assert replay.samples("cpu-clock") > 500
    # Without frame pointers, the kernel finds only the innermost function.
    for _, _, frames, _, _ in replay.rows:
        assert len(frames) == 1 and frames[0] in replay.scene["functions"]["unwind-modes-none-workload"], frames
    totals = imported("frame-pointers-alone")["unwind_totals"]
    assert totals["stack_bytes"] == 0 and totals["whole"] == 0, totals
