"""Makes the captures of this machine that tests replay: `python3 tests/captures/make.py [NAME...]`, as root.

Each gets a folder: `recording.capture`; `scene.json` with what is known of the run without Flamewire: the workload's own log, what perf saw of it,
and the addresses of its functions (nm); and `summary.txt`, what the replay sends (capture-replay --summary). Tests compare every later replay with
summary.txt. After an intended change of what the agent sends, write it again with --summaries and review the difference."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import stages  # noqa: E402
from flamewire import BIN, TESTS_BIN, Process  # noqa: E402
from jit import MOVING  # noqa: E402
from switches import run_by_perf  # noqa: E402

AGENT = BIN / "flamewire-agent"
# Copies of stacks hold the environment of the program.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
# The functions by which the agent recognizes I/O waits, and the start of the kernel.
KERNEL_NAMES = {"_text", "_stext", "io_schedule", "io_schedule_timeout", "mutex_lock_io", "mutex_lock_io_nested"}


class Scene:
    """`options` of the agent, `command` of the workload, whose `programs` are listed with their functions. `stage` is of stages.py;
    perf counts `counted` in another run of the command."""

    def __init__(self, options, command, programs, by_perf=False, stage=None, counted=()):
        self.options, self.command, self.programs, self.by_perf, self.stage, self.counted = options, command, programs, by_perf, stage, counted


def unwinding(program, *arguments, frequency=999, mode="dwarf", more=()):
    return Scene(("--unwind", mode, "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none", *more),
                 (program, *arguments), (program,))


def jit(how, ms, frequency=499):
    return Scene(("--unwind", "fp", "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none"), ("jit-workload", how, ms), ("jit-workload",))


SCENES = {
    # Off-CPU time, run queues, waits for disks, thread states and who wakes whom.
    "waits": Scene(("--unwind", "dwarf", "--stack-size", 2048, "--events", "off-cpu,woken-by", "--ring-pages", 4096, "--stat", "default"),
                   ("waits-workload", 2, "DISK"), ("waits-workload",), by_perf=True),
    "call-paths": unwinding("unwind-scenes-workload", 3),
    "deep-stacks": unwinding("unwind-recursion-workload", "wide", 3),
    "deep-turns": unwinding("unwind-recursion-workload", "turns", 3),
    "exceptions": unwinding("unwind-exceptions-workload", 2),
    "auto-mixed": unwinding("unwind-modes-mixed-workload", 4, mode="auto"),
    "auto-frame-pointers": unwinding("unwind-modes-fp-workload", 2, mode="auto"),
    "jit-map": jit("map", 1000),
    "jit-dump": jit("dump", 1000),
    # So short that functions at one address are read of together.
    "jit-quick": jit("quick", 40, 999),
    # Each function is compiled twice, thrown away, and its memory given to the next.
    "jit-node": Scene(("--unwind", "fp", "--frequency", 499, "--events", "cpu-clock", "--no-kernel", "--stat", "none"),
                      ("node", "--perf-basic-prof", "--no-turbo-inlining", "--expose-gc", "MOVING"), ()),
    # Forks, execs, many short threads: whose sample is it?
    "short-threads": Scene(("--unwind", "fp", "--frequency", 1999, "--events", "cpu-clock", "--stat", "default"), ("threads-workload", "short", 100),
                           ("threads-workload",)),
    "exec": Scene(("--unwind", "auto", "--frequency", 499, "--events", "cpu-clock", "--stat", "none"),
                  ("threads-workload", "exec", TESTS_BIN / "shares-workload", 1), ("threads-workload", "shares-workload")),
    # Rings of one page lose samples.
    "losses": Scene(("--unwind", "fp", "--count", 1, "--events", "page-faults", "--ring-pages", 1, "--no-kernel", "--stat", "default"),
                    ("faults-workload", 500, "DISK"), ("faults-workload",)),
    # The rings lose samples while the agent is stopped.
    "stopped": Scene(("--unwind", "fp", "--frequency", 999, "--events", "cpu-clock", "--ring-pages", 1, "--interval", 250, "--stat", "none"), (), ("shares-workload",), stage=stages.stopped_agent),
    "groups": Scene(("--unwind", "fp", "--no-kernel", "--frequency", 499, "--events", "cpu-clock", "--stat", "none"), (), ("shares-workload",), stage=stages.two_programs),
    "phases": Scene(("--unwind", "dwarf", "--stack-size", 1024, "--no-kernel", "--duration", 60, "--frequency", 199, "--events", "cpu-clock", "--stat", "default"), (), ("phases-workload",), stage=stages.phases),
    # Counting keeps the shell's own exec and its first child's apart: marks of a kind within a slice are one.
    "processes": Scene(("--unwind", "fp", "--no-kernel", "--frequency", 99, "--events", "cpu-clock", "--stat", "none"),
                       ("sh", "-c", 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.5; "$0" 0.2 1; exec "$0" 0.3 1', TESTS_BIN / "phases-workload"), ()),
    # Loaded on one CPU, called on another.
    "libraries": Scene(("--unwind", "fp", "--frequency", 999, "--events", "cpu-clock", "--stat", "none"),
                       ("threads-workload", "dlopen", 200, TESTS_BIN / "plugin-workload.so"), ("threads-workload", "plugin-workload.so")),
    "kernel-programs": Scene(("--unwind", "fp", "--frequency", 999, "--events", "cpu-clock:k", "--duration", 60, "--stat", "none"), (), (), stage=stages.kernel_programs),
    "faults": Scene(("--unwind", "fp", "--no-kernel", "--count", 1, "--events", "page-faults,minor-faults,major-faults", "--stat", "none"),
                    ("faults-workload", 200, "DISK"), ("faults-workload",)),
    "faults-by-period": Scene(("--unwind", "fp", "--no-kernel", "--count", 20, "--events", "page-faults", "--stat", "none"),
                              ("faults-workload", 500, "DISK"), ("faults-workload",), counted=("page-faults",)),
}


def functions(program):
    """name -> [first address, size] of what nm lists."""
    listed = subprocess.run(["nm", "-S", "-C", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    return {name: [int(address, 16), int(size, 16)] for address, size, name in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWu] (.+)$", listed, re.M)}


def small_kallsyms(path):
    """Some names out of 200,000: the agent reads all of the file, and a capture has what it reads."""
    lines = pathlib.Path("/proc/kallsyms").read_text(encoding="ascii").splitlines()
    kept = [index for index, line in enumerate(lines) if line.split()[2] in KERNEL_NAMES]
    assert kept, "the kernel hides its names: run this as root"
    # The next one says where a function ends.
    path.write_text("".join(f"{lines[index]}\n" for index in sorted({at + next_one for at in kept for next_one in (0, 1)})), encoding="ascii")


class Agent(Process):
    """`out` and `err` once it has ended are `stdout` and `stderr`."""

    def wait_ended(self):
        assert self.wait() == 0, self.err
        self.stdout, self.stderr = self.out, self.err
        return self


def record(name, scene, folder):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        small_kallsyms(scratch / "kallsyms")
        (scratch / "disk").write_bytes(bytes(2 << 20))
        (scratch / "moving.js").write_text(MOVING, encoding="ascii")
        files = {"DISK": scratch / "disk", "MOVING": scratch / "moving.js"}
        program = [TESTS_BIN / word if word == scene.command[0] and (TESTS_BIN / word).exists() else files.get(word, word) for word in scene.command]
        truth = {}

        def agent(*target):
            return Agent("agent", ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/kallsyms && mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', scratch / "kallsyms",
                                   AGENT, "--output", scratch / "session.flw", "--capture", scratch / "capture", *scene.options, *target], scratch, cwd=scratch, env=ENVIRONMENT)

        def run():
            return agent("--", *program).wait_ended()

        if scene.stage:
            done, truth = scene.stage(agent, scratch)
        elif scene.by_perf:
            with run_by_perf(scratch) as run_ns:
                done = run()
            truth["run_ns"], truth["span_ns"] = run_ns, run_ns.span
        else:
            done = run()
        truth.setdefault("output", done.stdout.splitlines())
        truth["samples"] = int(re.search(r": (\d+) samples, ", done.stderr)[1])
        for event in scene.counted:
            said = subprocess.run([str(word) for word in ("perf", "stat", "-x", ";", "-e", event, *program)], check=True, capture_output=True, text=True).stderr
            truth.setdefault("by_perf", {})[event] = int(said.split(";")[0])
        if scene.by_perf:
            own = {str(json.loads(line)["tid"]) for line in truth["output"] if line.startswith("{")}
            for key in ("run_ns", "span_ns"):
                truth[key] = {str(tid): ns for tid, ns in truth[key].items() if str(tid) in own}
        folder.mkdir(exist_ok=True)
        (folder / "recording.capture").write_bytes((scratch / "capture").read_bytes())
    shown = [word.name if isinstance(word, pathlib.Path) else str(word) for word in (*scene.options, *(["--", *scene.command] if scene.command else []))]
    (folder / "scene.json").write_text(json.dumps({
        "made": f"python3 tests/captures/make.py {name}", "recording": " ".join(shown), "kernel": os.uname().release,
        "functions": {one: functions(TESTS_BIN / one) for one in scene.programs}, "truth": truth}, indent=1) + "\n", encoding="utf-8")


def summarize(folder):
    subprocess.run([BIN / "capture-replay", folder / "recording.capture", "--summary", folder / "summary.txt"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description="Make captures of this machine for the tests, as root.")
    parser.add_argument("--summaries", action="store_true", help="only write what replays of the kept captures send")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}")
    options = parser.parse_args()
    for name in options.names or SCENES:
        if not options.summaries:
            record(name, SCENES[name], HERE / name)
        summarize(HERE / name)
        print(f"{name}: {(HERE / name / 'recording.capture').stat().st_size} bytes")


if __name__ == "__main__":
    main()
