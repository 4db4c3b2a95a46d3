"""Unwind information in a jitdump: whole stacks through JIT code that uses the frame pointer for another purpose. GNU as and ld make the
code and its .eh_frame."""
import platform
import subprocess

import bounds
import pytest
from flamewire import BIN, TESTS_BIN

WHOLE = bounds.Check("samples below code with unwind information that have all callers", times=1)
BROKEN = bounds.Check("samples below such code without unwind information that have all callers", times=1)

# Calls its first argument and passes its second one.
CODE = """
    .globl caller
caller:
    .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    sub $24, %rsp
    .cfi_adjust_cfa_offset 24
    mov %rdi, %rbx
    mov %rsi, %rdi
    mov $12345, %ebp
    call *%rbx
    add $24, %rsp
    .cfi_adjust_cfa_offset -24
    pop %rbx
    .cfi_adjust_cfa_offset -8
    pop %rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
"""
# The layout that the format intends: the .eh_frame after the code, at a multiple of 8.
LAYOUT = "SECTIONS { .text 0x10000 : { *(.text) } .eh_frame ALIGN(8) : { *(.eh_frame) } }"


def tool(*command):
    subprocess.run(command, check=True, timeout=60)


@pytest.fixture
def caller(tmp_path):
    """The files of the code and of its .eh_frame."""
    (tmp_path / "caller.s").write_text(CODE)
    (tmp_path / "layout").write_text(LAYOUT)
    tool("as", tmp_path / "caller.s", "-o", tmp_path / "caller.o")
    tool("ld", "--no-ld-generated-unwind-info", "-e", "caller", "-T", tmp_path / "layout", tmp_path / "caller.o", "-o", tmp_path / "caller")
    for section in ("text", "eh_frame"):
        tool("objcopy", "-O", "binary", "-j", f".{section}", tmp_path / "caller", tmp_path / section)
    return tmp_path / "text", tmp_path / "eh_frame"


def samples_below(start, tmp_path, *files):
    """(number of all samples, number of samples with all callers)"""
    recording = tmp_path / f"{len(files)}.flw"
    agent = start.agent("--output", recording, "--frequency", 999, "--events", "cpu-clock", "--no-kernel", "--", TESTS_BIN / "jit-workload", "calls", 3000, *files,
                        cwd=tmp_path)
    assert agent.wait(60) == 0, agent.err
    exported = subprocess.run([BIN / "flamewire", "export", recording, "--format", "collapsed"], check=True, capture_output=True, text=True, timeout=60).stdout
    samples = below = 0
    for line in exported.splitlines():
        stack, count = line.rsplit(" ", 1)
        samples += int(count)
        below += int(count) if ";main;calls;jitted_caller;called;" in stack else 0
    return samples, below


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is x86-64")
@pytest.mark.recording(lost=0)
def test_code_without_frame_pointers(start, tmp_path, caller):
    code, frames = caller
    samples, below = samples_below(start, tmp_path, code, frames)
    # The rules are read after the first sample of the code, so they are missing in the agent's first rounds.
    WHOLE.at_least(below, samples, 0.9)
    samples, below = samples_below(start, tmp_path, code)
    BROKEN.at_most(below, samples, 0.01)
