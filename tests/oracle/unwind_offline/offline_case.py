"""A recorded case of libunwindstack's offline tests: a folder with maps.txt, regs.txt, stack*.data, ELF files (gzipped or not, here or at
the places in links.txt) and output.txt, the frames that its unwinder finds.

    output.txt   "  #01 pc 0000000000000dd9  unwind_test64 (calling2+633)": the pc is relative to the ELF file, as that tool prints it: for a
                 caller, an address inside the call instruction.
    maps.txt     format of /proc/PID/maps; older ones have inclusive ends
    stack*.data  the start address, 8 bytes, then the bytes
"""
import gzip
import re
import struct
from typing import NamedTuple

from walk_frames import REGISTERS


class Unusable(Exception):
    """A case that cannot be compared because files are missing."""


class Map(NamedTuple):
    start: int
    end: int
    executable: bool
    offset: int
    name: str


class Expected(NamedTuple):
    pc: int
    name: str  # of the mapping


PAGE = 4096


def read_maps(path):
    maps = []
    for line in path.read_text().splitlines():
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+)(?: [0-9a-f]+:[0-9a-f]+ \d+)?\s*(.*)$", line.strip())
        if not match:
            if line.strip():
                raise Unusable(f"maps.txt: {line!r}")
            continue
        end = int(match[2], 16)
        if end % PAGE == PAGE - 1:
            end += 1
        maps.append(Map(int(match[1], 16), end, "x" in match[3], int(match[4], 16), match[5]))
    return maps


def read_registers(path):
    registers = {}
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if value.strip():
            registers[name.strip()] = int(value, 16)
    return registers


def arch_of(directory, registers):
    for suffix, arch in (("_x86_64", "x86_64"), ("_x86", "x86"), ("_arm64", "aarch64"), ("_arm", "arm")):
        if directory.name.endswith(suffix):
            return arch
    if "rip" in registers:
        return "x86_64"
    if "eip" in registers:
        return "x86"
    return "aarch64" if any(re.fullmatch(r"x\d+", name) for name in registers) else "arm"


def read_output(path):
    frames = []
    for line in path.read_text().splitlines():
        match = re.match(r"\s*#(\d+) pc ([0-9a-f]+)\s+(.*)$", line)
        if match:
            # "fake.apk!library.so (offset 0x4000) (function+28)"
            name = re.sub(r" \([^()]*(\([^()]*\)[^()]*)*\)$", "", match[3])
            name = re.sub(r" \(offset 0x[0-9a-f]+\)$", "", name).partition("!")[0]
            frames.append(Expected(int(match[2], 16), name))
    return frames


class Elf:
    """The parts of an ELF image that are needed to read its code."""

    def __init__(self, data):
        self.data = data
        self.valid = data[:4] == b"\x7fELF"
        self.segments = []
        if not self.valid:
            return
        if data[4] == 2:
            offset, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
            layout = "<IIQQQQ"
        else:
            offset, size, count = *struct.unpack_from("<I", data, 28), *struct.unpack_from("<HH", data, 42)
            layout = "<IIIII"
        for index in range(count):
            if offset + index * size + struct.calcsize(layout) > len(data):
                break
            fields = struct.unpack_from(layout, data, offset + index * size)
            kind, (place, address), length = fields[0], (fields[2:4] if data[4] == 2 else fields[1:3]), fields[5 if data[4] == 2 else 4]
            if kind == 1:
                self.segments.append((address, place, length))

    def code(self, address, size):
        for start, place, length in self.segments:
            if start <= address and address + size <= start + length:
                return self.data[place + address - start:place + address - start + size]
        return b""


class Case:
    def __init__(self, directory, work):
        self.directory = directory
        self.work = work
        for name in ("maps.txt", "regs.txt", "output.txt"):
            if not (directory / name).is_file():
                raise Unusable(f"{name} is missing")
        self.maps = read_maps(directory / "maps.txt")
        self.registers = read_registers(directory / "regs.txt")
        self.arch = arch_of(directory, self.registers)
        self.expected = read_output(directory / "output.txt")
        self.stacks = sorted(directory.glob("stack*.data"))
        if not self.stacks:
            raise Unusable("stack.data is missing")
        self.links = {}
        if (directory / "links.txt").is_file():
            for line in (directory / "links.txt").read_text().splitlines():
                if len(words := line.split()) == 2:
                    self.links[words[1]] = words[0]
        self.images = {}  # (name, ELF offset) -> (number, path, Elf)

    def file_of(self, name):
        """The bytes of a mapping's file, or None."""
        base = name.rpartition("/")[2]
        if not base:
            return None
        target = self.links.get(base, base)
        for path in (self.directory / target, self.directory / (target + ".gz")):
            if path.is_file():
                data = path.read_bytes()
                return gzip.decompress(data) if path.suffix == ".gz" else data
        return None

    def image_of(self, mapping):
        """(number of the module, offset of the mapping within its ELF image), or (0, …) without a file."""
        data = self.file_of(mapping.name)
        if data is None:
            return 0, mapping.offset
        # An ELF file inside another file starts at a page boundary, at or before the start of the mapping.
        elf_offset = 0
        if data[:4] != b"\x7fELF":
            elf_offset = next((offset for offset in range(mapping.offset - mapping.offset % PAGE, -1, -PAGE)
                               if data[offset:offset + 4] == b"\x7fELF"), 0)
        key = (mapping.name, elf_offset)
        if key not in self.images:
            number = len(self.images) + 1
            path = self.work / f"{self.directory.name}-{number}"
            path.write_bytes(data)
            self.images[key] = (number, path, Elf(data[elf_offset:]))
        return self.images[key][0], mapping.offset - elf_offset

    def describe(self, walker):
        """Sends everything about the case to the walker."""
        # In a small user address space, pointer authentication codes begin at a lower bit.
        highest = max([mapping.end for mapping in self.maps] + [self.registers.get("sp", 0)])
        walker.start(self.arch, 39 if highest <= 1 << 39 else 48)
        pieces = [(mapping, *self.image_of(mapping)) for mapping in self.maps if mapping.executable]
        for (_, elf_offset), (number, path, _) in self.images.items():
            walker.module(number, path, elf_offset)
        for mapping, number, offset in pieces:
            walker.piece(mapping.start, mapping.end, number, offset)
        for path in self.stacks:
            walker.memory_of_file(struct.unpack("<Q", path.read_bytes()[:8])[0], path, 8, path.stat().st_size - 8)
        names = REGISTERS[self.arch]
        walker.registers({name: value for name, value in self.registers.items() if name in names})

    def elf(self, number):
        return next((elf for found, _, elf in self.images.values() if found == number), None)

    def printed_pc(self, frame, thumb):
        """The pc of a caller's frame in that tool's format: an address inside the call, odd in Thumb code. Our frames have no Thumb bit."""
        address = frame.address
        if self.arch in ("x86", "x86_64"):
            return address - 1 if address else 0
        if self.arch == "aarch64":
            return address - 4 if address >= 4 else 0
        if not thumb:
            return address - 4
        elf = self.elf(frame.module)
        code = elf.code(address - 4, 4) if elf else b""
        first, last = struct.unpack("<HH", code) if len(code) == 4 else (0, 0)
        is_long = first & 0xF000 == 0xF000 and last & 0xE000 == 0xE000
        return address + 1 - (4 if is_long else 2)

    def printed(self, frames):
        """[Expected…] for a walk's frames."""
        result = []
        for index, frame in enumerate(frames):
            # An interrupted frame is reached by the return from a signal handler, not by a call.
            called = frame.is_return and (index + 1 == len(frames) or frames[index + 1].is_return)
            thumb = index < len(self.expected) and self.expected[index].pc % 2 == 1
            pc = self.printed_pc(frame, thumb) if called else frame.address
            result.append(Expected(pc, self.name_at(frame.pc - 1 if called else frame.pc)))
        return result

    def name_at(self, pc):
        for mapping in self.maps:
            if mapping.start <= pc < mapping.end:
                return mapping.name or f"<anonymous:{mapping.start:x}>"
        return "<unknown>"
