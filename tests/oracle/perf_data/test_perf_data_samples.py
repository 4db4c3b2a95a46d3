"""Samples of other projects' perf.data files as our importer reads them, against the output of perf 6.1 and quipper for the same files: every
sample with its event, time, thread, address, period and call chain. Files that those tools refuse must open here or be refused with one sentence."""

import collections
import gzip
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", ROOT.parent / "shared" / "corpus"))
DUMP = pathlib.Path(os.environ["FLAMEWIRE_BIN"]) / "perf_data_dump"
KERNEL = 1 << 63

Sample = collections.namedtuple("Sample", "event pid tid time cpu period ip chain branches")


@pytest.fixture(autouse=True)
def corpus():
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is absent: nothing was compared")


def ours(path):
    """Samples, and messages about damage."""
    done = subprocess.run([DUMP, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    samples, damage = [], []
    for line in done.stdout.splitlines():
        if line.startswith("damage: "):
            damage.append(line)
            continue
        event, pid, tid, time, cpu, period, ip, chain, branches = line.split("\t")
        addresses = [int(address, 16) for address in chain.split(",") if address]
        samples.append(Sample(event, int(pid), int(tid), int(time), int(cpu), int(period), int(ip, 16), addresses, branches))
    return samples, damage


def perf_data_of(name):
    """The file to which an oracle's name refers. Its folders are joined by two underscores."""
    name = name.removesuffix(".script.gz")
    if "perfdata__vector_static" in name:
        return CORPUS / "plain" / "kdab" / name.split("perfdata__")[1].removesuffix(".zlib")
    for folder in (CORPUS, CORPUS / "wild"):
        path = folder / name.replace("__", "/")
        if path.exists():
            return path
    return None


HEAD = re.compile(r"^\s*\S.*?\s(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<seconds>\d+)\.(?P<micros>\d{6}):\s+(?P<period>\d+)\s+(?P<event>\S+):\s*(?P<ip>[0-9a-f]+ \(.*)?$")
FRAME = re.compile(r"^\s+(?P<address>[0-9a-f]+) \((?P<dso>.*)\)$")


def perf_script(path):
    """(pid, tid, time in us, period, event, [(address, file)]). The address of a user frame in a chain is its offset in the file."""
    samples = []
    for line in gzip.open(path, "rt", errors="replace").read().splitlines():
        if head := HEAD.match(line):
            frames = [FRAME.match(" " + head["ip"])] if head["ip"] else []
            samples.append((head, frames))
        elif frame := FRAME.match(line):
            samples[-1][1].append(frame)
        else:
            assert not line.strip(), line
    return [
        (int(head["pid"]), int(head["tid"]), int(head["seconds"] + head["micros"]), int(head["period"]), head["event"],
         [(int(frame["address"], 16), frame["dso"]) for frame in frames])
        for head, frames in samples
    ]


def plain(event):
    """The name of an event without modifiers."""
    name = event.split("/")[1] if event.startswith("cpu") and event.count("/") == 2 else event
    return re.sub(r":[ukhGHpPSDIeW]+$", "", name)


# Other names of perf for the same event.
ALIASES = {"branch-instructions": "branches", "cpu-cycles": "cycles", "page-faults": "faults"}


def event_name(event):
    return ALIASES.get(plain(event), plain(event))


def same_frames(theirs, sample, by_branches):
    """Kernel frames must be the same. For user frames, perf prints the offset in the file, so only the offset in the page must be the same."""
    mine = sample.chain or [sample.ip]
    if by_branches:
        # The user part comes from branch records, which test_kdab.py and the unit tests check.
        mine = [address for address in mine if address >= KERNEL]
        theirs = theirs[: len(mine)]
    for (address, file), own in zip(theirs, mine):
        if address == own or (own < KERNEL and file != "[unknown]" and address & 0xFFF == own & 0xFFF):
            continue
        return False
    if len(theirs) == len(mine):
        return True
    # perf unwound the user part from a copied stack, or does not print it, or prints no frame for an empty chain.
    rest = theirs[len(mine):]
    return all(address < KERNEL for address, _ in rest) or (not sample.chain and not theirs)


SCRIPTS = sorted(path for folder in ("perf6.1", "perf6.1wild") for path in (CORPUS / "oracle" / folder).glob("*.script.gz"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path).removesuffix(".script.gz")[-60:])
def test_samples_are_those_of_perf_script(script, tmp_path):
    path = perf_data_of(script.name)
    if path.suffix == ".gz":
        unpacked = tmp_path / "perf.data"
        unpacked.write_bytes(gzip.open(path).read())
        path = unpacked
    theirs, (mine, damage) = perf_script(script), ours(path)
    assert not damage
    assert len(theirs) == len(mine)
    by_branches = any(one.branches and one.chain for one in mine)
    # Samples with equal times may be in either order.
    theirs.sort(key=lambda one: (one[2], one[1], event_name(one[4]), one[3]))
    mine.sort(key=lambda one: (one.time // 1000, one.tid, event_name(one.event), one.period))
    for expected, sample in zip(theirs, mine):
        pid, tid, time, period, event, frames = expected
        assert (pid, tid, time, period, event_name(event)) == (
            sample.pid if sample.pid < KERNEL >> 32 else -1, sample.tid if sample.tid < KERNEL >> 32 else -1, sample.time // 1000, sample.period, event_name(sample.event)), (expected, sample)
        assert same_frames(frames, sample, by_branches), (expected, sample)


LISTS = sorted((CORPUS / "oracle" / "quipper").glob("*.tsv.gz"))


@pytest.mark.parametrize("events", LISTS, ids=lambda path: str(path)[-60:])
def test_samples_are_those_of_quipper(events):
    name = events.name.removesuffix(".tsv.gz").removesuffix(".pr.out")
    mine, damage = ours(CORPUS / "google+perf_data_converter/src/quipper/testdata" / name)
    assert not damage
    theirs = []
    for line in gzip.open(events, "rt").read().splitlines()[1:]:
        kind, pid, tid, time, ip, cpu, period, _address, chain, branches = line.split("\t")[:10]
        if kind == "9":
            addresses = [int(one, 16) for one in chain.split(",") if one]
            theirs.append((int(time or 0), int(tid), int(pid), int(ip), int(period or 1), int(cpu) if cpu else None,
                           [one for one in addresses if one < KERNEL * 2 - 4095], branches.replace(";", ",").rstrip(",")))
    assert len(theirs) == len(mine)
    key = lambda one: (one[0], one[1], one[3], one[4])  # noqa: E731
    theirs.sort(key=key)
    got = sorted(((one.time, one.tid, one.pid, one.ip, one.period, one.cpu, one.chain, one.branches) for one in mine), key=key)
    for expected, sample in zip(theirs, got):
        if expected[5] is None:
            sample = (*sample[:5], None, *sample[6:])
        # One list has the highest bit of user addresses set, unlike the file. perf script's chains are compared completely.
        assert [one | KERNEL for one in expected[6]] == [one | KERNEL for one in sample[6]]
        assert expected[:6] + expected[7:] == sample[:6] + sample[7:]


def all_files():
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and path.open("rb").read(8) in (b"PERFILE2", b"2ELIFREP"):
            yield path


# In this recording, perf's messages are mixed with its data.
DAMAGED = {"sleep.compressed2.pipe.data": "there is no valid record at byte 31808"}


@pytest.mark.parametrize("path", list(all_files()), ids=lambda path: str(path)[-60:])
def test_every_file_is_read_to_its_end(path):
    mine, damage = ours(path)
    assert damage == [f"damage: {DAMAGED[path.name]}"] if path.name in DAMAGED else not damage
    assert mine and all(one.event and one.period for one in mine)


@pytest.mark.parametrize("kind", ["compressed", "compressed2"])
def test_compressed_records_are_there(kind):
    """Recordings of `sleep 1` that perf 6.1 cannot read: one process, one event, in order."""
    folder = CORPUS / "mstange+linux-perf-data" / "tests" / "fixtures"
    for name in (f"sleep.{kind}.data", f"sleep.{kind}.pipe.data"):
        mine, _ = ours(folder / name)
        assert 5 <= len(mine) <= 12 and {one.event for one in mine} == {"cycles"}
        assert len({one.pid for one in mine}) == 1 and [one.time for one in mine] == sorted(one.time for one in mine)
