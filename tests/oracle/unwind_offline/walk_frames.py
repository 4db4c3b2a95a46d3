"""Our unwinder as a child process (walk_frames.cc): it reads registers and memory, and returns frames."""
import subprocess
from typing import NamedTuple

# DWARF numbers of registers, by the names that tools print.
REGISTERS = {
    "x86_64": {name: number for number, name in enumerate(
        "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split())},
    "x86": {name: number for number, name in enumerate("eax ecx edx ebx esp ebp esi edi eip".split())},
    "aarch64": {**{f"x{number}": number for number in range(31)}, "fp": 29, "lr": 30, "sp": 31, "pc": 32},
    "arm": {**{f"r{number}": number for number in range(16)}, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15},
}


class Frame(NamedTuple):
    pc: int
    sp: int
    is_return: bool
    how: str
    module: int   # as given to module(); 0: code without a file
    address: int  # the pc as the ELF file's virtual address


class Walker:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def say(self, line):
        self.process.stdin.write(line + "\n")

    def start(self, arch, address_bits=48):
        self.arch = arch
        self.say(f"start {arch} {address_bits:x}")

    def module(self, number, path, elf_offset=0):
        self.say(f"module {number:x} {elf_offset:x} {path}")

    def piece(self, start, end, module, offset):
        self.say(f"piece {start:x} {end:x} {module:x} {offset:x}")

    def memory_of_file(self, address, path, offset, size):
        self.say(f"memory {address:x} {size:x} {offset:x} {path}")

    def memory(self, ranges):
        """Replaces the memory with [(address, bytes)…]."""
        self.say("no-memory")
        for address, data in ranges:
            self.say(f"bytes {address:x} {data.hex()}")

    def registers(self, values):
        """{name: value}, with names as in REGISTERS. Others are ignored."""
        self.say("no-registers")
        numbers = REGISTERS[self.arch]
        for name, value in values.items():
            if name in numbers:
                self.say(f"register {numbers[name]:x} {value:x}")

    def walk(self, max_depth=512):
        """Returns ([Frame…], stop reason)."""
        self.say(f"walk {max_depth:x}")
        self.process.stdin.flush()
        frames = []
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "stop":
                return frames, words[1]
            frames.append(Frame(int(words[1], 16), int(words[2], 16), words[3] == "1", words[4], int(words[5], 16), int(words[6], 16)))
        raise RuntimeError("the walker exited")
