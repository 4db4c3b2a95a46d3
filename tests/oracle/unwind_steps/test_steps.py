"""The unwinder at every single instruction of a program, against what the stack really is at that moment.

walk_steps runs the program step by step (x86-64: ptrace; aarch64 and arm: the GDB stub of qemu's user emulation) and keeps a shadow stack: a
call puts its return address on it, a return takes it off. That is the truth, and it knows no unwind tables. The program (program.c,
exceptions.cc, program_ARCH.S) has leaf functions, alloca and arrays of variable length, pushed arguments, tail calls, calls that never return
as the last instruction, longjmp, exceptions, a signal handler on two alternate stacks, calls through the PLT with lazy binding, libc, the vDSO,
and assembly with call frame information.

Every frame's pc and stack pointer must be right at every instruction, but
- where the code at hand has no table at all (a few instructions of the C start-up code), which is counted and bounded;
- while the stack is changed by other means than calls and returns: from where libgcc begins to write the registers of the function in which an
  exception lands over those that its own callers saved, until it has landed; the same for longjmp. This is counted and bounded as well.

32-bit ARM is judged in the program's own functions: Debian's libc for it has tables for a fifth of its code. With .debug_frame every instruction
must be right. With .ARM.exidx alone it cannot be: the index has one description of a function, which holds between its prologue and its
epilogue. That share is measured, and what is wrong must be in a prologue or an epilogue.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
WALK_STEPS = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", HERE.parents[2] / "build" / "bin")) / "walk_steps"
TIMEOUT = 60


def need(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        pytest.skip(f"not tested, missing: {' '.join(missing)}")


class Program:
    def __init__(self, directory, arch, compiler, flags, defines=(), exceptions=False, strip=()):
        prefix = {"x86_64": "", "aarch64": "aarch64-linux-gnu-", "arm": "arm-linux-gnueabihf-"}[arch]
        need(compiler)
        self.arch, self.tools = arch, prefix
        self.path = directory / "program"
        sources = ["program.c", f"program_{arch}.S"] + ["exceptions.cc"] * exceptions
        objects = []
        for source in sources:
            objects.append(directory / (source + ".o"))
            driver = compiler
            if source.endswith(".cc"):
                driver = compiler.replace("gcc", "g++") if "gcc" in compiler else compiler.replace("clang", "clang++")
            subprocess.run([driver, *flags.split(), "-g", *(f"-D{name}" for name in (*defines, *(["EXCEPTIONS"] * exceptions))),
                            "-c", HERE / source, "-o", objects[-1]], check=True)
        link = compiler if not exceptions else compiler.replace("gcc", "g++") if "gcc" in compiler else compiler.replace("clang", "clang++")
        subprocess.run([link, *flags.split(), *objects, "-o", self.path], check=True)
        names = subprocess.run([prefix + "nm", *objects], check=True, capture_output=True, text=True).stdout
        own = {line.split()[-1] for line in names.splitlines() if re.search(r" [TtWV] ", line) and not line.split()[-1].startswith("$")}
        # (start, end, name) of the functions that are ours
        self.functions = []
        for line in subprocess.run([prefix + "nm", "-S", self.path], check=True, capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[3] in own:
                start = int(words[0], 16) & ~1 if arch == "arm" else int(words[0], 16)
                self.functions.append((start, start + int(words[1], 16), words[3]))
        if strip:
            subprocess.run([prefix + "objcopy", *strip, self.path], check=True)

    def ranges(self):
        return ",".join(f"{start:x}-{end:x}" for start, end, _ in self.functions)

    def function_at(self, address):
        return next((name for start, end, name in self.functions if start <= address < end), None)


class Outcome:
    def __init__(self, command):
        assert WALK_STEPS.exists(), f"{WALK_STEPS} is not built"
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT)
        self.text = run.stdout + run.stderr
        print(self.text)
        totals = re.search(r"^steps .*$", run.stdout, re.MULTILINE)
        assert totals, self.text
        words = totals[0].split()
        self.count = {words[at]: int(words[at + 1]) for at in range(0, len(words), 2)}
        self.wrong_at = {int(address, 16): int(times) for times, address in re.findall(r"^wrong (\d+) times at [^+]*\+0x([0-9a-f]+)$", run.stdout, re.MULTILINE)}

    def check(self, steps, in_handlers=True, no_table=0.005, unsettled=0.05):
        count = self.count
        assert count["wrong"] == 0, self.text
        assert count["steps"] >= steps, "the program did not run through"
        assert count["right"] + count["no_table"] + count["unsettled"] == count["steps"]
        assert count["no_table"] <= count["steps"] * no_table, self.text
        assert count["unsettled"] <= count["steps"] * unsettled, self.text
        assert count["not_root"] == 0, "walks to the outermost frame that do not say so"
        assert count["deepest"] >= 15
        if in_handlers:
            assert count["in_handlers"] >= 30


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


@pytest.mark.parametrize("flags", ["-O2 -static", "-Os -static-pie"])
def test_x86_64_static(tmp_path, flags):
    """Without .eh_frame_hdr (-static) and with it. Exceptions are left out: there, libgcc sorts all tables at the first one."""
    program = Program(tmp_path, "x86_64", "gcc", flags)
    Outcome([WALK_STEPS, "ptrace", program.path]).check(steps=20000)


@pytest.mark.parametrize("flags", ["-O2 -static", "-Os -static -mbranch-protection=standard", "-O2 -static -fno-omit-frame-pointer -fPIC", "-O0 -static"])
def test_aarch64(tmp_path, flags):
    need("qemu-aarch64-static")
    program = Program(tmp_path, "aarch64", "aarch64-linux-gnu-gcc", flags, defines=["PLAIN"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-aarch64-static", "aarch64", program.path])
    # glibc's crt1.o puts __wrap_main, two instructions, into the table entry of _start, which says "outermost".
    wrap_main = int(re.search(r"^([0-9a-f]+) t __wrap_main$", subprocess.run(
        [program.tools + "nm", program.path], capture_output=True, text=True, check=True).stdout, re.MULTILINE)[1], 16)
    known = [address for address in outcome.wrong_at if wrap_main <= address < wrap_main + 8]
    for address in known:
        outcome.count["wrong"] -= outcome.wrong_at[address]
        outcome.count["steps"] -= outcome.wrong_at[address]
    outcome.check(steps=5000, no_table=0.02)


@pytest.mark.parametrize("flags", ["-O2 -mthumb", "-Os -mthumb", "-O2 -marm", "-O0 -mthumb"])
def test_arm_debug_frame(tmp_path, flags):
    need("qemu-arm-static")
    program = Program(tmp_path, "arm", "arm-linux-gnueabihf-gcc", flags + " -static", defines=["PLAIN"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-arm-static", "arm", program.path, program.ranges()])
    outcome.check(steps=800, in_handlers=True)


@pytest.mark.parametrize("flags", ["-O2 -mthumb", "-O2 -marm"])
def test_arm_exidx_alone(tmp_path, flags):
    need("qemu-arm-static")
    program = Program(tmp_path, "arm", "arm-linux-gnueabihf-gcc", flags + " -funwind-tables -static", defines=["PLAIN"],
                      strip=["-R", ".debug_frame"])
    outcome = Outcome([WALK_STEPS, "emulator", "qemu-arm-static", "arm", program.path, program.ranges()])
    count = outcome.count
    share = count["right"] / count["steps"]
    print(f"{100 * share:.1f} % of {count['steps']} instructions right by .ARM.exidx alone")
    assert count["steps"] >= 800
    assert share >= 0.75
