"""Stored captures of the emulated boards (boards.py), replayed on this machine and compared with known facts of the programs on the board."""
import json
import pathlib
import re
import subprocess

import pytest
from flamewire import BIN

HERE = pathlib.Path(__file__).resolve().parent
SCENES = ["board-arm64", "board-armhf", "board-arm64-32bit"]


class Replay:
    def __init__(self, name, directory):
        scene = json.loads((HERE / name / "scene.json").read_text(encoding="utf-8"))
        self.truth = scene["truth"]
        self.ranges = {program: [(first, first + size, function) for function, (first, size) in functions.items()] for program, functions in scene["functions"].items()}
        self.session = directory / "session.flw"
        self.output = run("capture-replay", HERE / name / "recording.capture", "--times", 10, "--output", self.session)
        # (program, functions from the root on, samples, cycles)
        self.stacks = []
        weights = self.folded("--weights")
        for stack, samples in self.folded().items():
            program, *frames = stack.split(";")
            self.stacks.append((program.partition(" (")[0], [self.function(frame) for frame in frames], samples, weights[stack]))

    def export(self, *options):
        return run("flamewire", "export", self.session, *options)

    def folded(self, *options):
        return {stack: int(number) for stack, _, number in (line.rpartition(" ") for line in self.export("--format", "collapsed", "--group", "process", *options).splitlines())}

    def function(self, frame):
        match = re.fullmatch(r"\[(.+)\+0x([0-9a-f]+)\]", frame)
        for first, end, function in self.ranges.get(match[1], ()) if match else ():
            if first <= int(match[2], 16) < end:
                return function
        return frame

    def share(self, program, accepts):
        """The share of the program's cycles in stacks whose functions `accepts` accepts."""
        own = [(accepts(frames), cycles) for name, frames, _, cycles in self.stacks if name == program]
        return sum(cycles for accepted, cycles in own if accepted) / sum(cycles for _, cycles in own)


def run(program, *arguments):
    outcome = subprocess.run([str(word) for word in (BIN / program, *arguments)], capture_output=True, text=True, timeout=500)
    assert outcome.returncode == 0, outcome
    return outcome.stdout


@pytest.fixture(scope="module", params=SCENES)
def replay(request, tmp_path_factory):
    return Replay(request.param, tmp_path_factory.mktemp(request.param))


def test_ten_replays_are_equal_and_miss_nothing(replay):
    assert "10 replays are equal" in replay.output and " 0 missing" in replay.output and "incomplete" not in replay.output, replay.output


def test_samples_and_counters_are_those_of_the_board(replay):
    """Compared with the numbers that the board's agent printed."""
    samples = replay.truth["samples"]
    assert sum(count for _, _, count, _ in replay.stacks) == samples
    assert f"samples read {samples} - duplicates 0 = in rows {samples} + dropped 0; lost in the kernel 0 = stated 0" in replay.output, replay.output
    counters = json.loads(run("flamewire", "stat", "--input", replay.session, "--json"))["groups"][0]["counters"]
    assert next(one["value"] for one in counters if one["name"] == "instructions:u") == replay.truth["instructions:u"]
    # The board takes 4 ns per instruction. A few instructions are the kernel's.
    assert 0.9 < replay.truth["instructions:u"] * 4 / replay.truth["cpu_ns"] <= 1.01


def test_shares_are_right(replay):
    for program in replay.ranges:
        for function, share in replay.truth["shares"].items():
            found = replay.share(program, lambda frames, function=function: function in frames)
            assert abs(found - share) <= 0.03, (program, function, found)


def test_stacks_are_whole_with_the_right_callers(replay):
    processes = {one["comm"]: one for one in json.loads(replay.export("--format", "json"))["metadata"]["unwind_processes"]}
    chain = replay.truth["chain"]
    for program in replay.ranges:
        assert processes[program]["samples"] > 100 and processes[program]["whole"] >= 0.99 * processes[program]["samples"], processes
        found = replay.share(program, lambda frames: frames[:len(chain)] == chain and frames[len(chain):][:1] and frames[len(chain)] in replay.truth["shares"])
        assert found >= 0.99, (program, found, [stack for stack in replay.stacks if stack[1][:len(chain)] != chain][:5])


def test_modes_follow_the_program(tmp_path):
    """After five seconds, the agent knows what each program needs: on 64-bit Arm, frame pointers alone or a short copy of the stack."""
    replay = Replay("board-arm64", tmp_path)
    processes = {one["comm"]: one["mode"] for one in json.loads(replay.export("--format", "json"))["metadata"]["unwind_processes"]}
    assert processes["shares-fp"] == "fp" and processes["shares-no-fp"] == "hybrid", processes


def test_a_capture_without_its_last_chunk_is_incomplete(tmp_path):
    """A killed agent leaves such a capture."""
    whole = (HERE / "board-arm64" / "recording.capture").read_bytes()
    magic_bytes, header_bytes = 8, 4
    begins, at = [], magic_bytes
    while at < len(whole):
        begins.append(at)
        at += header_bytes + int.from_bytes(whole[at:at + header_bytes], "little")
    cut = tmp_path / "cut.capture"
    cut.write_bytes(whole[:begins[-1]])
    assert "the capture is incomplete: it ends before the recording does\n" in run("capture-replay", cut)
