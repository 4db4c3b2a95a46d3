#!/usr/bin/python3
"""Frames of the corpus's ELF files, compared with the expected outputs that come with them, and with llvm-symbolizer at every byte of .text.

The corpus is beside the project (../shared/corpus) or in FLAMEWIRE_CORPUS. Without it, nothing is tested: this is printed, and the exit
status is 77, which CTest shows as skipped.
"""
import argparse
import bz2
import collections
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from compare_symbolizers import kind_of_difference, ours, text_section, theirs  # noqa: E402

PROJECT = pathlib.Path(__file__).resolve().parents[3]


def expected_of_addr2line(path):
    """{address: [(function, "file:line")…]} from the output of `addr2line -a -i -f`."""
    expected, frames, function = {}, [], None
    for line in path.read_text().splitlines():
        if line.startswith("0x"):
            frames = expected.setdefault(int(line, 16), [])
        elif function is None:
            function = line
        else:
            frames.append((function, line.split(" (discriminator")[0]))
            function = None
    return expected


def as_addr2line(frames):
    return [(function or "??", f"{file or '??'}:{line or '?'}") for function, file, line in frames] or [("??", "??:?")]


def check_expected(dump, elf, expected):
    addresses = sorted(expected)
    wrong = 0
    for address, frames in zip(addresses, ours(dump, elf, addresses)):
        printed = as_addr2line(frames)
        if printed != expected[address]:
            wrong += 1
            print(f"  {address:#x}: ours {printed}, expected {expected[address]}")
    print(f"{elf}: {len(addresses) - wrong} of {len(addresses)} addresses as expected")
    return wrong


def check_against_llvm(dump, llvm, elf):
    start, size = text_section(elf)
    addresses = list(range(start, start + min(size, 20000)))
    kinds = collections.Counter()
    for address, mine, other in zip(addresses, ours(dump, elf, addresses), theirs(llvm, elf, addresses)):
        kind = kind_of_difference(mine, other)
        if kind and not kinds[kind]:
            print(f"  {address:#x} {kind}\n    ours {mine}\n    llvm {other}")
        if kind:
            kinds[kind] += 1
    print(f"{elf}: {len(addresses) - sum(kinds.values())} of {len(addresses)} addresses as llvm-symbolizer; {dict(kinds)}")
    return sum(kinds.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--llvm", default="llvm-symbolizer-16")
    options = parser.parse_args()
    corpus = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", PROJECT.parent / "shared" / "corpus"))
    dwarf = corpus / "gimli-rs+object-testfiles" / "dwarf"
    if not dwarf.is_dir():
        print(f"no corpus at {corpus}: frames of foreign files are NOT tested (set FLAMEWIRE_CORPUS)")
        sys.exit(77)

    wrong = files = 0
    for expected in sorted((corpus / "gimli-rs+addr2line" / "testoutput" / "dwarf").iterdir()):
        wrong += check_expected(options.dump, str(dwarf / expected.name), expected_of_addr2line(expected))
        files += 1
    for elf in sorted(dwarf.iterdir()):
        if "split" in elf.name:  # split DWARF is not supported
            continue
        wrong += check_against_llvm(options.dump, options.llvm, str(elf))
        files += 1
    with tempfile.TemporaryDirectory() as folder:
        for packed in sorted((corpus / "sourceware-org+elfutils" / "tests").glob("testfile-inlines*.bz2")):
            elf = pathlib.Path(folder) / packed.stem
            elf.write_bytes(bz2.decompress(packed.read_bytes()))
            wrong += check_against_llvm(options.dump, options.llvm, str(elf))
            files += 1
    print(f"{files} files, {wrong} differences")
    sys.exit(0 if wrong == 0 and files > 0 else 1)


if __name__ == "__main__":
    main()
