"""The agent's table against `perf stat -p` on the same process. Both attach, the process does its work, and then both are stopped, so both
count the same. Only the cost of reading the counters may differ."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from flamewire import BIN, TESTS_BIN, open_files, wait_until

PERF = "perf"
SOFTWARE = ["page-faults", "context-switches", "cpu-migrations", "task-clock", "minor-faults", "major-faults"]
HARDWARE = ["cycles", "instructions", "cache-references", "cache-misses", "branch-instructions", "branch-misses"]
WORDS = {"<not supported>", "<not counted>", "<never counts>", "<not permitted>"}
ROW = re.compile(r"^ *(<[a-z ]+>|[\d.,]+) +(msec )? *(\S+)(?: +# +([\d.]+) *(\S.*?))?(?: +\([\d.]+%\))? *$")


class Table:
    """The output of perf stat, or output in the same format."""

    def __init__(self, text):
        self.text = text
        head = re.search(r"^ Performance counter stats for (.*):$", text, re.M)
        assert head, text
        self.title = head[1]
        self.rows = {}
        for line in text[head.end():].strip("\n").split("\n"):
            if "seconds" in line or not line.strip():
                continue
            match = ROW.match(line)
            assert match, line
            value, unit, name, figure, label = match.groups()
            self.rows[name] = {"value": value if value in WORDS else float(value.replace(",", "")), "unit": (unit or "").strip(),
                               "figure": figure and float(figure), "label": label, "line": line}
        self.elapsed = float(re.search(r"^ *([\d.]+) seconds time elapsed$", text, re.M)[1])

    def value(self, name):
        return self.rows[name]["value"]


def close(ours, theirs, share, least=1.0):
    return abs(ours - theirs) <= max(share * theirs, least)


def compare(ours, theirs):
    """Row by row: names and their order, units, words, labels; software events and derived figures within 1 %, the clock within 0.5 %.
    "CPUs utilized" uses each tool's own elapsed time, because perf attaches a moment earlier."""
    assert list(ours.rows) == list(theirs.rows)
    for name, their in theirs.rows.items():
        our = ours.rows[name]
        where = (our["line"], their["line"])
        assert our["unit"] == their["unit"], where
        if isinstance(their["value"], str):
            assert our["value"] == their["value"], where
            continue
        assert close(our["value"], their["value"], 0.005 if "clock" in name else 0.01, 0.01 if "clock" in name else 1), where
        assert our["label"] == their["label"], where
        assert (our["figure"] is None) == (their["figure"] is None), where
        if their["label"] == "CPUs utilized":
            assert close(our["figure"] * ours.elapsed, their["figure"] * theirs.elapsed, 0.01, 0.001 * theirs.elapsed), where
        elif their["figure"]:
            assert close(our["figure"], their["figure"], 0.01 + 1 / max(their["value"], 1), 0.002), where


def perf_events_of(pid):
    return open_files(pid).count("anon_inode:[perf_event]")


def both(start, mode, events, *agent_options, **options):
    """(our table, perf's) of one run of the workload, and the agent."""
    target = start.process("work", [TESTS_BIN / "counters-workload", mode])
    wait_until(lambda: "ready" in target.out, 20, "the workload")
    perf = start.process("perf", [PERF, "stat", "-e", ",".join(events), "-p", target.pid])
    threads = len(list(pathlib.Path(f"/proc/{target.pid}/task").iterdir()))
    software = [event for event in events if event in SOFTWARE]
    wait_until(lambda: perf_events_of(perf.pid) >= threads * len(software), 20, "perf")
    agent = start.agent("--events", "none", "--stat", ",".join(events), "--pid", target.pid, "--duration", 60, *agent_options, **options)
    wait_until(lambda: "counting" in agent.err, 20, "the agent")
    os.kill(target.pid, signal.SIGUSR1)
    wait_until(lambda: "done" in target.out, 40, "the end of the work")
    os.kill(perf.pid, signal.SIGINT)
    assert agent.stop(signal.SIGINT) == 0
    perf.wait()
    return agent, Table(perf.err)


def test_existing_threads(start):
    """The ten usual events and two more, as typed by a user. Standard output has only the table."""
    agent, theirs = both(start, "steady", HARDWARE + SOFTWARE, "--output", "-")
    ours = Table(agent.out)
    assert agent.out.startswith("\n Performance counter stats for process id '")
    assert ours.title == theirs.title
    compare(ours, theirs)
    # The known work of the workload: 3 threads, 80 rounds of 100 pages, a sleep and 5 ms of CPU; 40 moves at most.
    assert 24_000 <= ours.value("page-faults") < 24_300
    assert 240 <= ours.value("context-switches")
    assert 60 <= ours.value("cpu-migrations") <= 3 * 45
    assert 3 * 80 * 3 <= ours.value("task-clock") < 2 * 3 * 80 * 4
    assert ours.value("minor-faults") == ours.value("page-faults") - ours.value("major-faults")


def test_short_lived_threads_and_processes(start, tmp_path):
    """Threads and processes that live for milliseconds, and their children. --output is a file, so the table goes to standard error."""
    file = tmp_path / "counted.flw"
    agent, theirs = both(start, "churn", SOFTWARE, "--output", file)
    ours = Table(agent.err)
    compare(ours, theirs)
    assert agent.out == ""
    assert file.stat().st_size > 0
    # 12 rounds of 16 times 100 pages in threads, and 24 processes with 300 each, 12 of them with 4 more rounds.
    assert ours.value("page-faults") >= 12 * 16 * 100 + 24 * 300 + 12 * 4 * 100


def test_words_for_events_that_cannot_be_counted(start):
    """Some of these events open on this machine and some do not: each has a number that is not 0, or a word."""
    cache = ["L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "dTLB-load-misses", "stalled-cycles-frontend"]
    agent, theirs = both(start, "steady", HARDWARE + cache + ["alignment-faults", "emulation-faults", "task-clock"], "--output", "-")
    ours = Table(agent.out)
    assert list(ours.rows) == list(theirs.rows)
    for name in HARDWARE + cache:
        our, their = ours.value(name), theirs.value(name)
        if their == "<not supported>":
            assert our == "<not supported>", name
        else:
            assert our in WORDS or our > 0, name
    if os.uname().machine == "x86_64":
        # perf prints 0 here, which is indistinguishable from a counted value.
        assert ours.value("alignment-faults") == ours.value("emulation-faults") == "<never counts>"


def test_default_list(start):
    """Without --stat: the ten most common events come first, in this order, even if some do not work here."""
    target = start.process("work", [TESTS_BIN / "counters-workload", "steady"])
    wait_until(lambda: "ready" in target.out, 20, "the workload")
    agent = start.agent("--events", "none", "--output", "-", "--pid", target.pid, "--duration", 1)
    assert agent.wait() == 0
    names = list(Table(agent.out).rows)
    assert names[:10] == HARDWARE + ["page-faults", "context-switches", "cpu-migrations", "task-clock"]
    assert {"minor-faults", "major-faults"} <= set(names)


def test_launched_command(start):
    """`perf stat -- CMD` and the agent's `-- CMD`, one after the other. Each counts its own run, so only invariant values are compared.
    The agent's exit code is the command's."""
    program = [str(TESTS_BIN / "counters-workload"), "alone"]
    perf = subprocess.run([PERF, "stat", "-e", "page-faults,task-clock", "--", *program], capture_output=True, text=True)
    theirs = Table(perf.stderr)
    agent = start.agent("--events", "none", "--stat", "page-faults,task-clock", "--output", "-", "--", *program)
    assert agent.wait() == 7
    ours = Table(agent.out)
    assert ours.title == theirs.title
    assert list(ours.rows) == list(theirs.rows)
    assert close(ours.value("page-faults"), theirs.value("page-faults"), 0.01)
    assert [row["label"] for row in ours.rows.values()] == [row["label"] for row in theirs.rows.values()]
    # In one run: the counted CPU time, and the command's CPU time according to the kernel.
    used = sum(float(re.search(rf"^ *([\d.]+) seconds {what}$", agent.out, re.M)[1]) for what in ("user", "sys"))
    assert close(ours.value("task-clock"), 1000 * used, 0.25), agent.out
    assert re.search(r"^ *[\d.]+ seconds user\n *[\d.]+ seconds sys$", perf.stderr, re.M)


def test_ordinary_user():
    """If the kernel may not be counted: perf's names with :u. An event that occurs only in the kernel has a word here (perf prints 0)."""
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if os.geteuid() != 0 or paranoid != 2:
        pytest.skip(f"NOT tested: switching to another user needs root, and kernel.perf_event_paranoid must be 2 (it is {paranoid})")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        for program in (BIN / "flamewire-agent", TESTS_BIN / "counters-workload"):
            shutil.copy(program, directory)
        (directory / "logs").mkdir()
        (directory / "logs").chmod(0o777)

        class Start:
            processes = []

            def process(self, name, command):
                import flamewire
                command = [directory / "counters-workload", *command[1:]] if str(command[0]).endswith("-workload") else command
                self.processes.append(flamewire.Process(name, command, directory / "logs", user=65534, group=65534, cwd=directory))
                return self.processes[-1]

            def agent(self, *arguments):
                return self.process("agent", [directory / "flamewire-agent", *arguments])

        start = Start()
        try:
            agent, theirs = both(start, "steady", ["task-clock", "page-faults", "context-switches", "cycles"], "--output", "-")
        finally:
            for process in start.processes:
                if process.alive():
                    process.process.kill()
                    process.process.wait()
        ours = Table(agent.out)
        assert close(ours.value("page-faults:u"), theirs.value("page-faults:u"), 0.01)
        assert close(ours.value("task-clock:u"), theirs.value("task-clock:u"), 0.005)
        assert ours.value("context-switches") == "<not permitted>"
        assert theirs.value("context-switches:u") == 0


def test_table_beside_samples(start):
    """--verbose also prints the counters of a recording with samples. Without it nothing is printed."""
    for verbose in ([], ["--verbose"]):
        target = start.process("work" + "".join(verbose), [TESTS_BIN / "counters-workload", "steady"])
        wait_until(lambda: "ready" in target.out, 20, "the workload")
        os.kill(target.pid, signal.SIGUSR1)
        agent = start.agent("--pid", target.pid, "--duration", 1, "--events", "cpu-clock", "--output", "/dev/null", *verbose,
                            name="agent" + "".join(verbose))
        assert agent.wait() == 0
        assert ("Performance counter stats" in agent.err) == bool(verbose)
