"""Makes the captures of this machine that tests replay: `python3 tests/captures/make.py [NAME...]`, as root.

Each scene has a folder: `recording.capture`; `scene.json` with the facts of the run that do not come from Flamewire: the workload's own log, perf's
records, and the addresses of its functions (nm); and `summary.txt`, the replay's output (capture-replay --summary). Tests compare every later replay
with summary.txt. After an intended change of the agent's output, update it with --summaries and review the difference."""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import stages  # noqa: E402
from control_groups import cgroup, enter  # noqa: E402
from flamewire import BIN, TESTS_BIN, Process, Server, ended, lost, wait_until  # noqa: E402
from jit import MOVING  # noqa: E402
from scheduling import Commands  # noqa: E402
from switches import scheduling_by_perf  # noqa: E402

AGENT = BIN / "flamewire-agent"
# The environment of a program is at the top of its stack, which captures contain.
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C"}
# In its own mount namespace, the agent sees $0 as /proc/kallsyms.
PREPARE = 'mount --bind "$0" /proc/kallsyms && mount -t tracefs tracefs /sys/kernel/tracing && '
# /proc has only the agent and $PROGRAM, because an agent that records control groups lists the processes of the machine.
HIDE = """mkdir real few && mount --rbind /proc real && mount -t tmpfs tmpfs few && for path in /proc/[a-z]*; do ln -s "$PWD/real/${path#/proc/}" few/; done &&
rm few/self few/thread-self && ln -s $$ few/self && for pid in $$ "$PROGRAM"; do mkdir few/$pid && mount --bind /proc/$pid few/$pid; done && mount --rbind few /proc && """
# The functions by which the agent detects I/O waits, and the start of the kernel.
KERNEL_NAMES = {"_text", "_stext", "io_schedule", "io_schedule_timeout", "mutex_lock_io", "mutex_lock_io_nested"}


class Scene:
    """`options` of the agent; `command` of the workload, whose `programs` are listed with their functions. The agent launches the workload, attaches
    to it ("pid") or records its control group ("cgroup"). With `beside`, a second agent does the same, and its capture is the scene of that name.
    With `commands`, (seconds before it, command, arguments), a server controls the agent. Other recordings are a `stage` of stages.py.
    perf counts the events `counted` in another run of the command. `stripped`: the program runs without symbols."""

    def __init__(self, options, command, programs, by_perf=False, target="launched", beside=None, commands=(), stage=None, counted=(), stripped=False):
        self.options, self.command, self.programs, self.by_perf = options, command, programs, by_perf
        self.target, self.beside, self.commands, self.stage = target, beside, commands, stage
        self.counted, self.stripped = counted, stripped


def unwinding(program, *arguments, frequency=999, mode="dwarf", more=(), libraries=(), **options):
    return Scene(("--unwind", mode, "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none", "--ring-pages", 4096, *more),
                 (program, *arguments), (program, *libraries), **options)


def waits(seconds, events, *options, mode="fp", by_perf=True, **how):
    return Scene(("--unwind", mode, "--events", events, "--ring-pages", 4096, *options), ("waits-workload", seconds), ("waits-workload",), by_perf, **how)


def jit(how, ms, frequency=499):
    return Scene(("--unwind", "fp", "--frequency", frequency, "--events", "cpu-clock", "--no-kernel", "--stat", "none"), ("jit-workload", how, ms), ("jit-workload",))


PLUGINS = ("unwind-plugin-a.so", "unwind-plugin-b.so")
SCENES = {
    # Off-CPU time, run queues, disk waits, thread states and wakers.
    "waits": Scene(("--unwind", "dwarf", "--stack-size", 2048, "--events", "off-cpu,woken-by", "--ring-pages", 4096, "--stat", "default"),
                   ("waits-workload", 2, "DISK"), ("waits-workload",), by_perf=True),
    "waits-attached": waits(1, "off-cpu,woken-by", "--stack-size", 2048, mode="dwarf", target="pid"),
    "waits-cgroup": waits(1, "off-cpu,woken-by", target="cgroup"),
    # Two events that count switches.
    "switches": waits(0.5, "context-switches,off-cpu", "--count", 1),
    "switches-attached": waits(0.5, "context-switches,off-cpu", "--count", 1, target="pid"),
    "two-profilers": waits(1, "off-cpu", target="pid", beside="two-profilers-second"),
    "run-queue": waits(0.3, "run-queue", "--no-kernel", by_perf=False),
    # The server's commands start and stop the recording.
    "pauses": waits(60, "off-cpu,task-clock", by_perf=False, target="pid", commands=(
        (0.7, "pause", {}), (0.7, "resume", {}), (0.5, "configure", {"events": "off-cpu,cpu-clock"}), (0.5, "configure", {"unwind": "dwarf"}), (0.5, "stop", {}))),
    "thread-counters": Scene(("--unwind", "fp", "--frequency", 499, "--events", "cpu-clock", "--no-kernel"), ("shares-workload", 60, 2), ("shares-workload",), target="pid",
                             commands=((1, "counters", {"by": "thread"}), (2, "stop", {}))),
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
    # So short that the agent reads about several functions at one address together.
    "jit-quick": jit("quick", 40, 999),
    # Each function is compiled twice and then discarded, and its memory is reused for the next one.
    "jit-node": Scene(("--unwind", "fp", "--frequency", 499, "--events", "cpu-clock", "--no-kernel", "--stat", "none"),
                      ("node", "--perf-basic-prof", "--no-turbo-inlining", "--expose-gc", "MOVING"), ()),
    # Forks, execs and many short threads: each sample must be attributed to the right one.
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
    # The loop separates the exec of the shell itself from that of its first child: marks of one kind in one slice are merged.
    "processes": Scene(("--unwind", "fp", "--no-kernel", "--frequency", 99, "--events", "cpu-clock", "--stat", "none"),
                       ("sh", "-c", 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.5; "$0" 0.2 1; exec "$0" 0.3 1', TESTS_BIN / "phases-workload"), ()),
    # The library is loaded on one CPU and called on another.
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
    """Name -> [first address, size] of the functions in nm's list that contain one of the addresses. A symbol without a size ends at the next one."""
    listed = subprocess.run(["nm", "-n", "-S", "-C", "--defined-only", with_symbols(program)], check=True, capture_output=True, text=True).stdout
    symbols = [(int(address, 16), int(size or "0", 16), name) for address, size, name in re.findall(r"^([0-9a-f]+) (?:([0-9a-f]+) )?[tTwWui] (.+)$", listed, re.M)]
    found = {}
    for address, size, name in symbols:
        size = size or min((first for first, _, _ in symbols if first > address), default=address + 1) - address
        if any(address <= one < address + size for one in addresses):
            found[name] = [address, size]
    return found


def addresses(folder, program):
    """The addresses of the program's frames in the replay's output."""
    return {int(address, 16) for address in re.findall(rf"[;=]{re.escape(program)}\+([0-9a-f]+)\b", (folder / "summary.txt").read_text(encoding="utf-8"))}


def small_kallsyms(path):
    """A few names out of 200,000: the agent reads the whole file, and a capture contains everything that it reads."""
    lines = pathlib.Path("/proc/kallsyms").read_text(encoding="ascii").splitlines()
    kept = [index for index, line in enumerate(lines) if line.split()[2] in KERNEL_NAMES]
    assert kept, "the kernel hides its names: run this as root"
    # The next symbol marks where a function ends.
    path.write_text("".join(f"{lines[index]}\n" for index in sorted({at + next_one for at in kept for next_one in (0, 1)})), encoding="ascii")


class Agent(Process):
    """After it has ended, `out` and `err` are also `stdout` and `stderr`."""

    def wait_ended(self):
        assert self.wait() == 0, self.err
        self.stdout, self.stderr = self.out, self.err
        return self


@contextlib.contextmanager
def waiting(command, scratch):
    """A process that executes `command` after a line is written to it. Its memory contains nothing of this machine's environment."""
    with open(scratch / "output", "w") as output:
        program = subprocess.Popen(["bash", "-c", 'read -r; exec "$@"', "bash", *map(str, command)], stdin=subprocess.PIPE, stdout=output, text=True, cwd=scratch, env=ENVIRONMENT)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def profiling(agent):
    wait_until(lambda: "profiling" in agent.err or not agent.alive(), 20, "the recording")
    assert agent.alive(), agent.err


def record_beside(scene, agent, command, captures, scratch):
    """Attaches one agent per capture to the command or to its control group."""
    with waiting(command, scratch) as program, contextlib.ExitStack() as stack:
        if scene.target == "cgroup":
            folder = stack.enter_context(cgroup("flamewire-capture"))
            enter(folder, program.pid)
        target = ("--cgroup", folder) if scene.target == "cgroup" else ("--pid", program.pid)
        agents = []
        for number, capture in enumerate(captures):
            agents.append(Process(f"agent-{number}", [*agent, "--output", scratch / f"session-{number}.flw", "--capture", capture, *scene.options, *target], scratch, cwd=scratch,
                                  env={**ENVIRONMENT, "PROGRAM": str(program.pid)}))
            stack.enter_context(ended(agents[-1]))
            profiling(agents[-1])
        program.communicate("\n")
        if scene.target == "cgroup":
            agents[0].stop()
        assert [one.wait() for one in agents] == [0] * len(agents), [one.err for one in agents]
        return agents[0].err, {}


def record_commands(scene, agent, command, captures, scratch):
    """Records with a server. Its commands are stored with the times (CLOCK_MONOTONIC) of sending and answer."""
    with waiting(command, scratch) as program, contextlib.ExitStack() as stack:
        server = Server(scratch)
        stack.enter_context(ended(server))
        program.stdin.write("\n")
        program.stdin.flush()
        wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) > 1, 20, "the threads of the workload")
        commands = Commands()

        def begin():
            started = Process("agent-0", [*agent, "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--capture", captures[0], *scene.options, "--pid", program.pid], scratch, env=ENVIRONMENT)
            stack.enter_context(ended(started))
            profiling(started)
            return started

        recorder = commands.timed("start", begin)
        for seconds, name, arguments in scene.commands:
            time.sleep(seconds)
            commands.timed(name, lambda name=name, arguments=arguments: server.command(name, **arguments))
        assert sum(end_ns - begin_ns for _, begin_ns, end_ns in commands.done) < 500_000_000, f"the machine is too busy: {commands.done}"
        server.wait_ended()
        session = server.only_session()
        assert recorder.stop() == 0, recorder.err
        return f"recorded: {session['samples']} samples, {lost(session)} lost, ", {"commands": commands.done}


def record_launched(scene, agent, command, captures, scratch):
    done = subprocess.run([str(word) for word in (*agent, "--output", scratch / "session.flw", "--capture", captures[0], *scene.options, "--", *command)], capture_output=True, text=True,
                          timeout=120, cwd=scratch, env=ENVIRONMENT)
    assert done.returncode == 0, done
    (scratch / "output").write_text(done.stdout, encoding="utf-8")
    return done.stderr, {}


def record_stage(scene, agent, _, captures, scratch):
    def start(*target):
        return Agent("agent", [*agent, "--output", scratch / "session.flw", "--capture", captures[0], *scene.options, *target], scratch, cwd=scratch, env=ENVIRONMENT)

    done, truth = scene.stage(start, scratch)
    truth.setdefault("output", done.stdout.splitlines())
    return done.stderr, truth


def record(name, scene, folder):
    folders = [folder, *([folder.parent / scene.beside] if scene.beside else [])]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        small_kallsyms(scratch / "kallsyms")
        (scratch / "disk").write_bytes(bytes(2 << 20))
        (scratch / "moving.js").write_text(MOVING, encoding="ascii")
        files = {"DISK": scratch / "disk", "MOVING": scratch / "moving.js"}
        command = [TESTS_BIN / word if word == scene.command[0] and (TESTS_BIN / word).exists() else files.get(word, word) for word in scene.command]
        if scene.stripped:
            command[0] = scratch / scene.command[0]
            subprocess.run(["strip", "-o", command[0], TESTS_BIN / scene.command[0]], check=True)
        agent = ["unshare", "--mount", *([] if scene.stage else ["--cgroup"]), "sh", "-c", PREPARE + (HIDE if scene.target == "cgroup" else "") + 'exec "$@"', scratch / "kallsyms", AGENT]
        captures = [scratch / f"capture-{number}" for number in range(len(folders))]
        how = record_stage if scene.stage else record_commands if scene.commands else record_launched if scene.target == "launched" else record_beside
        with scheduling_by_perf(scratch) if scene.by_perf else contextlib.nullcontext() as by_perf:
            messages, truth = how(scene, agent, command, captures, scratch)
        if "output" not in truth:
            truth["output"] = (scratch / "output").read_text(encoding="utf-8").splitlines()
        truth["samples"], losses = map(int, re.search(r": (\d+) samples, (\d+) lost, ", messages).groups())
        assert losses == 0 or name in ("losses", "stopped"), f"{losses} samples were lost: make {name} again on a less busy machine"
        for event in scene.counted:
            counted = subprocess.run([str(word) for word in ("perf", "stat", "-x", ";", "-e", event, *command)], check=True, capture_output=True, text=True).stderr
            truth.setdefault("by_perf", {})[event] = int(counted.split(";")[0])
        if scene.by_perf:
            own = {json.loads(line)["tid"] for line in truth["output"] if line.startswith("{")}
            for key in ("run_ns", "span_ns", "last_ns", "queued_ns", "turns", "preempted", "early", "ending"):
                truth[key] = {tid: number for tid, number in getattr(by_perf, key).items() if tid in own}
            # Any process can be interrupted, so interrupts count as thread 0.
            wakings = collections.Counter()
            for (waker, woken), count in by_perf.wakings.items():
                if woken in own:
                    wakings[waker if waker in own else 0, woken] += count
            truth["wakings"] = [[*pair, count] for pair, count in sorted(wakings.items())]
        for capture, into in zip(captures, folders):
            into.mkdir(exist_ok=True)
            (into / "recording.capture").write_bytes(capture.read_bytes())
    shown = [word.name if isinstance(word, pathlib.Path) else str(word) for word in (*scene.options, *(["--", *scene.command] if scene.command else []))]
    for into in folders:
        summarize(into)
        (into / "scene.json").write_text(json.dumps({
            "made": f"python3 tests/captures/make.py {name}", "recording": " ".join(shown), "kernel": os.uname().release,
            "functions": {one: functions(one, addresses(into, one)) for one in scene.programs}, "truth": truth}, indent=1) + "\n", encoding="utf-8")


def summarize(folder):
    subprocess.run([BIN / "capture-replay", folder / "recording.capture", "--summary", folder / "summary.txt"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description="Make captures of this machine for the tests, as root.")
    parser.add_argument("--summaries", action="store_true", help="only update the summaries of the stored captures")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}")
    options = parser.parse_args()
    for name in options.names or SCENES:
        scene = SCENES[name]
        folders = [HERE / one for one in (name, scene.beside) if one]
        if not options.summaries:
            record(name, scene, HERE / name)
        for folder in folders:
            if options.summaries:
                summarize(folder)
            print(f"{folder.name}: {(folder / 'recording.capture').stat().st_size} bytes")


if __name__ == "__main__":
    main()
