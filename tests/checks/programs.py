"""Checks the hardening of built or packaged programs against memory bugs (cmake/Hardening.cmake), from their files.

    tests/checks/programs.py FILE...

With debug info in FILE or FILE.debug, also checks the flags of each unit that was compiled in BUILD, for BUILD/bin/FILE."""
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE_BY = ROOT / "cmake" / "Hardening.cmake"

BRANCHES = {"Advanced Micro Devices X86-64": "-fcf-protection=full", "AArch64": "-mbranch-protection=standard"}
# The part of a flag before its value: a later flag with the same stem replaces the earlier one.
STEM = re.compile(r"-[fm](?:no-)?(stack-protector|stack-clash|cf-protection|branch-protection)")


# Only these units of the static agent for x86-64 have the stack protector.
DECODERS = re.compile(r"(^|/)(src/(base|wire|secure|elf|unwind|perf|agent/process)/|mbedtls/|"
                      r"flamewire_(agent_commands|secure|elf)_agent\.dir/)")


def readelf(*words: str | pathlib.Path) -> str:
    return subprocess.run(["readelf", "-W", *words], check=True, capture_output=True, text=True, errors="replace").stdout


@dataclasses.dataclass
class Segment:
    kind: str
    start: int
    end: int
    flags: str


@dataclasses.dataclass
class Program:
    path: pathlib.Path
    text: str

    @property
    def segments(self) -> list[Segment]:
        found = re.findall(r"^  (\w+) +0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x(\w+) ([RWE ]{3}) 0x", self.text, re.M)
        return [Segment(kind, int(start, 16), int(start, 16) + int(size, 16), flags) for kind, start, size, flags in found]

    def sections(self, *names: str) -> list[tuple[str, int, int]]:
        found = re.findall(r"^  \[ *\d+\] (\S+) +\w+ +(\w+) \w+ (\w+) ", self.text, re.M)
        return [(name, int(start, 16), int(start, 16) + int(size, 16)) for name, start, size in found if name in names]

    @property
    def library(self) -> bool:
        return "(SONAME)" in self.text

    @property
    def static(self) -> bool:
        return not any(segment.kind == "INTERP" for segment in self.segments)


def of_memory(program: Program) -> list[str]:
    found = []
    segments = program.segments
    for segment in segments:
        if segment.kind in ("LOAD", "GNU_STACK") and "W" in segment.flags and "E" in segment.flags:
            found.append("the stack is executable" if segment.kind == "GNU_STACK" else "a segment is writable and executable")
    if not any(segment.kind == "GNU_STACK" for segment in segments):
        found.append("it does not state that the stack is not executable")
    read_only = [segment for segment in segments if segment.kind == "GNU_RELRO"]
    if not read_only:
        found.append("no RELRO: nothing becomes read-only after the start")
    # A library is bound immediately if its program is.
    for name, start, end in program.sections(".got", ".got.plt", ".init_array", ".fini_array", ".data.rel.ro"):
        if read_only and not program.library and not any(segment.start <= start and end <= segment.end for segment in read_only):
            found.append(f"RELRO is not full: {name} stays writable")
    return found


def of_search_path(program: Program) -> list[str]:
    """An empty or relative element refers to the current folder: anyone who can write there could run code as the program's user."""
    paths = re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]$", program.text, re.M)
    return [f"{kind} has an empty or relative element: '{path}'" for kind, path in paths
            if not all(re.match(r"/|\$ORIGIN(/|$)", element) for element in path.split(":"))]


def of_dynamic_program(program: Program) -> list[str]:
    found = []
    if not re.search(r"\(FLAGS_1\).*\bPIE\b", program.text):
        found.append("it is not position-independent (PIE)")
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b", program.text):
        found.append("RELRO is not full: functions are bound when they are first called")
    imports = re.findall(r" UND (\w+)", program.text)
    if "__stack_chk_fail" not in imports:
        found.append("no function has a stack protector")
    if not any(name.endswith("_chk") for name in imports):
        found.append("no call is checked by _FORTIFY_SOURCE")
    return found


def fortified(folder: pathlib.Path) -> set[str] | None:
    """The files that a build compiles with _FORTIFY_SOURCE, which debug info does not contain. None: unknown."""
    commands = folder / "compile_commands.json"
    if not commands.exists():
        return None
    return {entry["file"] for entry in json.loads(commands.read_text())
            if entry["command"].rfind("-D_FORTIFY_SOURCE=") > entry["command"].rfind("-U_FORTIFY_SOURCE")}


def of_debug_info(program: Program) -> list[str]:
    """Checks the flags of each unit that was compiled in the program's build folder."""
    beside = program.path.with_name(program.path.name + ".debug")
    file = beside if beside.exists() else program.path
    machine = re.findall(r"Machine: +(.*)$", program.text, re.M)
    of_all = ["-fstack-clash-protection", *[flag for name, flag in BRANCHES.items() if name in machine]] if not program.static else []
    decoders_alone = program.static and "Advanced Micro Devices X86-64" in machine
    if program.static and beside.exists() and not re.search(r" __(?!stack)\w+_chk$", readelf("-s", beside), re.M):
        return ["no call is checked by _FORTIFY_SOURCE"]
    folder = program.path.resolve().parent.parent
    checked_calls = fortified(folder)
    found, units = set(), 0
    for unit in readelf("--debug-dump=info", "--dwarf-depth=1", file).split("DW_TAG_compile_unit")[1:]:
        attributes = dict(re.findall(r"DW_AT_(producer|name|comp_dir) *:(?:.*\): | *)(.*)$", unit, re.M))
        if attributes.get("comp_dir") != str(folder):
            continue
        units += 1
        wanted = of_all if decoders_alone and not DECODERS.search(attributes.get("name", "")) else ["-fstack-protector-strong", *of_all]
        if checked_calls is not None and attributes.get("name") not in checked_calls:
            found.add(f"{attributes.get('name')} is compiled without _FORTIFY_SOURCE")
        # clang does not record its flags.
        if not attributes.get("producer", "").startswith("GNU "):
            continue
        valid = {stem[1]: flag for flag in attributes["producer"].split() if (stem := STEM.match(flag))}
        found.update(f"{attributes.get('name')} is compiled without {flag}" for flag in wanted if flag not in valid.values())
    if checked_calls is not None and units == 0:
        return ["its debug information has no unit of this build"]
    return sorted(found)


def check(path: pathlib.Path) -> list[str]:
    program = Program(path, readelf("-h", "-l", "-d", "-S", "--dyn-syms", path))
    found = of_memory(program) + of_search_path(program)
    if not program.library:
        if not program.static:
            found += of_dynamic_program(program)
        found += of_debug_info(program)
    return [f"{path}: {finding}" for finding in found]


def is_program(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def built() -> list[pathlib.Path]:
    """The programs in the tree's build folders. Omits programs that are older than the rules: the next build replaces them."""
    names = ("flamewire", "flamewire-server", "flamewire-agent")
    found = [folder / "bin" / name for folder in [ROOT / "build", *sorted(ROOT.glob("build-agent-*"))] for name in names]
    return [path for path in found if path.exists() and path.stat().st_mtime > MADE_BY.stat().st_mtime]


def main(names: list[str]) -> int:
    if not names:
        print(__doc__)
        return 2
    found = [finding for name in names for finding in check(pathlib.Path(name))]
    print("\n".join(found) or f"{len(names)} programs are hardened.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
