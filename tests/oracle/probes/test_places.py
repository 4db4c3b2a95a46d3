"""Probes are placed where objdump shows that every call passes once, and decoded registers include those of Capstone."""
import bisect
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PLACES = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", HERE.parents[2] / "build" / "bin")) / "probe_places"
X86_64, X86, AARCH64 = pathlib.Path("/usr/lib/x86_64-linux-gnu"), pathlib.Path("/usr/lib32"), pathlib.Path("/usr/aarch64-linux-gnu/lib")
# Architecture, file, and how many of its functions must get an emulated place, as a share.
FILES = [("x86_64", X86_64 / "libc.so.6"), ("x86_64", pathlib.Path("/bin/bash")), ("x86_64", X86_64 / "libstdc++.so.6"), ("x86_64", X86_64 / "libpython3.11.so.1.0"),
         ("x86", X86 / "libc.so.6"), ("x86", X86 / "libstdc++.so.6"), ("aarch64", AARCH64 / "libc.so.6"), ("aarch64", AARCH64 / "libstdc++.so.6")]
BRANCH = {"x86_64": re.compile(r"^(?:bnd |notrack )?(j\w+|loop\w*|xbegin)(?:,p[nt])?\s+([0-9a-f]+)\b"), "aarch64": re.compile(r"^(b|b\.\w+|cbn?z|tbn?z)\s+(?:[^<]*\s)?([0-9a-f]+) <")}
BRANCH["x86"] = BRANCH["x86_64"]
LEAVES = {"x86_64": re.compile(r"^(?:bnd |notrack |rep |repz )?(j|call|ret|loop|syscall|int|ud|hlt|xbegin|xabort)|\(bad\)"), "aarch64": re.compile(r"^(b|bl|br|blr|ret\w*|b\.\w+|cb\w+|tb\w+|svc|brk|udf)\s|^ret$")}
LEAVES["x86"] = LEAVES["x86_64"]
# Classes of InstructionClass and what objdump calls them.
CLASSES = {"x86_64": {0: r"nop$", 3: r"push\s+%r", 4: r"j(?!mp)\w+", 5: r"jmp\s+[0-9a-f]", 6: r"call\s+[0-9a-f]"}, "aarch64": {0: r"nop$", 4: r"(b\.\w+|cbn?z|tbn?z)\s", 5: r"(b|br|ret)\b", 6: r"blr?\s", 7: r"adrp?\s"}}
CLASSES["x86"] = CLASSES["x86_64"] | {3: r"push\s+%e"}


class Code:
    def __init__(self, arch, file):
        tool = {"aarch64": "aarch64-linux-gnu-"}.get(arch, "")
        listing = subprocess.run([tool + "objdump", "-d", "-w", "--insn-width=16", file], capture_output=True, text=True, check=True).stdout
        self.instructions = {}  # address → (bytes in hexadecimal, text)
        for line in listing.splitlines():
            columns = line.split("\t", 2)
            if len(columns) == 3 and columns[0].endswith(":"):
                self.instructions[int(columns[0][:-1], 16)] = (self.in_memory(arch, columns[1].strip()), columns[2].replace("\t", " ").strip())
        self.addresses = sorted(self.instructions)
        self.targets = sorted({int(found.group(2), 16) for _, text in self.instructions.values() if (found := BRANCH[arch].match(text))})
        symbols = subprocess.run([tool + "nm", "-DS", "--defined-only", file], capture_output=True, text=True, check=True).stdout
        found = {}
        for line in symbols.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "TtWwVi" and int(words[1], 16) > 0 and int(words[0], 16) in self.instructions:
                found[int(words[0], 16)] = int(words[1], 16)
        self.functions = sorted(found.items())

    @staticmethod
    def in_memory(arch, code):
        if arch != "aarch64":
            return code.replace(" ", "")
        return "".join(bytes.fromhex(word)[::-1].hex() for word in code.split())

    def between(self, begin, end):
        return self.addresses[bisect.bisect_left(self.addresses, begin) : bisect.bisect_left(self.addresses, end)]

    def code(self, begin, size):
        return "".join(self.instructions[at][0] for at in self.between(begin, begin + size))[: 2 * size]


def run(lines, *arguments):
    return subprocess.run([PLACES, *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(scope="module", params=FILES, ids=lambda param: f"{param[0]}-{param[1].name}")
def code(request):
    arch, file = request.param
    if not file.exists():
        pytest.skip(f"NOT tested: {file} is not installed")
    return arch, file, Code(arch, file)


@pytest.mark.parametrize("needs", ["C", "NONE"])
def test_places(code, needs):
    arch, file, disassembled = code
    lines = run([disassembled.code(*function) for function in disassembled.functions], arch, "place", needs)
    entries = later = 0
    for (address, size), line in zip(disassembled.functions, lines, strict=True):
        offset, emulated, kind = line.split()
        if offset == "-":
            assert re.match(r"(ldr|ldrsw|prfm)\s", disassembled.instructions[address][1])
            continue
        place, where = address + int(offset), f"{file.name} {address:#x}+{offset}"
        assert place < address + size, where
        assert place in disassembled.instructions, where
        if emulated == "0":
            assert place == address, where
            continue
        assert re.match(CLASSES[arch][int(kind)], disassembled.instructions[place][1]), (where, disassembled.instructions[place])
        entries += place == address
        later += place != address
        # No branch of the whole file, also of other functions and parts of this one, leads behind the entry.
        first = bisect.bisect_right(disassembled.targets, address)
        assert first == len(disassembled.targets) or disassembled.targets[first] > place, (where, hex(disassembled.targets[first]))
        for before in disassembled.between(address, place):
            assert not LEAVES[arch].match(disassembled.instructions[before][1]), (where, disassembled.instructions[before])
    total = len(disassembled.functions)
    print(f"{arch} {file} {needs}: {total} functions, emulated at the entry {entries}, emulated later {later}, none {total - entries - later}")
    assert total > 500
    assert later > total // 100


def test_written_registers(code):
    arch, file, disassembled = code
    instructions = sorted(set(disassembled.instructions.values()))
    wrong = []
    for instruction, line in zip(instructions, run([encoded for encoded, _ in instructions], arch, "written"), strict=True):
        ours, continues, theirs = line.split()
        # Capstone 4 lists the first operand of comparisons as written.
        if re.match(r"(test|cmp|tst|cmn)\b", instruction[1]):
            continue
        if ours != "-" and theirs != "-" and continues == "1" and int(theirs) & ~int(ours):
            wrong.append((*instruction, hex(int(ours)), hex(int(theirs))))
    assert not wrong, (len(wrong), wrong[:30])
