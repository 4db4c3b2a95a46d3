"""The lengths of x86-64 instructions in whole libraries are those of objdump."""
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LENGTHS = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", HERE.parents[2] / "build" / "bin")) / "instruction_lengths"
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
# Compiler output, and assembly with SSE to AVX-512, XOP, FMA4, BMI and x87: C library, big numbers, C++, video, pictures.
FILES = [LIBRARIES / name for name in ("libc.so.6", "libm.so.6", "libgmp.so.10", "libstdc++.so.6", "libx264.so.164", "libdav1d.so.6", "libjpeg.so.62")]
# Data between functions, where the disassembler takes a byte for a lone prefix. It also joins fwait (9b) with the next instruction.
NO_INSTRUCTION = re.compile(r"\(bad\)|\.byte|^((rex(\.[WRXB]+)?|lock|rep|repz|repnz|data16|addr32|[cdefgs]s|bnd|notrack) ?)+$")


@pytest.mark.skipif(not LIBRARIES.exists(), reason="libraries of x86-64 are not installed")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_lengths(file):
    if not file.exists():
        pytest.skip(f"NOT tested: {file} is not installed")
    listing = subprocess.run(["objdump", "-d", "-w", "--insn-width=16", file], capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in listing.splitlines() if line.count("\t") >= 2]
    instructions = [(line[0], line[1].replace(" ", ""), line[2]) for line in lines if not NO_INSTRUCTION.search(line[2].strip()) and not line[1].startswith("9b ")]
    assert len(instructions) > 20000
    lengths = subprocess.run([LENGTHS], input="\n".join(code for _, code, _ in instructions), capture_output=True, text=True, check=True).stdout.split()
    wrong = [(*instruction, length) for instruction, length in zip(instructions, lengths, strict=True) if len(instruction[1]) != 2 * int(length)]
    assert not wrong, (len(wrong), wrong[:20])
