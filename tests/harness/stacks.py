"""Checks of call stacks that live recordings and replays of captures share: each workload knows its own call paths, and every sample must
be on one of them.

A stack is either right to the root, or has a marker where callers are missing: `[truncated]` or `[incomplete]`, and `[caller missing]` where a
chain of frame pointers skipped one. Each check takes the bounds.Check that the test file declares."""
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


def up_to(frames, leaf):
    return frames[:frames.index(leaf) + 1]


def at_root(outer, first="main"):
    """Nothing but the start of the program stands outside of its first function."""
    return bool(outer) and outer[-1] == first and len(outer) > 1 and outer[0].endswith("_start") and all(START.search(name) for name in outer[:-1])


def check_paths(recording, paths, cuts, least=20, cut_share=0.0002):
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


PLUGINS = {f"plugin_leaf_{letter}": ["main", "host_loop", "host_call", "plugin_entry", f"plugin_middle_{letter}"] for letter in "ab"}

# tests/workloads/unwind_trampolines.c.
TRAMPOLINES = {"burn": ["main", *(name for function in ("outer", "middle", "inner") for name in ("call", f"py::{function}:program.py", "evaluate"))]}


def depth_of(stack, name):
    return sum(frame == name for frame in stack.frames)


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
