"""At every instruction, under qemu's user emulation. See steps.py.

For 32-bit ARM, only the program's own functions are checked: Debian's libc has tables for a fifth of its code. With .debug_frame, every
instruction must be right. With .ARM.exidx alone this is impossible: the index has one description per function, which is valid between its
prologue and its epilogue. Inside these, the unwinder analyzes the code as far as it supports it. The share is measured (with the index's
description alone it was 90 %).

Without any table, as C code is compiled by default, everything comes from the code, if it leads to a return. A frame that was not called
must then not appear, and a frame that is not found ends the stack.
"""
import pytest

from steps import WALK_STEPS, Outcome, Program, need


@pytest.mark.parametrize("flags", ["-O2 -mthumb", "-Os -mthumb", "-O2 -marm", "-O0 -mthumb"])
def test_arm_debug_frame(tmp_path, flags):
    need("qemu-arm-static")
    program = Program(tmp_path, "arm", "arm-linux-gnueabihf-gcc", flags + " -static", defines=["PLAIN"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-arm-static", "arm", program.path, program.ranges()])
    outcome.check(steps=800, whole_stacks=False)


@pytest.mark.parametrize("flags", ["-O2 -mthumb", "-Os -mthumb", "-O0 -mthumb", "-O2 -mthumb -fno-omit-frame-pointer", "-O2 -marm", "-O1 -marm -fno-omit-frame-pointer"])
def test_arm_exidx_alone(tmp_path, flags):
    need("qemu-arm-static")
    program = Program(tmp_path, "arm", "arm-linux-gnueabihf-gcc", flags + " -funwind-tables -static", defines=["PLAIN"],
                      strip=["-R", ".debug_frame"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-arm-static", "arm", program.path, program.ranges()])
    count = outcome.count
    share = count["right"] / count["steps"]
    print(f"{100 * share:.1f} % of {count['steps']} instructions right with .ARM.exidx only")
    assert count["steps"] >= 800
    assert share >= 0.99


@pytest.mark.parametrize("flags", ["-O2 -mthumb", "-Os -mthumb", "-O3 -mthumb", "-O0 -mthumb", "-O2 -mthumb -fno-omit-frame-pointer", "-O2 -marm", "-O1 -marm -fno-omit-frame-pointer",
                                   "-O0 -marm"])
def test_arm_without_tables(tmp_path, flags):
    need("qemu-arm-static")
    program = Program(tmp_path, "arm", "arm-linux-gnueabihf-gcc", flags + " -fno-unwind-tables -static", defines=["PLAIN"],
                      strip=["-R", ".debug_frame"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-arm-static", "arm", program.path, program.ranges()])
    count = outcome.count
    print(f"{100 * count['right'] / count['steps']:.2f} % of {count['steps']} instructions right with the code only")
    assert count["steps"] >= 800
    assert count["right"] >= 0.998 * count["steps"] and count["wrong"] <= 0.001 * count["steps"]
