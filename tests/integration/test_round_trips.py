"""A session is exported in each format that can be imported, and imported again: the functions and numbers are the same, and so is everything else that
the format can hold. A second round trip shows that nothing is lost gradually."""
import collections
import json
import subprocess

import pytest
from flamewire import BIN
from recording import Recording, functions

# What each format preserves in addition to functions, stacks and samples of each event.
FORMATS = {
    "collapsed": set(),
    "pprof": {"weights", "threads", "modules", "kinds", "lines"},
    "speedscope": {"weights", "threads", "modules", "kinds", "lines", "times"},
    "firefox": {"weights", "threads", "modules", "kinds", "lines", "times"},
    "perfdata": {"weights", "threads", "modules", "kinds", "lines", "times"},
}
# These cannot be imported: pictures and tables.
WRITTEN_ONLY = {"json", "csv", "svg", "html", "flamewire"}


class File:
    """A recording or a file of another tool, as the command line reads it."""

    def __init__(self, path):
        self.path = path
        self.events = {one["name"]: one for one in json.loads(self.export("json"))["events"]}

    def export(self, format, *options):
        return subprocess.run([BIN / "flamewire", "export", self.path, "--format", format, *options], check=True, capture_output=True, timeout=120).stdout

    def to(self, path, format, *options):
        path.write_bytes(self.export(format, *options))
        return File(path)

    def functions(self, event, *members):
        """(name, and other requested members) -> (self, total)"""
        table = collections.Counter()
        for one in self.events[event]["functions"]:
            name = tuple(one.get(member, "") for member in ("name", *members))
            for value in ("self_samples", "samples", "self_weight", "weight"):
                table[name, value] += one[value]
        return table

    def stacks(self, event, *options):
        return sorted(self.export("collapsed", "-e", event, *options).decode().splitlines())

    def lines(self):
        """(event, thread, (function, file, line)…) -> (samples, weight)."""
        data = json.loads(self.export("speedscope"))
        frames = data["shared"]["frames"]
        sums = collections.Counter()
        for profile in data["profiles"]:
            own = profile["flamewire"]
            for stack, weight, samples, lines in zip(profile["samples"], profile["weights"], own["samples"], own["lines"], strict=True):
                places = zip(stack, data["shared"]["flamewire"]["lines"][lines], strict=True)
                where = (own["event"], own["pid"], own["tid"], own["comm"], tuple((frames[frame]["name"], frames[frame].get("file"), line) for frame, line in places))
                sums[where, "samples"] += samples
                sums[where, "weight"] += weight
        return sums

    def times(self):
        """(event, thread) -> the samples of each 10 ms, starting at the first one."""
        profiles = json.loads(self.export("speedscope"))["profiles"]
        begin = min(one["flamewire"]["first_ms"] for one in profiles)
        sums = collections.Counter()
        for profile in profiles:
            own = profile["flamewire"]
            for time, samples in zip(own["times_ms"], own["samples"], strict=True):
                sums[own["event"], own["tid"], own["first_ms"] - begin + time] += samples
        return sums


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    recording = Recording(tmp_path_factory.mktemp("recorded"), "demo-workload", "3")
    original = File(recording.path)
    assert set(original.events) == {"cpu-clock", "page-faults"}
    kinds = {one["kind"] for event in original.events.values() for one in event["functions"]}
    assert {"user", "inlined", "kernel", "unknown"} <= kinds, kinds
    return original


def test_every_format_is_in_the_table():
    known = subprocess.run([BIN / "flamewire", "export", "--help"], check=True, capture_output=True, text=True).stdout
    assert set(known.split("--format NAME:{", 1)[1].split("}")[0].split(",")) == set(FORMATS) | WRITTEN_ONLY


def check(original, copy, keeps):
    assert {name: (one["unit"], one["samples"], one["weight"]) for name, one in copy.events.items()} == {
        name: (one["unit"], one["samples"], one["weight"]) for name, one in original.events.items()}
    members = [member for member, kept in (("module", "modules"), ("kind", "kinds")) if kept in keeps]
    for event in original.events:
        assert copy.functions(event, *members) == original.functions(event, *members), event
        for options in ([], ["--weights"]):
            assert copy.stacks(event, *options) == original.stacks(event, *options), event
    if "lines" in keeps:
        assert copy.lines() == original.lines()
    if "times" in keeps:
        assert copy.times() == original.times()


@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"collapsed"}))
def test_round_trip(recorded, tmp_path, format):
    copy = recorded.to(tmp_path / "once", format)
    check(recorded, copy, FORMATS[format])
    check(recorded, copy.to(tmp_path / "twice", format), FORMATS[format])


def test_round_trip_of_folded_stacks(recorded, tmp_path):
    """One event at a time, without weights. The thread's name becomes the outermost function."""
    for event, about in recorded.events.items():
        copy = recorded.to(tmp_path / f"{event}.folded", "collapsed", "-e", event)
        assert {name: one["samples"] for name, one in copy.events.items()} == {"samples": about["samples"]}
        stacks = recorded.stacks(event)
        assert copy.stacks("samples") == stacks
        expected = functions({("", tuple(stack.split(";"))): int(number) for stack, number in (line.rsplit(" ", 1) for line in stacks)})
        found = copy.functions("samples")
        assert {name: [found[(name,), "self_samples"], found[(name,), "samples"]] for name in expected} == expected
        assert {name for (name,), _ in found} == set(expected)
        assert copy.to(tmp_path / f"{event}.again", "collapsed").stacks("samples") == stacks


def test_from_format_to_format(recorded, tmp_path):
    """Through all formats, one after the other."""
    copy = recorded
    keeps = set.intersection(*(kept for name, kept in FORMATS.items() if name != "collapsed"))
    for format in ("speedscope", "firefox", "pprof", "speedscope", "perfdata", "firefox", "speedscope"):
        copy = copy.to(tmp_path / format, format)
        check(recorded, copy, keeps)
