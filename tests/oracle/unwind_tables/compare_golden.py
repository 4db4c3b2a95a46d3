#!/usr/bin/python3
"""Rows of call frame information that another project's compiler wrote (.golden in ../shared/corpus), compared with ours.

Its rows have a CFA register class (1 stack pointer, 2 frame pointer) and offset, and where the frame pointer and the return address are
stored: type 1 is an offset from the CFA, type 2 (frame pointer) the same value, type 0 (return address) nowhere.
"""
import argparse
import json
import os
import pathlib
import sys

import rows

CASES = {"hello": (rows.X86_64, 7, 6, 16, True), "hello_arm64": (rows.AARCH64, 31, 29, 30, False)}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dump", required=True)
    options = arguments.parse_args()
    root = pathlib.Path(__file__).resolve().parents[3]
    corpus = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", root.parent / "shared/corpus"))
    directory = corpus / "dpsoft+perf-agent/unwind/ehcompile/testdata"
    if not directory.is_dir():
        print(f"no golden rows at {directory}: NOT compared (set FLAMEWIRE_CORPUS)")
        return 77
    wrong = 0
    for name, (names, stack, frame, column, linked) in CASES.items():
        golden = json.loads((directory / f"{name}.golden").read_text())["entries"]
        path = directory / (name if linked else f"{name}.o")
        # Functions of an object file have no final addresses and overlap, so only their starts are unambiguous.
        starts = [entry["PCStart"] for entry in golden]
        ends = [entry["PCStart"] + entry["PCEndDelta"] - 1 for entry in golden] if linked else starts
        found = rows.our_rows(options.dump, str(path), starts + ends, names)
        for entry, end in zip(golden, ends):
            for address in (entry["PCStart"], end):
                row = found[address]
                expected = (f"r{ {1: stack, 2: frame}[entry['CFAType']]}{entry['CFAOffset']:+d}",
                            f"c{entry['FPOffset']:+d}" if entry["FPType"] == 1 else None,
                            f"c{entry['RAOffset']:+d}" if entry["RAType"] == 1 else None)
                ours = row and (row[2], row[4].get(frame), None if row[4].get(column) == "u" else row[4].get(column))
                if ours != expected:
                    wrong += 1
                    print(f"  {name} {address:#x}: golden {expected}, ours {ours}")
        print(f"{name}: {len(golden)} golden rows")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
