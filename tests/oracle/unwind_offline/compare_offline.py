#!/usr/bin/python3
"""Unwinds every recorded case of libunwindstack's offline tests in the corpus. Our frames must equal those of its output.txt.

The corpus is beside the project (../shared/corpus) or in FLAMEWIRE_CORPUS. Every folder there with a maps.txt, regs.txt or links.txt counts
as a case. A case with missing files is listed as not comparable. Without any case, nothing is tested: this is printed, and the exit status
is 77, which CTest shows as skipped.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from offline_case import Case, Unusable  # noqa: E402
from walk_frames import Walker  # noqa: E402

PROJECT = pathlib.Path(__file__).resolve().parents[3]


def find_cases(corpus):
    return sorted({path.parent for name in ("maps.txt", "regs.txt", "links.txt") for path in corpus.rglob(name)})


def lines(frames, width):
    return [f"#{number:02} pc {pc:0{width}x}  {name}" for number, (pc, name) in enumerate(frames)]


def check(case, walker, verbose):
    """Returns whether the frames are the expected ones."""
    case.describe(walker)
    frames, stop = walker.walk()
    mine = case.printed(frames)
    same = mine == case.expected
    print(f"{case.directory.name}: {len(frames)} frames ({case.arch}, {stop}): {'as expected' if same else 'WRONG'}")
    if not same or verbose:
        width = 16 if case.arch in ("x86_64", "aarch64") else 8
        ours, theirs = lines(mine, width), lines(case.expected, width)
        for index in range(max(len(ours), len(theirs))):
            one = ours[index] if index < len(ours) else "-"
            other = theirs[index] if index < len(theirs) else "-"
            how = frames[index].how if index < len(frames) else ""
            print(f"  {' ' if one == other else '!'} {one:60} {other:60} {how}")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--walker", required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("corpus", nargs="?", default=os.environ.get("FLAMEWIRE_CORPUS", PROJECT.parent / "shared" / "corpus"))
    options = parser.parse_args()
    cases = find_cases(pathlib.Path(options.corpus))
    if not cases:
        print(f"Not tested: no recorded stacks in {options.corpus} (set FLAMEWIRE_CORPUS)")
        return 77
    compared = wrong = 0
    unusable = []
    with tempfile.TemporaryDirectory() as work:
        for directory in cases:
            try:
                case = Case(directory, pathlib.Path(work))
            except Unusable as error:
                unusable.append(f"{directory.name}: not comparable: {error}")
                continue
            compared += 1
            with Walker(options.walker) as walker:
                wrong += not check(case, walker, options.verbose)
    print(*unusable, sep="\n")
    print(f"{compared} cases compared, {wrong} wrong; {len(unusable)} not comparable")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
