"""At every instruction, on this machine with ptrace. See steps.py."""
import subprocess

import pytest

from steps import HERE, WALK_STEPS, Outcome, Program, need


@pytest.mark.parametrize("compiler, flags", [
    ("gcc", "-O2 -Wl,-z,lazy"),
    ("gcc", "-O0 -Wl,-z,lazy"),
    ("gcc", "-Os -fno-plt -no-pie"),
    ("gcc", "-O3 -fcf-protection=full -mno-red-zone -Wl,-z,lazy"),
    ("gcc", "-O2 -fno-omit-frame-pointer -Wl,-z,now"),
    ("gcc", "-O2 -fno-asynchronous-unwind-tables"),  # -g then adds .debug_frame for the C part
    ("clang-19", "-O2 -Wl,-z,lazy"),
    ("clang-19", "-Os -mno-omit-leaf-frame-pointer"),
])
def test_x86_64(tmp_path, compiler, flags):
    program = Program(tmp_path, "x86_64", compiler, flags, exceptions=True)
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=50000)


def test_x86_64_mini_debug_info(tmp_path):
    need("xz")
    program = Program(tmp_path, "x86_64", "gcc", "-O2 -fno-asynchronous-unwind-tables -fno-exceptions")
    program.move_debug_frame()
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=15000)


@pytest.mark.parametrize("compiler, flags", [
    ("gcc", "-O2"),
    ("gcc", "-O0"),
    ("gcc", "-O1"),
    ("gcc", "-Os -fno-plt -no-pie"),
    ("gcc", "-O3 -fcf-protection=full -mno-red-zone"),
    ("gcc", "-O2 -fno-omit-frame-pointer"),
    ("clang-19", "-O2"),
    ("clang-19", "-O0"),
])
def test_x86_64_without_tables(tmp_path, compiler, flags):
    """With the code alone, as far as it leads to a return: functions that never return end the stack. The linker's own table, for the entries that
    bind functions at their first call, is removed with the others, so nothing is bound lazily."""
    program = Program(tmp_path, "x86_64", compiler, flags + " -fno-asynchronous-unwind-tables -fno-unwind-tables -Wl,-z,now",
                      strip=["-R", ".debug_frame", "-R", ".eh_frame", "-R", ".eh_frame_hdr"])
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=8000, whole_stacks=False, no_table=0.012)


def test_assembly_without_tables(tmp_path):
    """GMP's functions are hand-written assembly without tables: computed jumps, registers that are saved by moves, eight of them in use."""
    program = tmp_path / "big_numbers"
    subprocess.run(["gcc", "-O2", HERE / "big_numbers.c", "-o", program, "-l:libgmp.so.10"], check=True)
    outcome = Outcome([WALK_STEPS, "ptrace", program])
    assert outcome.count["wrong"] == 0, outcome.text
    assert outcome.count["steps"] > 5000
    assert outcome.count["right"] >= outcome.count["steps"] - 10, outcome.text


@pytest.mark.parametrize("flags", ["-O2 -static", "-Os -static-pie"])
def test_x86_64_static(tmp_path, flags):
    """Without .eh_frame_hdr (-static) and with it. Exceptions are not used, because libgcc would sort all tables at the first one."""
    program = Program(tmp_path, "x86_64", "gcc", flags)
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=20000)
