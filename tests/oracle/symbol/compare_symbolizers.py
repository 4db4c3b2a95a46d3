#!/usr/bin/python3
"""Compares our symbolizer with llvm-symbolizer on addresses spread over the code of one ELF file.

Function, file and line of every inline frame must agree. Differences are counted by kind; docs/contributing/symbolizer.md explains each kind.
"""
import argparse
import collections
import json
import os
import struct
import subprocess
import sys


def text_section(path):
    """(address, size) of .text."""
    with open(path, "rb") as file:
        data = file.read()
    is_64, little = data[4] == 2, data[5] == 1
    order = "<" if little else ">"
    if is_64:
        offset, = struct.unpack_from(order + "Q", data, 0x28)
        entry, count, names = struct.unpack_from(order + "HHH", data, 0x3A)
        layout = order + "IIQQQQIIQQ"
    else:
        offset, = struct.unpack_from(order + "I", data, 0x20)
        entry, count, names = struct.unpack_from(order + "HHH", data, 0x2E)
        layout = order + "IIIIIIIIII"
    sections = [struct.unpack_from(layout, data, offset + i * entry) for i in range(count)]
    table = data[sections[names][4]:sections[names][4] + sections[names][5]]
    for section in sections:
        if table[section[0]:table.index(b"\0", section[0])] == b".text":
            return section[3], section[5]
    sys.exit(f"{path}: no .text")


def spread(path, count):
    start, size = text_section(path)
    return sorted({start + size * i // count for i in range(count)})


def ours(tool, path, addresses):
    text = "".join(f"{address:x}\n" for address in addresses)
    answer = subprocess.run([tool, path], input=text, capture_output=True, text=True, check=True)
    return [[tuple(frame) for frame in json.loads(line)] for line in answer.stdout.splitlines()]


def theirs(tool, path, addresses):
    text = "".join(f"0x{address:x}\n" for address in addresses)
    answer = subprocess.run([tool, "-e", path, "--inlines", "--no-demangle", "--output-style=JSON"],
                            input=text, capture_output=True, text=True, check=True)
    result = []
    for line in answer.stdout.splitlines():
        frames = [(f["FunctionName"], f["FileName"], f["Line"]) for f in json.loads(line).get("Symbol", [])]
        result.append([frame for frame in frames if frame != ("", "", 0)])
    return result


def kind_of_difference(mine, other):
    if mine == other:
        return None
    if not mine:
        return "we have no frames"
    if not other:
        return "only we have frames"
    if len(mine) != len(other):
        return "we show more frames" if len(mine) > len(other) else "we show fewer frames"
    for i, (a, b) in enumerate(zip(mine, other)):
        where = "innermost" if i == 0 else "outer"
        if a[0] != b[0]:
            return f"function of the {'outermost' if i == len(mine) - 1 else 'inlined'} frame"
        if a[1] != b[1]:
            same = os.path.normpath(a[1]) == os.path.normpath(b[1])
            return f"{'spelling of the ' if same else ''}file of the {where} frame"
        if a[2] != b[2]:
            return f"line of the {where} frame"
    raise AssertionError("no difference")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("elf")
    parser.add_argument("--dump", required=True, help="path of symbolize_dump")
    parser.add_argument("--llvm", default="llvm-symbolizer-16")
    parser.add_argument("--addresses", type=int, default=20000)
    parser.add_argument("--bar", type=float, default=99.5, help="percent of addresses that must agree")
    parser.add_argument("--min-frames", type=float, default=0.0, help="fail if the mean depth is less, because nothing would be tested")
    parser.add_argument("--show", type=int, default=2, help="examples of each kind of difference")
    options = parser.parse_args()

    addresses = spread(options.elf, options.addresses)
    mine = ours(options.dump, options.elf, addresses)
    other = theirs(options.llvm, options.elf, addresses)
    if not len(addresses) == len(mine) == len(other):
        sys.exit(f"{len(addresses)} addresses, but {len(mine)} answers of ours and {len(other)} of llvm-symbolizer")

    kinds = collections.Counter()
    examples = collections.defaultdict(list)
    for address, a, b in zip(addresses, mine, other):
        kind = kind_of_difference(a, b)
        if kind is None:
            continue
        kinds[kind] += 1
        if len(examples[kind]) < options.show:
            examples[kind].append((address, a, b))

    equal = len(addresses) - sum(kinds.values())
    percent = 100.0 * equal / len(addresses)
    frames = sum(map(len, other)) / len(addresses)
    for kind, count in kinds.most_common():
        for address, a, b in examples[kind]:
            print(f"  {address:#x} {kind}\n    ours  {a}\n    llvm  {b}")
    print(json.dumps({"file": options.elf, "addresses": len(addresses), "frames_per_address": round(frames, 2), "equal": equal,
                      "percent": round(percent, 3), "differences": dict(kinds.most_common())}))
    if percent < options.bar:
        sys.exit(f"only {percent:.3f} % agree, {options.bar} % must")
    if frames < options.min_frames:
        sys.exit(f"{frames:.2f} frames per address: too few to test inlining")


if __name__ == "__main__":
    main()
