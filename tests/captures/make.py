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
    perf counts `counted` in another run of the command. `stripped`: it runs without symbols."""

    def __init__(self, options, command, programs, by_perf=False, stage=None, counted=(), stripped=False):
        self.options, self.command, self.programs, self.by_perf, self.stage, self.counted, self.stripped = options, command, programs, by_perf, stage, counted, stripped


def unwinding(program, *arguments, frequency=999, mode="dwarf", more=(), libraries=(), **options):
    return Scene(("--unwind", mode, "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none", "--ring-pages", 4096, *more),
                 (program, *arguments), (program, *libraries), **options)


def jit(how, ms, frequency=499):
    return Scene(("--unwind", "fp", "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none"), ("jit-workload", how, ms), ("jit-workload",))


PLUGINS = ("unwind-plugin-a.so", "unwind-plugin-b.so")
SCENES = {
    # Off-CPU time, run queues, waits for disks, thread states and who wakes whom.
    "waits": Scene(("--unwind", "dwarf", "--stack-size", 2048, "--events", "off-cpu,woken-by", "--ring-pages", 4096, "--stat", "default"),
                   ("waits-workload", 2, "DISK"), ("waits-workload",), by_perf=True),
    "call-paths": unwinding("unwind-scenes-workload", 3),
    "call-paths-nopie": unwinding("unwind-scenes-nopie-workload", 2.1),
    "call-paths-static-stripped": unwinding("unwind-scenes-static-workload", 2.1, stripped=True),
    "call-paths-debug-frame": unwinding("unwind-scenes-debugframe-workload", 1),
    "call-paths-frame-pointers": unwinding("unwind-scenes-fponly-workload", 1, more=("--stack-size", 8192)),
    "call-paths-no-tables": unwinding("unwind-scenes-notables-workload", 2.2, more=("--stack-size", 4096)),
    "plugins": unwinding("unwind-host-workload", 1.2, *(TESTS_BIN / plugin for plugin in PLUGINS), libraries=PLUGINS),
    "deep-stacks": unwinding("unwind-recursion-workload", "wide", 3),
    "deep-turns": unwinding("unwind-recursion-workload", "turns", 3),
    "deep-leaps": unwinding("unwind-recursion-workload", "leap", 3.2, more=("--stack-size", 4096)),
    "deep-shifts": unwinding("unwind-recursion-workload", "shifts", 3, more=("--stack-size", 4096)),
    "deep-stays": unwinding("unwind-recursion-workload", "stay", 4),
    "deep-beyond-copy": unwinding("unwind-recursion-workload", "slow", 0.9, more=("--max-depth", 4096)),
    "deep-in-copy": unwinding("unwind-recursion-workload", "small", 1.6, more=("--stack-size", 65528, "--max-depth", 4096)),
    "frame-limit": unwinding("unwind-recursion-workload", "small", 0.5, more=("--stack-size", 65528, "--max-depth", 300)),
    "demo": unwinding("unwind-demo-workload", 2, more=("--stack-size", 4096), libraries=("libc.so.6", "ld-linux-x86-64.so.2")),
    "exceptions": unwinding("unwind-exceptions-workload", 2),
    "auto-mixed": unwinding("unwind-modes-mixed-workload", 4, mode="auto"),
    "auto-frame-pointers": unwinding("unwind-modes-fp-workload", 2, mode="auto"),
    "auto-no-frame-pointers": unwinding("unwind-modes-none-workload", 1, mode="auto"),
    "frame-pointers-alone": unwinding("unwind-modes-none-workload", 1, mode="fp"),
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


def with_symbols(program):
    """The program, or the file with the debug symbols of a system library (Debian: libc6-dbg)."""
    if (TESTS_BIN / program).exists():
        return TESTS_BIN / program
    notes = subprocess.run(["readelf", "-n", f"/lib/{os.uname().machine}-linux-gnu/{program}"], check=True, capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    return pathlib.Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")


def functions(program, addresses):
    """name -> [first address, size] of what nm lists, as far as one of the addresses is in it. A symbol without a size ends at the next one."""
    listed = subprocess.run(["nm", "-n", "-S", "-C", "--defined-only", with_symbols(program)], check=True, capture_output=True, text=True).stdout
    symbols = [(int(address, 16), int(size or "0", 16), name) for address, size, name in re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?[tTwWui] (.+)$", listed, re.M)]
    found = {}
    for address, size, name in symbols:
        size = size or min((first for first, _, _ in symbols if first > address), default=address + 1) - address
        if any(address <= one < address + size for one in addresses):
            found[name] = [address, size]
    return found


def addresses(folder, program):
    """Of the program's frames in what the replay sends."""
    return {int(address, 16) for address in re.findall(rf"[;=]{re.escape(program)}\+([0-9a-f]+)\b", (folder / "summary.txt").read_text(encoding="utf-8"))}


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
        if scene.stripped:
            program[0] = scratch / scene.command[0]
            subprocess.run(["strip", "-o", program[0], TESTS_BIN / scene.command[0]], check=True)
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
        truth["samples"], lost = map(int, re.search(r": (\d+) samples, (\d+) lost, ", done.stderr).groups())
        assert lost == 0 or name in ("losses", "stopped"), f"{lost} samples were lost: make {name} again on a machine that is less busy"
        for event in scene.counted:
            said = subprocess.run([str(word) for word in ("perf", "stat", "-x", ";", "-e", event, *program)], check=True, capture_output=True, text=True).stderr
            truth.setdefault("by_perf", {})[event] = int(said.split(";")[0])
        if scene.by_perf:
            own = {str(json.loads(line)["tid"]) for line in truth["output"] if line.startswith("{")}
            for key in ("run_ns", "span_ns"):
                truth[key] = {str(tid): ns for tid, ns in truth[key].items() if str(tid) in own}
        folder.mkdir(exist_ok=True)
        (folder / "recording.capture").write_bytes((scratch / "capture").read_bytes())
    summarize(folder)
    shown = [word.name if isinstance(word, pathlib.Path) else str(word) for word in (*scene.options, *(["--", *scene.command] if scene.command else []))]
    (folder / "scene.json").write_text(json.dumps({
        "made": f"python3 tests/captures/make.py {name}", "recording": " ".join(shown), "kernel": os.uname().release,
        "functions": {one: functions(one, addresses(folder, one)) for one in scene.programs}, "truth": truth}, indent=1) + "\n", encoding="utf-8")


def summarize(folder):
    subprocess.run([BIN / "capture-replay", folder / "recording.capture", "--summary", folder / "summary.txt"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description="Make captures of this machine for the tests, as root.")
    parser.add_argument("--summaries", action="store_true", help="only write what replays of the kept captures send")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}")
    options = parser.parse_args()
    for name in options.names or SCENES:
        if options.summaries:
            summarize(HERE / name)
        else:
            record(name, SCENES[name], HERE / name)
        print(f"{name}: {(HERE / name / 'recording.capture').stat().st_size} bytes")


if __name__ == "__main__":
    main()
