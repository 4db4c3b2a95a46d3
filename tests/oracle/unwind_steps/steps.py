"""The unwinder at every single instruction of a program, compared with the true stack at that moment.

walk_steps runs the program step by step (x86-64: ptrace; aarch64 and arm: the GDB stub of qemu's user emulation) and keeps a shadow stack: a
call pushes its return address, a return pops it. This is the true stack, and it does not depend on unwind tables. The program (program.c,
exceptions.cc, program_ARCH.S) has leaf functions, alloca and arrays of variable length, pushed arguments, tail calls, calls that never return
as the last instruction, longjmp, exceptions, a signal handler on two alternate stacks, calls through the PLT with lazy binding, libc, the vDSO,
and assembly with call frame information.

Every frame's pc and stack pointer must be right at every instruction, with two exceptions:
- Code without any table (a few instructions of the C start-up code). These steps are counted and limited.
- While the stack is changed by other means than calls and returns: from where libgcc begins to overwrite the registers that the callers of an
exception's landing function saved, until it has landed; the same for longjmp. These steps are counted and limited too.
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
        # (start, end, name) of the program's own functions
        self.functions = []
        for line in subprocess.run([prefix + "nm", "-S", self.path], check=True, capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            if len(words) == 4 and words[3] in own:
                start = int(words[0], 16) & ~1 if arch == "arm" else int(words[0], 16)
                self.functions.append((start, start + int(words[1], 16), words[3]))
        if strip:
            subprocess.run([prefix + "objcopy", *strip, self.path], check=True)

    def move_debug_frame(self):
        """Moves .debug_frame into the compressed small file of .gnu_debugdata, as on Android."""
        small = self.path.with_suffix(".small")
        subprocess.run([self.tools + "objcopy", "--only-keep-debug", "-R", ".debug_info", "-R", ".debug_str", self.path, small], check=True)
        subprocess.run(["xz", "--force", small], check=True)
        subprocess.run([self.tools + "objcopy", "--strip-debug", "--add-section", f".gnu_debugdata={small}.xz", self.path], check=True)

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

    def check(self, steps, whole_stacks=True, no_table=0.005, unsettled=0.05):
        count = self.count
        assert count["wrong"] == 0, self.text
        assert count["steps"] >= steps, "the program did not run to its end"
        assert count["right"] + count["no_table"] + count["unsettled"] == count["steps"]
        assert count["no_table"] <= count["steps"] * no_table, self.text
        assert count["unsettled"] <= count["steps"] * unsettled, self.text
        assert count["deepest"] >= 15
        assert count["in_handlers"] >= 30
        if whole_stacks:
            assert count["not_root"] == 0, "walks to the outermost frame that do not report it"
