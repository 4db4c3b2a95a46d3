"""Recordings of other projects' programs, made by this test and unwound by our code and by `perf script`: the frames are the same. If they differ,
gdb's result decides. docs/unwinding/accuracy.md has the table, which judge.py makes."""

import collections
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import compare  # noqa: E402
import judge  # noqa: E402
import programs  # noqa: E402

CORES = pathlib.Path(os.environ["FLAMEWIRE_BIN"]) / "unwind_cores"
REPLAY = pathlib.Path(os.environ["FLAMEWIRE_BIN"]) / "unwind_replay"


ASSEMBLY = """
.text
.globl bare, other
.type bare, @function
.type other, @function
bare:
    push %rbx
    cpuid
    pop %rbx
    ret
other:
    ret
.section .note.GNU-stack
"""


def test_in_assembly_without_a_table_the_call_instruction_identifies_the_caller(tmp_path):
    (tmp_path / "bare.s").write_text(ASSEMBLY)
    (tmp_path / "main.c").write_text("void bare(void), other(void);\nint main(void) {\n    bare();\n    other();\n    return 0;\n}\n")
    program = tmp_path / "program"
    subprocess.run(["gcc", "-O0", tmp_path / "main.c", tmp_path / "bare.s", "-o", program], check=True)
    code = subprocess.run(["objdump", "-d", program], check=True, capture_output=True, text=True).stdout

    def behind(instruction):
        return re.search(instruction + r".*\n +(\w+):", code)[1]

    def verdict(*frames):
        files = [*(f"{frame}:{program}" for frame in frames), "0:[stack]"]
        return judge.verdict(judge.Case([1, 2, 3], [1, 7], files[:1], files))

    inside, called, called_other = behind(r"\tcpuid"), behind(r"\tcall +\w+ <bare>"), behind(r"\tcall +\w+ <other>")
    assert verdict(inside, called) == "called by our caller; gdb guesses"
    assert verdict(inside, called_other) == "gdb has other frames"
    assert verdict(called, called) == "gdb has other frames"  # main() has a table


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_frames_are_those_of_perf_script(program, tmp_path):
    data = programs.record(program, tmp_path)
    # With the bytes that perf reads. With all bytes, we find one more frame in some truncated stacks.
    comparison = compare.Comparison(REPLAY, data, "--as-perf-reads")
    whole = compare.Comparison(REPLAY, data)
    by_libunwind = compare.of_replay(REPLAY, data, "--by-libunwind")
    verdict_of = {key: judge.verdict(case) for key, case in judge.judge(CORES, whole, data).items()}
    verdicts = collections.Counter(verdict_of.values())
    data.unlink()
    report = f"{comparison.report()}\nwith the last word of each copy: {whole.report()}\nresults of gdb: {dict(verdicts)}"
    print(report)
    assert comparison.total > 1000, report
    assert len(verdict_of) == len(whole.different), report
    right = {key for key, what in verdict_of.items() if what.startswith(("as gdb", "called by the dynamic linker", "called by our caller"))}
    # A short recording on a busy machine consists mostly of the program's start, where perf stops early more often.
    assert len(set(comparison.different) - right) <= 0.005 * comparison.total, report
    assert len(set(whole.different) - right) <= 0.001 * whole.total and not {"gdb has other frames", "not called by the dynamic linker"} & set(verdicts), report
    for key in whole.different:
        theirs, ours = whole.perf[key], whole.ours[key].frames
        assert key in comparison.different or (ours[: len(theirs)] == theirs and len(ours) == len(theirs) + 1), (key, whole.kind(key))
    # Libunwind's step, on which our rules are based, used for every frame.
    same = sum(sample.frames == by_libunwind[key].frames for key, sample in whole.ours.items())
    assert same >= 0.995 * whole.total, f"{same} of {whole.total}"
