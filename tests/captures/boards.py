"""Makes the captures of the emulated boards that test_boards.py replays: `python3 tests/captures/boards.py [NAME...]`.

Build first: `./dev boards --collect-only` builds the agents of the boards, `cmake --build build` the programs of this machine. On each board, two
programs with known shares of the CPU time run at once, one with frame pointers and one without. The board's agent also writes a session. A capture
is kept only if its replay on this machine equals that session.

Each folder has `recording.capture` and `scene.json`: the agent's command line, the output of the programs and the agent, and the addresses of
the programs' functions (nm)."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "boards"))
sys.path.insert(0, str(HERE.parent / "harness"))

from board import FRAME_POINTERS, KINDS, Board, Lab, print_file, printed_file  # noqa: E402

from flamewire import BIN  # noqa: E402

MOST_BYTES = 1_500_000
# From the root to the leaf's caller.
CHAIN = ["_start", "__libc_start_main", "__libc_start_call_main", "main", "run", "round_of_work"]
SHARES = {"burn_10": 0.1, "burn_20": 0.2, "burn_30": 0.3, "burn_40": 0.4}


class Scene:
    def __init__(self, board, seconds, frequency, options=""):
        self.kind, self.seconds = KINDS[board], seconds
        self.options = f"--events cycles:u --frequency {frequency} --unwind auto --no-kernel --metrics off --stat task-clock,instructions:u{options}"


SCENES = {
    # Long enough for the agent to change the modes of both programs, which takes five seconds.
    "board-arm64": Scene("arm64", 8, 499),
    "board-armhf": Scene("armhf", 4, 499),
    # A 64-bit kernel reserves 16 KiB of the ring for the stack of a 32-bit program, even if the stack is short. Compressing these copies takes the
    # board so long that a ring of the usual size overflows.
    "board-arm64-32bit": Scene("arm64-32bit", 4, 199, " --ring-pages 1024"),
}


def script(scene):
    return f"""cat >/tmp/workload <<'END'
#!/bin/sh
{"".join(f"shares-{frames} {scene.seconds} & " for frames in FRAME_POINTERS)}
wait
END
chmod +x /tmp/workload
flamewire-agent --output /tmp/session.flw --capture /tmp/recording.capture {scene.options} --verbose -- /tmp/workload
{print_file("/tmp/recording.capture")}{print_file("/tmp/session.flw")}"""


def functions(kind, program):
    """Name -> [address, bytes] of the functions that the test needs."""
    listed = subprocess.run([f"{kind.triplet}-nm", "--demangle", "--numeric-sort", "--print-size", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    found, open_ended = {}, None
    for address, size, name in re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?[tT] (.*)$", listed, re.M):
        first = int(address, 16) & ~1  # bit 0 marks Thumb code
        if open_ended and first > found[open_ended][0]:
            found[open_ended][1], open_ended = first - found[open_ended][0], None
        name = name.removeprefix("(anonymous namespace)::").partition("(")[0]
        if name in (*CHAIN, *SHARES):
            found[name] = [first, int(size or "0", 16)]
            open_ended = None if size else name
    assert set(found) == {*CHAIN, *SHARES} and all(size for _, size in found.values()), found
    return found


def content(session):
    """The processes, stacks and counters of a session."""
    exported, counted = (subprocess.run([BIN / "flamewire", *words], stdout=subprocess.PIPE, text=True, check=True).stdout
                         for words in (("export", session, "--format", "json"), ("stat", "--input", session, "--json")))
    return {"exported": json.loads(exported), "groups": json.loads(counted)["groups"]}


def number(pattern, text):
    return int(re.search(pattern, text, re.M)[1].replace(",", ""))


def make(name, lab, directory):
    scene = SCENES[name]
    programs = {f"shares-{frames}": lab.shares(scene.kind, frames) for frames in FRAME_POINTERS}
    # Without a network, the emulator can skip the time in which the board waits.
    board = Board(lab, scene.kind, directory, script(scene), {f"/bin/{program}": lab.stripped(scene.kind, file) for program, file in programs.items()}, sleep=False, name=name)
    try:
        text = board.finish()
    finally:
        board.stop()
    capture, session, replayed = (directory / name / file for file in ("recording.capture", "session.flw", "replayed.flw"))
    for file in (capture, session):
        file.write_bytes(printed_file(text, f"/tmp/{file.name}"))
    outcome = subprocess.run([BIN / "capture-replay", capture, "--output", replayed], stdout=subprocess.PIPE, text=True, check=True)
    assert " 0 out of order, 0 missing" in outcome.stdout, outcome.stdout
    assert content(replayed) == content(session), "the replay differs from the board's recording"
    assert capture.stat().st_size <= MOST_BYTES, f"{capture.stat().st_size} bytes: lower the frequency"

    target = HERE / name
    target.mkdir(exist_ok=True)
    (target / "recording.capture").write_bytes(capture.read_bytes())
    cpu = [int(ns) for ns in re.findall(r"^\d+ (\d+)$", text, re.M)]
    assert len(cpu) == len(programs), text
    kept = {
        "made": f"python3 tests/captures/boards.py {name}",
        "board": scene.kind.name,
        "recording": f"{scene.options} -- /tmp/workload",
        "functions": {program: functions(scene.kind, file) for program, file in programs.items()},
        "truth": {
            "chain": CHAIN,
            "shares": SHARES,
            "cpu_ns": sum(cpu),
            "samples": number(r"target exited: ([\d,]+) samples, 0 lost", text),
            "instructions:u": number(r"^\s*([\d,]+)\s+instructions:u", text),
        },
    }
    (target / "scene.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(f"{name}: {capture.stat().st_size} bytes, {kept['truth']['samples']} samples", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="tests/captures/boards.py", description="Makes the captures of the emulated boards.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SCENES)}; default: all")
    names = parser.parse_args().names or list(SCENES)
    for name in names:
        if name not in SCENES:
            parser.error(f"there is no scene {name}: {', '.join(SCENES)}")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="boards-"))
    lab = Lab(directory / "lab")
    for name in names:
        try:
            make(name, lab, directory)
        except BaseException:
            print(f"{name} failed; see its files in {directory / name}", file=sys.stderr)
            raise
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
