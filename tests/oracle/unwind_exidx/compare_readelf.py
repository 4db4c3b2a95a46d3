#!/usr/bin/python3
"""Every entry of the exception index of real armhf libraries: our rows compared with the instructions that readelf decodes.

The libraries are those of the cross compiler, and libstdc++ again, linked from its archive so that readelf can name the personality
routine: readelf decodes the data after a personality routine only then. readelf prints the effect of each instruction
("vsp = vsp + 8", "pop {r4, r14}"). This script applies it to a stack pointer, which must give the registers and the CFA of our row.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIBRARIES = ("ld-linux-armhf.so.3", "libasan.so.8", "libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libubsan.so.1")


def entries_of_readelf(readelf, path):
    """[(start, [(bytes, text)...] or "cantunwind" or None)] in the order of the index. None: readelf decodes nothing."""
    text = subprocess.run([readelf, "-u", path], capture_output=True, text=True, check=True).stdout
    entries = []
    for line in text.splitlines():
        head = re.match(r"(0x[0-9a-f]+)(?: <.*>)?: (.*)$", line)
        operation = re.match(r"  ((?:0x[0-9a-f]{2} )+)\s*(.*)$", line)
        if head:
            entries.append((int(head[1], 16), "cantunwind" if "cantunwind" in head[2] else None))
        elif operation:
            start, operations = entries[-1]
            code = [int(byte, 16) for byte in operation[1].split()]
            entries[-1] = (start, (operations or []) + [(code, operation[2].strip())])
    return entries


def row_of(operations):
    """The effect of the instructions, in the format of our dump."""
    base, vsp, places = 13, 0, {}
    for code, text in operations:
        if text == "finish":
            break
        if match := re.fullmatch(r"vsp = vsp ([+-]) (\d+)", text):
            vsp += int(match[1] + match[2])
        elif match := re.fullmatch(r"vsp = r(\d+)", text):
            if places:
                return None
            base, vsp = int(match[1]), 0
        elif match := re.fullmatch(r"pop \{(r.*)\}", text):
            for name in match[1].split(", "):
                places[int(name[1:])] = vsp
                vsp += 4
        elif match := re.fullmatch(r"pop \{(D.*)\}", text):
            vsp += 8 * len(match[1].split(", "))
            if code[0] == 0xB3 or 0xB8 <= code[0] <= 0xBF:  # FSTMFDX stores an extra word
                vsp += 4
        else:
            raise SystemExit(f"readelf prints {text!r}, which this test does not support")
    saved = "".join(f" r{number}={place - vsp:+d}" for number, place in sorted(places.items()))
    signal = " signal" if {13, 15} <= places.keys() else ""
    return f"r{base}{vsp:+d}{saved} ret={15 if 15 in places else 14}{signal}"


def link_libstdcxx(compiler, directory):
    """libstdc++ with its symbols, and with direct references to its personality routine."""
    archive = subprocess.run([compiler, "-print-file-name=libstdc++.a"], capture_output=True, text=True, check=True).stdout.strip()
    library = pathlib.Path(directory) / "libstdc++-all.so"
    subprocess.run([compiler, "-shared", "-static-libgcc", "-Wl,-Bsymbolic", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-o", library],
                   check=True)
    return str(library)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--readelf", default="arm-linux-gnueabihf-readelf")
    parser.add_argument("--compiler", default="arm-linux-gnueabihf-g++")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    for tool in (options.readelf, options.compiler):
        if not shutil.which(tool):
            print(f"Not tested: {tool} is missing (Debian: g++-arm-linux-gnueabihf)")
            return 77
    with tempfile.TemporaryDirectory() as directory:
        return compare(options, directory)


def compare(options, directory):
    files = options.files or [f"/usr/arm-linux-gnueabihf/lib/{name}" for name in LIBRARIES]
    missing = [path for path in files if not pathlib.Path(path).exists()]
    if missing:
        print("Not tested, missing:", *missing)
        return 77
    if not options.files:
        files.append(link_libstdcxx(options.compiler, directory))

    wrong, total = 0, collections.Counter()
    for path in files:
        theirs = entries_of_readelf(options.readelf, path)
        ours = subprocess.run([options.dump, path], capture_output=True, text=True, check=True).stdout.splitlines()
        if not theirs or len(theirs) != len(ours):
            print(f"{path}: {len(ours)} entries, readelf has {len(theirs)}")
            wrong += 1
            continue
        for (start, operations), line in zip(theirs, ours):
            if operations is None:
                total["not decoded by readelf"] += 1
                if " none " in line:
                    print(f"{path}: nothing at {line}")
                    wrong += 1
                continue
            expected = "none" if operations == "cantunwind" else row_of(operations)
            first = "none" if operations == "cantunwind" else "r13+0 ret=14"
            total["cannot unwind" if operations == "cantunwind" else "rows"] += 1
            if line != f"{start:#x} {expected} first {first}":
                wrong += 1
                print(f"{path}: ours {line}\n  readelf {start:#x} {expected} {operations}")
    print(", ".join(f"{count} {what}" for what, count in sorted(total.items())), f"in {len(files)} files; {wrong} differ")
    return 1 if wrong or total["rows"] < 2000 else 0


if __name__ == "__main__":
    sys.exit(main())
