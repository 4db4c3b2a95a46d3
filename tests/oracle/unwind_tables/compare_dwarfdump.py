#!/usr/bin/python3
"""Every row of every function in the unwind tables of real files: ours compared with llvm-dwarfdump's.

compare_dwarfdump.py --dump dump_rows FILE...

Rows are requested for their first and last byte, and bytes between functions must have none. Then the files are changed in ways that
must not affect the rows: without section headers, and with a search table that is missing, empty, out of order or of an unknown
version.
"""
import argparse
import pathlib
import struct
import sys
import tempfile

import rows

SHOWN = 10


def compare(dump, tool, path, section=".eh_frame", original=None):
    """Compares dump_rows' rows for `path` with llvm-dwarfdump's for `original`. Returns the number of differences."""
    functions, names = rows.functions_of_dwarfdump(tool, original or path, section)
    expected, covered = {}, []
    for function in functions:
        # Functions that the linker discarded remain in .debug_frame.
        if function.start == 0 or function.start == function.end:
            continue
        covered.append((function.start, function.end))
        for row in function.finished():
            expected[row[0]] = expected[row[1] - 1] = row
    covered.sort()
    gaps = [before[1] for before, after in zip(covered, covered[1:]) if before[1] < after[0]]
    # With overlaps, the right function would be ambiguous.
    overlaps = sum(1 for before, after in zip(covered, covered[1:]) if before[1] > after[0])
    found = rows.our_rows(dump, path, list(expected) + gaps, names)
    wrong = [(address, row, found.get(address)) for address, row in expected.items() if found.get(address) != row]
    wrong += [(address, None, found[address]) for address in gaps if found.get(address) is not None]
    for address, theirs, ours in wrong[:SHOWN]:
        print(f"  {address:#x}\n    llvm-dwarfdump {theirs}\n    ours           {ours}")
    print(f"{pathlib.Path(path).name} {section}: {len(covered)} functions, {len(expected)} addresses, {len(gaps)} gaps, "
          f"{overlaps} overlaps, {len(wrong)} wrong")
    return len(wrong) + overlaps + (0 if expected else 1)


def eh_frame_header(data):
    """File offset and size of PT_GNU_EH_FRAME in a little-endian ELF64 file."""
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(offset, offset + size * count, size):
        kind, _, where, _, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 0x6474e550:
            return where, length
    raise ValueError("no PT_GNU_EH_FRAME")


def changed(data, header):
    """(name of the change, the file's bytes)"""
    count, = struct.unpack_from("<I", data, header + 8)
    table = header + 12

    def with_bytes(at, new):
        return data[:at] + new + data[at + len(new):]

    yield "without section headers", with_bytes(40, bytes(8))[:58] + bytes(6) + data[64:]
    yield "search table empty", with_bytes(header + 8, bytes(4))
    yield "search table larger than it can be", with_bytes(header + 8, b"\xff\xff\xff\x7f")
    yield "search table of an unknown version", with_bytes(header, b"\x02")
    yield "search table in another encoding", with_bytes(header + 3, b"\x3c")
    yield "search table backwards", with_bytes(
        table, b"".join(data[table + 8 * i:table + 8 * i + 8] for i in reversed(range(count))))
    yield "search table names the wrong functions", with_bytes(
        table, b"".join(data[table + 8 * i:table + 8 * i + 4] + data[table + 8 * (i ^ 1 if i ^ 1 < count else i) + 4:][:4]
                        for i in range(count)))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dump", required=True)
    arguments.add_argument("--dwarfdump", default="llvm-dwarfdump-16")
    arguments.add_argument("--section", default=".eh_frame")
    arguments.add_argument("--changed", action="store_true", help="also change the (ELF64, little-endian) files")
    arguments.add_argument("files", nargs="+")
    options = arguments.parse_args()
    wrong = 0
    for path in options.files:
        if not pathlib.Path(path).exists():
            print(f"NOT compared, because it does not exist: {path}")
            continue
        path = str(pathlib.Path(path).resolve())
        wrong += compare(options.dump, options.dwarfdump, path, options.section)
        if not options.changed:
            continue
        data = pathlib.Path(path).read_bytes()
        with tempfile.TemporaryDirectory() as directory:
            for what, content in changed(data, eh_frame_header(data)[0]):
                copy = pathlib.Path(directory, what)
                copy.write_bytes(content)
                wrong += compare(options.dump, options.dwarfdump, str(copy), options.section, original=path)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
