"""Names from maps that Debian's ld writes, for x86-64 and Arm, against `nm` of the same file before stripping."""
import json
import re
import subprocess

import pytest
from flamewire import TESTS_BIN

FIRST = """
#include <cstdio>
namespace city { struct Road { int length(int) const; }; __attribute__((noinline)) int Road::length(int n) const { asm volatile(""); return n * 3; } }
extern "C" int from_archive(int);
static __attribute__((noinline)) int hidden(int n) { asm volatile(""); return n * 7 + 1; }
static __attribute__((noinline, cold)) int rarely(int n) { asm volatile(""); return n * 9 + 5; }
template <class T> __attribute__((noinline)) T twice(T n) { asm volatile(""); return n + n; }
int main(int argc, char**) { return std::printf("%d\\n", city::Road{}.length(argc) + hidden(argc) + rarely(argc) + from_archive(argc) + twice(argc) + int(twice(2.0))); }
"""
SECOND = """
static __attribute__((noinline)) int buried(int n) { asm volatile(""); return n * 11; }
int from_archive(int n) { return buried(n) + buried(n + 1); }
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def link(folder, triplet, *options):
    """A program of two objects, one of them in an archive, with its map. Returns (map, [(address, size, kind, name)] from nm)."""
    (folder / "first.cc").write_text(FIRST)
    (folder / "second.c").write_text(SECOND)
    run(f"{triplet}-g++", "-O2", *options, "-c", "first.cc", cwd=folder)
    run(f"{triplet}-gcc", "-O2", *options, "-c", "second.c", cwd=folder)
    run(f"{triplet}-ar", "rc", "libsecond.a", "second.o", cwd=folder)
    run(f"{triplet}-g++", "first.o", "libsecond.a", "-Wl,-Map=program.map", "-o", "program", cwd=folder, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    rows = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) ([tTwW]) (.+)$", run(f"{triplet}-nm", "-SC", "program", cwd=folder), re.M)
    run(f"{triplet}-strip", "program", cwd=folder)
    return [(int(address, 16), int(size, 16), kind, name) for address, size, kind, name in rows]


def names(folder, addresses, *options):
    result = subprocess.run([TESTS_BIN / "symbolize_dump", folder / "program", "--demangle", *options], input="".join(f"{address:x}\n" for address in addresses), text=True, capture_output=True, check=True)
    return [frames[0][0] if (frames := json.loads(line)) else None for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize("triplet, flags", [("x86_64-linux-gnu", []), ("arm-linux-gnueabihf", ["-mthumb"]), ("arm-linux-gnueabihf", ["-marm"]), ("aarch64-linux-gnu", [])])
def test_functions_in_separate_sections_have_the_names_from_nm(tmp_path, triplet, flags):
    functions = link(tmp_path, triplet, "-ffunction-sections", *flags)
    ours = {name for _, _, _, name in functions if re.search(r"main|Road|hidden|rarely|twice|from_archive|buried", name)}
    assert {"city::Road::length(int) const", "from_archive", "main"} <= ours and len(ours) == 8, ours
    addresses = [address + offset for address, size, _, _ in functions for offset in (0, size // 2, size - 1)]
    expected = [name for _, _, _, name in functions for _ in range(3)]
    found, printed = names(tmp_path, addresses)
    assert "names come from the linker map" in printed
    for address, name, want in zip(addresses, found, expected):
        if want in ours:
            assert name == want, (hex(address), name, want)
        else:  # objects of the C runtime: a global's name, or the object that contains a local
            assert name in (want, None) or re.fullmatch(r"\[(crt\w+|Scrt1|\w+)\.(o|a\(.+\))\]", name), (hex(address), name, want)


@pytest.mark.parametrize("triplet", ["x86_64-linux-gnu", "arm-linux-gnueabihf"])
def test_without_separate_sections_globals_have_names_and_locals_never_those_of_another_object(tmp_path, triplet):
    functions = link(tmp_path, triplet)
    objects = {"first": {"main", "city::Road::length(int) const", "hidden(int)", "rarely(int)", "int twice<int>(int)", "double twice<double>(double)"}, "second": {"from_archive", "buried"}}
    for address, size, kind, want in functions:
        of = next((names_ for names_ in objects.values() if want in names_), None)
        if of is None:
            continue
        (name,), _ = names(tmp_path, [address])
        if kind in "TW":
            assert name == want, (hex(address), name, want)
        else:
            assert name in of or name in ("[first.o]", "[libsecond.a(second.o)]"), (hex(address), name, want)
