"""A recording by the command line and its exports, and the values for comparison: the folded stacks, added up without our code."""
import collections
import json
import os
import pathlib
import re
import subprocess

from flamewire import BIN, TESTS_BIN

# Readers that are npm packages are installed next to those of the browser tests.
PACKAGES = pathlib.Path(os.environ.get("FLAMEWIRE_E2E_PACKAGES", BIN.parent / "tests" / "e2e" / "copy"))


class Recording:
    def __init__(self, directory, *program, events="cpu-clock,page-faults", options=()):
        self.directory = pathlib.Path(directory)
        self.path = self.directory / "recorded.flw"
        self.program = TESTS_BIN / program[0]
        subprocess.run([BIN / "flamewire", "record", "-q", "-F", "999", "-e", events, "-o", self.path, *options, "--", self.program, *program[1:]],
                       check=True, capture_output=True, timeout=120)
        self.data = json.loads(self.export("json"))
        self.events = {one["name"]: one for one in self.data["events"]}

    def export(self, format, *options):
        return subprocess.run([BIN / "flamewire", "export", self.path, "--format", format, *options], check=True, capture_output=True, timeout=120).stdout

    def file(self, format, *options):
        path = self.directory / f"recorded.{format}{''.join(options)}"
        path.write_bytes(self.export(format, *options))
        return path

    def stacks(self, event, weights):
        """(thread's name, functions outermost first) -> samples, or weights in the event's unit."""
        stacks = collections.Counter()
        for line in self.export("collapsed", "-e", event, *(["--weights"] if weights else [])).decode().splitlines():
            names, number = line.rsplit(" ", 1)
            comm, *functions = names.split(";")
            stacks[comm, tuple(functions)] += int(number)
        return stacks


def functions(stacks):
    """Function -> [self, total]. A recursive function counts once per stack."""
    table = collections.defaultdict(lambda: [0, 0])
    for (_, names), number in stacks.items():
        if names:
            table[names[-1]][0] += number
        for name in set(names):
            table[name][1] += number
    return dict(table)


def marked_lines(path):
    """The lines of a source that take the CPU time: mark -> line number."""
    return {mark: number for number, line in enumerate(path.read_text().splitlines(), 1) for mark in re.findall(r"// HOT (\w+)$", line)}
