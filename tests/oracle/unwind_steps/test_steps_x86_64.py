"""At every instruction, on this machine by ptrace: see steps.py."""
import pytest

from steps import WALK_STEPS, Outcome, Program, need


@pytest.mark.parametrize("compiler, flags", [
    ("gcc", "-O2 -Wl,-z,lazy"),
    ("gcc", "-O0 -Wl,-z,lazy"),
    ("gcc", "-Os -fno-plt -no-pie"),
    ("gcc", "-O3 -fcf-protection=full -mno-red-zone -Wl,-z,lazy"),
    ("gcc", "-O2 -fno-omit-frame-pointer -Wl,-z,now"),
    ("gcc", "-O2 -fno-asynchronous-unwind-tables"),  # then -g brings .debug_frame, for the C part
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


@pytest.mark.parametrize("flags", ["-O2 -static", "-Os -static-pie"])
def test_x86_64_static(tmp_path, flags):
    """Without .eh_frame_hdr (-static) and with it. Exceptions are left out: there, libgcc sorts all tables at the first one."""
    program = Program(tmp_path, "x86_64", "gcc", flags)
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=20000)
