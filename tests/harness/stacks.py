"""Checks of call stacks for live recordings and for replays of captures. The call paths of each workload are known, and every sample must be
on one of them.

A stack is either correct up to the root, or has a marker for missing callers: `[truncated]`, `[incomplete]`, or `[caller missing]` where a
chain of frame pointers skipped one. Each check uses the bounds.Check that the test file declares."""
import collections
import os
import re

CUT = ("[truncated]", "[incomplete]")
SKIPPED = "[caller missing]"
START = re.compile(r"_start$|__libc_start_|__libc_init|\[.*libc\.so|generic_start_main")
WITHOUT_TABLES = ("_init", "_fini", "frame_dummy", "__do_global_dtors_aux", "register_tm_clones", "deregister_tm_clones")
SIGRETURN = re.compile(r"__restore_rt$|\[libc\.so\.6\+0x[0-9a-f]+\]$|\[unwind-scenes.*\]$")

Stack = collections.namedtuple("Stack", "comm frames count")


class Recording:
    """Call stacks with the counters of their unwinding. `session` is the server's description of a live recording."""

    def __init__(self, stacks, totals, processes, session=None):
        self.stacks, self.totals, self.processes, self.session = stacks, totals, processes, session
        for counts in (self.totals, *self.processes):
            assert counts["samples"] == sum(counts[ending] for ending in ("whole", "joined", "truncated", "open_end", "stopped")), counts
        assert self.totals["samples"] == sum(process["samples"] for process in self.processes)
        # Only stacks that are not whole have a marker in place of their missing callers.
        assert self.count(lambda s: s.frames[0] == "[truncated]") == self.totals["truncated"]
        assert self.count(lambda s: s.frames[0] == "[incomplete]") == self.totals["stopped"]
        assert self.count(lambda s: any(cut in s.frames[1:] for cut in CUT)) == 0

    def without(self, unwanted):
        """A copy with only the other stacks."""
        rest = Recording.__new__(Recording)
        rest.stacks = [stack for stack in self.stacks if not unwanted(stack)]
        return rest

    def count(self, wanted):
        return sum(stack.count for stack in self.stacks if wanted(stack))

    def check_whole(self, check, share):
        check.at_least(self.totals["whole"] + self.totals["joined"], self.totals["samples"], share, detail=self.totals)


def up_to(frames, leaf):
    return frames[:frames.index(leaf) + 1]


def at_root(outer, first="main"):
    """Only the program's start functions are outside of its first function."""
    return bool(outer) and outer[-1] == first and len(outer) > 1 and outer[0].endswith("_start") and all(START.search(name) for name in outer[:-1])


def check_paths(recording, paths, cuts, least=20, cut_share=0.0002):
    """paths: leaf name -> its callers, starting at main. Every stack with the leaf has exactly these callers below the program's start. A share of
    them may be marked as truncated or lack the leaf's caller, and must be correct as far as it reaches."""
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
                right = frames[1:][-len(wanted):] == wanted[-len(frames[1:]):]
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
    """In the handler with its own stack, or in the code outside of it that returns from the handler."""
    frames = stack.frames
    if "on_own_stack" in frames:
        return True
    return "own_stack_interrupted" in frames and any(SIGRETURN.search(name) for name in frames[frames.index("own_stack_interrupted"):])


def cut_on_its_own_stack(stack):
    """Only the handler's stack was copied, up to the return from the handler."""
    return stack.frames[0] in CUT and "on_same_stack" not in stack.frames and (on_its_own_stack(stack) or SIGRETURN.search(stack.frames[1]) is not None)


def check_scenes(recording, cuts, through, assembly=True):
    # Handlers with their own stack are checked below, because their stack is separate memory.
    check_paths(recording.without(on_its_own_stack), SCENES, cuts)
    if assembly and os.uname().machine == "x86_64":
        check_paths(recording, ASSEMBLY, cuts)
    # A handler's caller is the interrupted function, through the kernel's signal return.
    handled = [stack for stack in recording.stacks if "on_same_stack" in stack.frames]
    assert sum(stack.count for stack in handled) > 20
    for stack in handled:
        outer = stack.frames[:stack.frames.index("on_same_stack")]
        assert SIGRETURN.search(outer[-1]), stack
        assert "same_stack_outer" in outer and at_root(up_to(outer, "main")), stack
    # The copy for a handler with its own stack has nothing of the thread's stack. The interrupted function is known, and its callers if they were
    # sampled just before. Otherwise the stack is marked as truncated.
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
    # The timer is so fast that the thread is mostly in its handler. The remaining interrupted code is followed to the root.
    through.at_least(sum(stack.count for stack in seen if stack.frames[0] not in CUT), sum(stack.count for stack in seen), 0.6)
    # Through qsort() and back, through a PLT entry.
    compared = [stack for stack in recording.stacks if "libc_compare" in stack.frames]
    assert sum(stack.count for stack in compared) > 20
    for stack in compared:
        assert at_root(up_to(stack.frames, "main")) and stack.frames[stack.frames.index("main") + 1] == "libc_outer", stack
        between = stack.frames[stack.frames.index("libc_outer") + 1:stack.frames.index("libc_compare")]
        assert between and all(re.search("sort|libc", name) for name in between), stack
    return recording


PLUGINS = {f"plugin_leaf_{letter}": ["main", "host_loop", "host_call", "plugin_entry", f"plugin_middle_{letter}"] for letter in "ab"}

# tests/workloads/unwind_trampolines.c.
TRAMPOLINES = {"burn": ["main", *(name for function in ("outer", "middle", "inner") for name in ("call", f"py::{function}:program.py", "evaluate"))]}


def depth_of(stack, name):
    return sum(frame == name for frame in stack.frames)


def callers_of_work(recording):
    """(function that works, its outermost caller, or None if that is missing) -> samples"""
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
