"""Probes are placed where objdump shows that every call passes once, and decoded registers include those of Capstone."""
import bisect
import collections
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

    def reached(self, arch, begin, size):
        """Instructions that a function reaches without exceptions and switches."""
        found, pending = set(), [begin]
        while pending:
            at = pending.pop()
            if at in found or not begin <= at < begin + size or at not in self.instructions:
                continue
            found.add(at)
            text = self.instructions[at][1]
            if jump := BRANCH[arch].match(text):
                pending.append(int(jump[2], 16))
            if not (JUMP[arch].match(text) or INDIRECT[arch].match(text) or RETURN[arch].match(text)):
                pending.append(self.addresses[bisect.bisect_right(self.addresses, at)])
        return found

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


RETURN = {"x86_64": re.compile(r"^(bnd |repz )?ret"), "aarch64": re.compile(r"^reta?"), "arm": re.compile(r"^(bx\w* lr|(pop|ldm)\w* .*pc}|mov\w* pc, lr|ldr\w* pc, \[sp\], #)")}
JUMP = {"x86_64": re.compile(r"^(?:bnd )?jmp\s+([0-9a-f]+)\b"), "aarch64": re.compile(r"^b\s+([0-9a-f]+) <"), "arm": re.compile(r"^b(?!l|ic)\w*\s+([0-9a-f]+) <")}
INDIRECT = {"x86_64": re.compile(r"^(?:bnd )?jmp\s+\*"), "aarch64": re.compile(r"^br\w*\s"), "arm": re.compile(r"^bx\w* (?!lr)|^ldr\w* pc, (?!\[sp)")}
for table in RETURN, JUMP, INDIRECT:
    table["x86"] = table["x86_64"]


def test_returns(code):
    """All returns and tail calls that objdump shows, and nothing else. A cheaper place is passed once before each return."""
    arch, file, disassembled = code
    functions = [(address, size) for address, size in disassembled.functions if size]
    lines = [f"{address:x} {disassembled.code(address, size)}" for address, size in functions]
    cheaper = tails = 0
    refused = collections.Counter()
    for (address, size), exact, cheap in zip(functions, run(lines, arch, "returns"), run(lines, arch, "returns", "cheap"), strict=True):
        where = f"{file.name} {address:#x}"
        assert exact.startswith("-") == cheap.startswith("-"), where
        if exact.startswith("-"):
            refused[exact[2:]] += 1
            continue
        found = {int(word.removeprefix("t"), 16): word.startswith("t") for word in exact.split()}
        inside = disassembled.between(address, address + size)
        text = {at: disassembled.instructions[at][1] for at in inside}
        returns = {at for at in inside if RETURN[arch].match(text[at])}
        leaving = {at for at in inside if (jump := JUMP[arch].match(text[at])) and not address <= int(jump[1], 16) < address + size}
        indirect = {at for at in inside if INDIRECT[arch].match(text[at])}
        assert {at for at, tail in found.items() if not tail} == returns, where
        reached = disassembled.reached(arch, address, size)
        tail_calls = {at for at, tail in found.items() if tail}
        assert tail_calls <= leaving | indirect, where
        # Only exceptions lead to the others.
        assert leaving - tail_calls <= set(inside) - reached, (where, leaving - tail_calls)
        tails += any(found.values())
        # The places are in the order of the returns.
        for last, word in zip(sorted(found), cheap.split(), strict=True):
            place = int(word.removeprefix("t"), 16)
            if place == last:
                continue
            cheaper += 1
            assert arch != "aarch64" and place < last, (where, word)
            between = disassembled.between(place, last)
            assert not any(LEAVES[arch].match(text[at]) for at in between[1:]), (where, word)
            assert not any(place < target <= last for target in disassembled.targets), (where, word)
            assert not any(re.search(r"%[re]?a[xhl]$", text[at]) for at in between[1:]), (where, word)
            if LEAVES[arch].match(text[place]):
                # The other way ends in a call that never returns.
                target = int(BRANCH[arch].match(text[place])[2], 16)
                rest = disassembled.between(target, address + size)
                assert text[rest[-1]].startswith("call") and not any(re.match(r"(bnd |notrack )?(j|ret)", text[at]) for at in rest), (where, word)
    accepted = len(functions) - sum(refused.values())
    print(f"{arch} {file}: {len(functions)} functions, {accepted} with all returns, {tails} with tail calls, {cheaper} cheaper places, refused: {dict(refused)}")
    assert accepted > len(functions) * 0.8


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
