"""Recordings that another tool unwound: a static program's DWARF stacks, plain and in compressed records, and its last branch records.
Their frames are compared by address and by function. Inlined functions are not compared, because the symbolizer adds them, not the walk."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", ROOT.parent / "shared" / "corpus")) / "plain" / "kdab"
REPLAY = pathlib.Path(os.environ["FLAMEWIRE_BIN"]) / "unwind_replay"
PROGRAM = CORPUS / "vector_static_gcc__vector_static_gcc_v9.1.0"

SAMPLE = re.compile(r"^\S.*\t\d+\t(?P<tid>\d+)\t(?P<seconds>\d+)\.(?P<fraction>\d{9})$")


def expected(name):
    """(tid, time in ns) -> [(address, function)]. Lines come in pairs, place and function. A frame's inlined functions come first."""
    samples, lines = {}, []
    for line in (CORPUS / f"{name}.expected.txt").read_text().splitlines():
        if sample := SAMPLE.match(line):
            lines = samples.setdefault((int(sample["tid"]), int(sample["seconds"] + sample["fraction"])), [])
        elif line.startswith("\t") and not line.startswith("\tcycles:"):
            lines.append(line)
    return {key: frames_of(lines) for key, lines in samples.items()}


def frames_of(lines):
    frames, address = [], None
    assert len(lines) % 2 == 0
    for place, function in zip(lines[::2], lines[1::2]):
        address = address or int(place.split()[0], 16)
        if function.endswith("(inlined)"):
            continue
        name = function.split("\t")[-1].split(" vector_static")[0].strip()
        frames.append((address, "" if name == "0 0" else name))
        address = None
    return frames


def functions():
    """Sorted (start, end, name) of the program's functions, from nm and c++filt."""
    table = subprocess.run(["nm", "-C", "--defined-only", "-S", PROGRAM], check=True, capture_output=True, text=True).stdout
    rows = (line.split(" ", 3) for line in table.splitlines())
    return sorted((int(row[0], 16), int(row[0], 16) + int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] in "TtWwi")


def ours(name, *arguments):
    command = [REPLAY, CORPUS / name, "--runtime", "--map", f"vector_static_gcc_v9.1.0={PROGRAM}", *arguments]
    samples = {}
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        tid, time, stop, *frames = line.split("\t")
        samples[int(tid), int(time)] = (stop, [int(frame.split(":")[0], 16) for frame in frames])
    return samples


@pytest.fixture(autouse=True)
def corpus():
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is absent: nothing was compared")


def bare(function):
    """The name without parameters, template arguments and return type."""
    return re.sub(r"<[^<>]*>|\(.*", "", re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", function))).split(" ")[-1]


def user(addresses):
    return [address for address in addresses if address < 1 << 63]


@pytest.mark.parametrize("name", ["vector_static_gcc__perf.data", "vector_static_gcc__perf.data.zstd"])
def test_dwarf_stacks(name):
    theirs, walked = expected(name), ours(name)
    assert theirs.keys() == walked.keys()
    in_program = 0
    for key, frames in theirs.items():
        stop, addresses = walked[key]
        assert [hex(address) for address in addresses] == [hex(address) for address, _ in frames], (key, stop)
        in_program += any(function == "main" for _, function in frames)
        # A walk that reaches _start is at the root and must report it.
        assert (stop == "root") == any(function == "_start" for _, function in frames), (key, stop)
    assert in_program > 20


def test_branch_records():
    """The other tool shows the target of the newest branch record as a frame: the first instruction of the current function, or of one that jumped
    to it. It is not a caller, so we do not have that frame. For samples in the kernel, it shows this frame instead of the user's pc."""
    name = "vector_static_gcc__perf.lbr.data"
    theirs, walked = expected(name), ours(name, "--lbr")
    assert theirs.keys() == walked.keys()
    in_program = 0
    for key, frames in theirs.items():
        addresses = [address for address, _ in frames]
        ours_user, theirs_user = user(walked[key][1]), user(addresses)
        if len(theirs_user) < 2:  # before exec
            continue
        in_kernel = walked[key][1][0] >= 1 << 63
        assert in_kernel or ours_user[0] == theirs_user[0], key
        assert ours_user[1:] == theirs_user[2 if ours_user[0] == theirs_user[0] else 1 :], key
        in_program += any(function == "main" for _, function in frames)
    assert in_program > 15


def test_functions_are_the_expected_ones():
    """The same comparison by name, which detects an address that is off by one function."""
    table = functions()
    checked = 0
    for name in ("vector_static_gcc__perf.data", "vector_static_gcc__perf.data.zstd"):
        walked = ours(name)
        for key, frames in expected(name).items():
            for address, (_, function) in zip(user(walked[key][1]), [frame for frame in frames if frame[0] < 1 << 63]):
                names = [row[2] for row in table if row[0] <= address < row[1]]
                if not function or not names:
                    continue
                # The same function with another spelling, because of aliases and differences between demanglers.
                assert function.replace("@@", "@") in names or bare(function) in map(bare, names), (key, hex(address), function, names)
                checked += 1
    assert checked > 100
