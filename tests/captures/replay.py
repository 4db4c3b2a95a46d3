"""Replays of stored captures: the agent's output, with functions by the addresses that nm listed when the capture was made."""
import json
import pathlib
import re
import subprocess

import stacks
from flamewire import BIN

HERE = pathlib.Path(__file__).resolve().parent
SCENES = sorted(path.parent.name for path in HERE.glob("*/summary.txt"))
ROW = re.compile(r"^([^ ;]+);([^;]*)((?:;.*)?) (\d+) (\d+)$")
THREAD = re.compile(r"^thread (.*) \((\d+)\): run (\d+) runnable (\d+) blocked (\d+) io-wait (\d+) preempted (\d+) slept (\d+) io-waits (\d+)$")
STACKS = re.compile(r"^stacks of (\d+): mode (\d), (\d+) samples, (\d+) whole, (\d+) joined, (\d+) truncated, (\d+) open, (\d+) stopped$")
AWAY = ("off-cpu", "run-queue", "io-wait")
MODES = ("fp", "hybrid", "dwarf", "lbr")


class Replay:
    """The lines of capture-replay --summary, and the messages of capture-replay and of the agent's code in `output`. `session` is the same content as a
    session file, for programs that read those."""

    def __init__(self, name, summary, session, output):
        self.session, self.output = session, output
        self.scene = json.loads((HERE / name / "scene.json").read_text(encoding="utf-8"))
        self.truth = self.scene["truth"]
        self.lines = summary.splitlines()
        self.names = dict(match.groups() for match in (re.match(r"name (.*) = (.*)", line) for line in self.lines) if match)
        self.ranges = {program: sorted((first, first + size, name) for name, (first, size) in functions.items()) for program, functions in self.scene["functions"].items()}
        # (event, thread's name, functions from the root on, count, weight)
        self.rows = [(event, comm, self.functions(chain), int(count), int(weight))
                     for event, comm, chain, count, weight in (match.groups() for match in map(ROW.match, self.lines) if match)]
        self.threads = {match[2]: [int(number) for number in match.groups()[2:]] for match in map(THREAD.match, self.lines) if match}
        self.losses = {int(reason): int(count) for reason, count in re.findall(r"^loss (\d+): (\d+)$", summary, re.M)}

    def functions(self, chain):
        found = []
        for frame in chain.split(";")[1:]:
            one, _, times = frame.partition(" *")
            found += [self.function(one)] * int(times or 1)
        return found

    def function(self, frame):
        """The function of a frame in the summary, or in a view of a program that does not have the workload's file."""
        frame = re.sub(r"^\[(.+)\+0x([0-9a-f]+)\]$", r"\1+\2", frame)
        frame = frame.removesuffix(" joined")
        frame = self.names.get(frame, frame)
        if "!" in frame:
            return frame.partition("!")[2].split(" (line ")[0]
        module, _, address = frame.rpartition("+")
        if not module:
            return frame
        for first, end, name in self.ranges.get(module, ()):
            if first <= int(address, 16) < end:
                return name
        return f"[{module}+0x{address}]"

    def weight(self, thread, function, events=AWAY):
        return sum(weight for event, comm, frames, _, weight in self.rows if event in events and comm == thread and any(function in name for name in frames))

    def samples(self, event):
        return sum(count for name, _, _, count, _ in self.rows if name == event)

    def recording(self):
        processes = [dict(zip(("samples", "whole", "joined", "truncated", "open_end", "stopped"), map(int, match.groups()[2:])), mode=MODES[int(match[2])])
                     for match in map(STACKS.match, self.lines) if match]
        totals = {key: sum(process[key] for process in processes) for key in processes[0] if key != "mode"}
        return stacks.Recording([stacks.Stack(comm, frames, count) for _, comm, frames, count, _ in self.rows], totals, processes)


def replay(name, directory):
    summary, session = directory / "summary.txt", directory / "session.flw"
    outcome = subprocess.run([BIN / "capture-replay", HERE / name / "recording.capture", "--times", "10", "--summary", summary, "--output", session],
                             capture_output=True, text=True, timeout=300)
    assert outcome.returncode == 0, outcome
    assert "10 replays are equal" in outcome.stdout and " 0 missing" in outcome.stdout, outcome.stdout
    assert "THEY DIFFER" not in outcome.stdout, outcome.stdout
    return Replay(name, summary.read_text(encoding="utf-8"), session, outcome.stdout + outcome.stderr)
