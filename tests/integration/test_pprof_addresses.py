"""Addresses of a pprof profile without symbols get the names that the program printed itself, for every linker."""

import gzip
import os
import re
import shutil
import subprocess

import pprof
import pytest
from flamewire import BIN

GO = shutil.which("go")
FUNCTIONS = 60
LINKERS = {
    "lld": ["-fuse-ld=lld"],
    "lld-fixed": ["-fuse-ld=lld", "-no-pie"],
    "lld-without-build-id": ["-fuse-ld=lld", "-Wl,--build-id=none"],
    "bfd": ["-fuse-ld=bfd"],
    "bfd-one-segment": ["-fuse-ld=bfd", "-Wl,-z,noseparate-code"],
}


def source():
    """A program that prints the addresses of its functions, and its mappings from the kernel."""
    lines = ["#include <stdio.h>", "volatile int sink;"]
    lines += [f"__attribute__((noinline)) void function_{i}(void) {{ sink += {i}; sink *= {i + 2}; }}" for i in range(FUNCTIONS)]
    lines += ["int main(void) {"]
    lines += [f'function_{i}(); printf("function_{i} %p\\n", (void *)function_{i});' for i in range(FUNCTIONS)]
    lines += ['FILE *maps = fopen("/proc/self/maps", "r"); char line[4096];', "while (fgets(line, sizeof line, maps)) fputs(line, stdout);", "return 0; }"]
    return "\n".join(lines)


def profile_of(program, text):
    """The profile.proto that a sampler without symbols would write for the run that printed `text`."""
    functions = {int(address, 16): name for name, address in re.findall(r"^(function_\d+) 0x(\w+)$", text, re.M)}
    assert len(functions) == FUNCTIONS
    maps = re.findall(rf"^(\w+)-(\w+) r-xp (\w+) .* {re.escape(str(program))}$", text, re.M)
    assert len(maps) == 1, text
    start, limit, offset = (int(number, 16) for number in maps[0])
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True).stdout
    build_id = (re.findall(r"Build ID: (\w+)", notes) or [""])[0]
    words = ["", "samples", "count", str(program), build_id]
    out = ["sample_type { type: 1 unit: 2 }", f"mapping {{ id: 1 memory_start: {start} memory_limit: {limit} file_offset: {offset} filename: 3 build_id: 4 }}"]
    for number, address in enumerate(functions, 1):
        out += [f"location {{ id: {number} mapping_id: 1 address: {address + 1} }}", f"sample {{ location_id: {number} value: {number} }}"]
    out += [f'string_table: "{word}"' for word in words]
    return gzip.compress(pprof.encode("\n".join(out))), {name: number for number, name in enumerate(functions.values(), 1)}


@pytest.fixture(scope="module", params=LINKERS)
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "app.c").write_text(source())
    program = folder / "app"
    subprocess.run(["gcc", "-g", "-O1", *LINKERS[request.param], "-o", program, folder / "app.c"], check=True)
    text = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout
    profile, expected = profile_of(program, text)
    (folder / "app.pb.gz").write_bytes(profile)
    return request.param, folder, program, expected


def exported(folder, *options):
    lines = subprocess.run([BIN / "flamewire", "export", folder / "app.pb.gz", "--format", "collapsed", *options], check=True, capture_output=True, text=True, timeout=120).stdout.splitlines()
    return {line.rsplit(" ", 1)[0].split(";")[-1]: int(line.rsplit(" ", 1)[1]) for line in lines}


def test_names_are_those_that_the_program_printed(case):
    _, folder, _, expected = case
    assert exported(folder) == expected


def test_the_file_can_be_elsewhere(case):
    name, folder, program, expected = case
    elsewhere = folder / "kept" / "app"
    elsewhere.parent.mkdir(exist_ok=True)
    program.rename(elsewhere)
    try:
        assert exported(folder, "--binary", elsewhere) == expected
        # A wrong name is worse than none.
        bare = exported(folder)
        assert all(re.fullmatch(r"\[app\+0x\w+\]", frame) for frame in bare) and len(bare) == FUNCTIONS, (name, bare)
        printed = subprocess.run([BIN / "flamewire", "import", "--data-dir", folder / "data", folder / "app.pb.gz"], check=True, capture_output=True, text=True).stdout
        assert f"Files that are not on this machine: {program}. Their addresses are estimates." in printed
    finally:
        elsewhere.rename(program)


# Except for lld, because pprof takes file offsets for addresses.
@pytest.mark.skipif(GO is None, reason="NOT tested: go is not installed")
@pytest.mark.parametrize("case", [name for name in LINKERS if not name.startswith("lld")], indirect=True)
def test_pprof_finds_the_same_names(case):
    _, folder, _, expected = case
    environment = {**os.environ, "HOME": str(folder), "PPROF_TMPDIR": str(folder)}
    text = subprocess.run([GO, "tool", "pprof", "-symbolize=local", "-top", "-nodefraction=0", folder / "app.pb.gz"], check=True, capture_output=True, text=True, env=environment, timeout=120).stdout
    rows = dict((name, int(flat)) for flat, name in re.findall(r"^ *(\d+) .* (function_\d+)", text, re.M))
    assert rows == expected
