"""Debug info outside of the program: split DWARF, MiniDebugInfo and sections that dwz moved, against llvm-symbolizer and gdb, which read the original or the moved info."""
import json
import os
import re
import shutil
import subprocess

import pytest
from compare_symbolizers import ours, spread, text_section, theirs
from flamewire import ROOT, TESTS_BIN

DUMP = TESTS_BIN / "symbolize_dump"
SOURCE = ROOT / "tests/unit/symbol/fixture/program.cc"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def compiled(folder, compiler, *options, name="program"):
    """A program of two compilation units, to check that units are not confused."""
    (folder / "second.cc").write_text("#include <string>\n#include <vector>\nstatic inline std::size_t half(const std::string& text)\n{\n  return text.size() / 2;\n}\n"
                                      "__attribute__((noinline, used)) std::size_t second(const std::vector<std::string>& all)\n{\n  std::size_t sum = 0;\n  for (const auto& one : all) sum += half(one);\n  return sum;\n}\n")
    run(compiler, "-std=c++20", "-O2", "-g", *options, "-Wl,--build-id", SOURCE, "second.cc", "-o", name, cwd=folder)
    return folder / name


def messages(program, *options):
    return subprocess.run([DUMP, program, *options], input="0\n", check=True, capture_output=True, text=True).stderr


# binutils' dwp 2.40 supports only DWARF 4, and llvm-dwp 14 and 16 do not terminate with two units of g++'s DWARF 5.
@pytest.mark.parametrize("compiler, version, packer", [("g++", 4, None), ("g++", 5, None), ("g++", 4, "dwp"), ("g++", 4, "llvm-dwp-16"),
                                                       ("clang++-19", 4, None), ("clang++-19", 5, None), ("clang++-19", 4, "dwp"), ("clang++-19", 5, "llvm-dwp-16")])
def test_split_dwarf_beside_the_program_and_packed(tmp_path, compiler, version, packer):
    """The oracle reads the same code with complete debug info, because llvm-symbolizer 16 misreads ranges of split DWARF 4."""
    whole = compiled(tmp_path, compiler, f"-gdwarf-{version}", name="whole")
    program = compiled(tmp_path, compiler, f"-gdwarf-{version}", "-gsplit-dwarf")
    assert text_section(program) == text_section(whole)
    objects = list(tmp_path.glob("*.dwo"))
    assert len(objects) == 2
    if packer:
        run(packer, "-e", program, "-o", f"{program}.dwp", cwd=tmp_path)
        for file in objects:
            file.unlink()
    addresses = spread(program, 4000)
    expected = theirs("llvm-symbolizer-16", whole, addresses)
    assert sum(len(frames) > 1 for frames in expected) > 30 and max(map(len, expected)) > 2, "nothing is inlined"
    found = ours(DUMP, program, addresses)
    differing = [(hex(address), mine, other) for address, mine, other in zip(addresses, found, expected) if mine != other]
    assert not differing, differing[:3]
    assert any("second" in frame[0] for frames in found for frame in frames)
    assert messages(program) == ""


def test_split_dwarf_that_is_missing_or_of_another_build(tmp_path):
    program = compiled(tmp_path, "g++", "-gdwarf-5", "-gsplit-dwarf")
    missing = sorted(tmp_path.glob("*second.dwo"))[0]
    addresses = spread(program, 2000)
    whole = ours(DUMP, program, addresses)
    # A file of another build: the same name, but another id.
    other = tmp_path / "other"
    other.mkdir()
    compiled(other, "g++", "-gdwarf-5", "-gsplit-dwarf", "-DANOTHER", "-O1")
    kept = missing.read_bytes()
    for content in (None, next(other.glob("*second.dwo")).read_bytes()):
        missing.unlink() if content is None else missing.write_bytes(content)
        assert f"1 of the 2 .dwo files of {program} are not here or of another build (the first: {missing.name})" in messages(program)
        found = ours(DUMP, program, addresses)
        # Lines and functions remain, but inlined functions are missing.
        for mine, before in zip(found, whole):
            assert mine == before or mine[0][1:] == before[0][1:], (mine, before)
        assert found != whole
    # A file in another folder, given by the file's name.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / missing.name).write_bytes(kept)
    missing.unlink()
    text = "".join(f"{address:x}\n" for address in addresses)
    moved = subprocess.run([DUMP, program, "--binary", elsewhere / missing.name], input=text, check=True, capture_output=True, text=True)
    assert [[tuple(frame) for frame in json.loads(line)] for line in moved.stdout.splitlines()] == whole and moved.stderr == ""


def functions_of_gdb(program, addresses):
    """From gdb's `info symbol`, which prints "name + 12 in section .text"."""
    commands = [word for address in addresses for word in ("-ex", f"info symbol {address:#x}")]
    answer = run("gdb", "-nx", "-batch", "-ex", "set print asm-demangle off", "-ex", "set print demangle off", *commands, program, env={"PATH": "/usr/bin:/bin", "DEBUGINFOD_URLS": "", "HOME": "/"})
    return [match[1] if (match := re.match(r"([^ ]+)(?: \+ \d+)? in section", line)) else None for line in answer.splitlines() if "symbol" in line or "section" in line]


def test_mini_debug_info_as_distributions_make_it(tmp_path):
    """The recipe of gdb's manual, "MiniDebugInfo"."""
    program = compiled(tmp_path, "g++")
    code = text_section(program)
    dynamic = {line.split()[0] for line in run("nm", "-D", program, "--format=posix", "--defined-only").splitlines()}
    functions = {line.split()[0] for line in run("nm", program, "--format=posix", "--defined-only").splitlines() if line.split()[1] in "TtWw"}
    (tmp_path / "keep").write_text("\n".join(sorted(functions - dynamic)) + "\n")
    run("objcopy", "--only-keep-debug", program, tmp_path / "debug")
    run("objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment", f"--keep-symbols={tmp_path / 'keep'}", tmp_path / "debug", tmp_path / "mini")
    run("xz", "-k", tmp_path / "mini")
    packed = (tmp_path / "mini.xz").read_bytes()
    stripped = tmp_path / "stripped"
    run("strip", "--strip-all", "-R", ".comment", program, "-o", stripped)
    bare = messages(stripped)
    run("objcopy", "--add-section", f".gnu_debugdata={tmp_path / 'mini.xz'}", stripped)
    assert "no debug info" in messages(stripped) and "exported functions only" in bare and "exported functions only" not in messages(stripped)
    addresses = [code[0] + code[1] * i // 400 for i in range(400)]
    names = functions_of_gdb(stripped, addresses)
    found = [frames[-1][0] if frames else None for frames in ours(DUMP, stripped, addresses)]
    assert len(names) == len(found) and sum(name is not None for name in names) > 350
    # One address may have two names (a constructor's C1 and C2). gdb extends a function to the next one, but padding has no name here.
    at = {name: value for name, _, value, *_ in (line.split() for line in run("nm", program, "--format=posix", "--defined-only").splitlines())}
    differing = [(hex(address), mine, name) for address, mine, name in zip(addresses, found, names) if mine and at[mine] != at[name]]
    assert not differing and sum(mine is not None for mine in found) > 300, differing[:5]
    # Padded with zeros: up to 64 MiB are read.
    for size, is_read in ((64 << 20, True), ((64 << 20) + 1, False)):
        os.truncate(tmp_path / "mini", size)
        run("xz", "-0", "-k", "-f", tmp_path / "mini")
        shutil.copy(stripped, tmp_path / "padded")
        run("objcopy", "--update-section", f".gnu_debugdata={tmp_path / 'mini.xz'}", tmp_path / "padded")
        assert ("exported functions only" not in messages(tmp_path / "padded")) == is_read, size
    # Damaged: only exported functions remain.
    data = stripped.read_bytes()
    at = data.index(packed[:16])
    (tmp_path / "damaged").write_bytes(data[:at + 100] + bytes(byte ^ 0x5A for byte in data[at + 100:at + 300]) + data[at + 300:])
    assert "exported functions only" in messages(tmp_path / "damaged")


@pytest.mark.parametrize("shared", [False, True])
def test_what_dwz_shared_within_a_file_and_between_files(tmp_path, shared):
    program = compiled(tmp_path, "g++")
    addresses = spread(program, 3000)
    expected = theirs("llvm-symbolizer-16", program, addresses)
    if shared:
        twin = compiled(tmp_path, "g++", "-DTWIN", name="twin")
        run("dwz", "-m", tmp_path / "common.debug", program, twin)
        assert ".gnu_debugaltlink" in run("readelf", "-SW", program)
    else:
        before = program.stat().st_size
        run("dwz", program)
        assert program.stat().st_size < before and "DW_TAG_partial_unit" in run("readelf", "--debug-dump=info", program)
    found = ours(DUMP, program, addresses)
    differing = [(hex(address), mine, other) for address, mine, other in zip(addresses, found, expected) if mine != other]
    assert not differing, differing[:3]
    assert messages(program) == ""
