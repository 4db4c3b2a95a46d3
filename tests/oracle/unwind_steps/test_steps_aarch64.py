"""At every instruction, under qemu's user emulation. See steps.py."""
import re
import subprocess

import pytest

from steps import WALK_STEPS, Outcome, Program, need


@pytest.mark.parametrize("flags", ["-O2 -static", "-Os -static -mbranch-protection=standard", "-O2 -static -fno-omit-frame-pointer -fPIC", "-O0 -static"])
def test_aarch64(tmp_path, flags):
    need("qemu-aarch64-static")
    program = Program(tmp_path, "aarch64", "aarch64-linux-gnu-gcc", flags, defines=["PLAIN"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-aarch64-static", "aarch64", program.path])
    # glibc's crt1.o puts __wrap_main, two instructions, into the table entry of _start, which marks the outermost frame.
    wrap_main = int(re.search(r"^([0-9a-f]+) t __wrap_main$", subprocess.run(
        [program.tools + "nm", program.path], capture_output=True, text=True, check=True).stdout, re.MULTILINE)[1], 16)
    known = [address for address in outcome.wrong_at if wrap_main <= address < wrap_main + 8]
    for address in known:
        outcome.count["wrong"] -= outcome.wrong_at[address]
        outcome.count["steps"] -= outcome.wrong_at[address]
    outcome.check(steps=5000, no_table=0.02)
