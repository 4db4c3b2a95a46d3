"""Single hits of traced events with their values: compared with perf script and with what the program says about itself."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import test_breakpoints
from flamewire import BIN, TESTS_BIN, wait_until

AGENT = BIN / "flamewire-agent"
TRACEFS = pathlib.Path("/sys/kernel/tracing/events")

if not TRACEFS.exists():
    subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False)
pytestmark = pytest.mark.skipif(not os.access(TRACEFS / "sched" / "sched_switch" / "id", os.R_OK),
                                reason="tracepoints need root and tracefs: nothing of them is tested")

# Begins when a line comes. Between two writes of unusual sizes: 300 writes of known sizes, files that do not exist, and sleeps.
PROGRAM = """
import os, sys, time
sink = os.open("/dev/null", os.O_WRONLY)
sys.stdin.readline()
os.write(sink, b"b" * 4001)
for i in range(300):
    os.write(sink, b"x" * (i % 50 + 1))
    if i % 10 == 0:
        try:
            os.open(f"/nowhere/{i}", os.O_RDONLY)
        except FileNotFoundError:
            pass
    if i % 20 == 0:
        time.sleep(0.005)
os.write(sink, b"e" * 4002)
sys.stdin.readline()
"""
WRITE, OPENED, CACHE_ALLOC, SWITCH = "syscalls:sys_enter_write", "syscalls:sys_exit_openat", "kmem:kmem_cache_alloc", "sched:sched_switch"
EXACT = ["--unwind", "dwarf", "--stack-size", "4096", "--ring-pages", "4096", "--stat", "none"]


def run(*arguments, timeout=120, **options):
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, **options)


def traced(path, *arguments):
    """The hits of a session file."""
    outcome = run(BIN / "flamewire", "trace", "--input", path, "--json", *arguments)
    assert outcome.returncode == 0, outcome
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def record(directory, *arguments, program):
    path = directory / "recorded.flw"
    outcome = run(AGENT, "--output", path, "--force", *EXACT, *arguments, "--", *program)
    assert outcome.returncode == 0, outcome
    return path, outcome


def perf_script(path):
    """(event, values as text) of each sample, in order."""
    outcome = run("perf", "script", "-i", path, "-F", "event,trace")
    assert outcome.returncode == 0, outcome
    return [match.groups() for match in (re.match(r" *(\S+:\S+): +(.*)$", line) for line in outcome.stdout.splitlines()) if match]


def number(text):
    return int(text, 0)


def between_marks(hits, event_of, size_of):
    """What lies between the two unusual writes."""
    marks = {size_of(hit): place for place, hit in enumerate(hits) if event_of(hit) == WRITE and size_of(hit) in (4001, 4002)}
    return hits[marks[4001] + 1:marks[4002]]


def fields_of(values):
    """The values of a tracepoint as perf script prints them."""
    return dict(re.findall(r"(\w+)[=:] ?([^ ,]+)", values))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same run in perf script and in a session of ours."""
    directory = tmp_path_factory.mktemp("both")
    events = [WRITE, OPENED, CACHE_ALLOC, SWITCH]
    perf = subprocess.Popen(["perf", "record", "-q", "-c", "1", "-m", "2048", "-k", "CLOCK_MONOTONIC", "-e", ",".join(events), "-o", str(directory / "perf.data"), "--",
                             sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, text=True)
    children = pathlib.Path(f"/proc/{perf.pid}/task/{perf.pid}/children")
    wait_until(lambda: children.read_text().split() and "python" in pathlib.Path(f"/proc/{children.read_text().split()[0]}/comm").read_text(), 30, "the program under perf")
    pid = children.read_text().split()[0]
    path = directory / "ours.flw"
    with open(directory / "agent.err", "w+") as words:
        agent = subprocess.Popen([str(AGENT), "--output", str(path), "--pid", pid, "--trace", ",".join(events), "--events", "cpu-clock", "--duration", "120", *EXACT], stderr=words)
        wait_until(lambda: "profiling pid" in (directory / "agent.err").read_text(), 30, "the agent")
        perf.stdin.write("go\n")
        perf.stdin.flush()
        perf.stdin.write("end\n")
        perf.stdin.close()
        assert perf.wait(60) == 0 and agent.wait(60) == 0, (directory / "agent.err").read_text()
    assert ", 0 lost" in (directory / "agent.err").read_text()
    theirs = between_marks(perf_script(directory / "perf.data"), lambda hit: hit[0], lambda hit: number(fields_of(hit[1])["count"]))
    ours = between_marks(traced(path), lambda hit: hit["event"], lambda hit: number(hit["values"]["count"]))
    return path, theirs, ours


def of(hits, event):
    return [hit["values"] if isinstance(hit, dict) else fields_of(hit[1]) for hit in hits if (hit["event"] if isinstance(hit, dict) else hit[0]) == event]


def test_numbers_are_those_of_perf_script(both):
    _, theirs, ours = both
    written = [(number(one["fd"]), number(one["buf"]), number(one["count"])) for one in of(theirs, WRITE)]
    assert len(written) == 300
    assert [(number(one["fd"]), number(one["buf"]), number(one["count"])) for one in of(ours, WRITE)] == written
    assert [count for _, _, count in written] == [i % 50 + 1 for i in range(300)]


def test_errors_have_names(both):
    _, theirs, ours = both
    theirs = [one["ret"] if "ret" in one else None for one in of(theirs, OPENED)]
    assert len(theirs) == 30
    assert [one["ret"] for one in of(ours, OPENED)] == ["-2 (ENOENT)"] * 30


def test_flags_are_those_of_perf_script(both):
    """libtraceevent evaluates the expressions of the kernel's print formats, too."""
    _, theirs, ours = both
    theirs, ours = of(theirs, CACHE_ALLOC), of(ours, CACHE_ALLOC)
    assert len(ours) == len(theirs) >= 30
    for one, other in zip(ours, theirs):
        assert [one[name] for name in ("bytes_req", "bytes_alloc", "gfp_flags", "node")] == [other[name] for name in ("bytes_req", "bytes_alloc", "gfp_flags", "node")]
        assert number(one["ptr"]) == number(other["ptr"]) or other["ptr"].startswith("(")


def test_addresses_of_code_have_names(both):
    """call_site is the return address in the caller of kmem_cache_alloc."""
    _, theirs, ours = both
    names = [other["call_site"].split("+")[0] for other in of(theirs, CACHE_ALLOC)]
    assert all(re.match("[a-z_]", name) for name in names), names
    assert [one["call_site"].split(" ")[0].split(".")[0] for one in of(ours, CACHE_ALLOC)] == [name.split(".")[0] for name in names]


def test_states_are_those_of_perf_script(both):
    _, theirs, ours = both
    theirs, ours = of(theirs, SWITCH), of(ours, SWITCH)
    names = ("prev_comm", "prev_pid", "prev_prio", "next_pid", "next_prio")
    assert len(ours) >= 15
    assert [[one[name] for name in names] + [one["prev_state"].replace("|0x100", "")] for one in ours] == \
        [[one[name] for name in names] + [one["prev_state"].rstrip("+")] for one in theirs]


def test_stacks_and_threads(both):
    path, _, ours = both
    hit = next(hit for hit in traced(path, "--stack", 100) if hit["event"] == WRITE and hit["values"]["count"] == hex(4001))
    assert any("write" in name for name in hit["stack"][:12]) and len(hit["stack"]) > 8
    assert hit["comm"].startswith("python") and hit["pid"] == hit["tid"]
    assert [one["time"] for one in ours] == sorted(one["time"] for one in ours)


def test_filters_and_tables(both):
    path, _, ours = both
    assert len(traced(path, "--only", "event=" + WRITE + " count<=10")) == sum(hit["event"] == WRITE and number(hit["values"]["count"]) <= 10 for hit in traced(path))
    outcome = run(BIN / "flamewire", "trace", "--input", path, "--only", f"event={WRITE} count<100", "--by", "fd", "--value", "count", "--json")
    assert outcome.returncode == 0, outcome
    table = json.loads(outcome.stdout)
    sizes = sorted(number(hit["values"]["count"]) for hit in ours if hit["event"] == WRITE)
    group = max(table["groups"], key=lambda one: one["hits"])
    assert (group["hits"], group["sum"], group["min"], group["max"]) == (len(sizes), sum(sizes), sizes[0], sizes[-1])
    # The smallest value that at least this share of the values does not exceed.
    assert [group[name] for name in ("p50", "p95", "p99")] == [sizes[(len(sizes) * share + 99) // 100 - 1] for share in (50, 95, 99)]
    assert sum(bucket["hits"] for bucket in table["distribution"]) == len(sizes)
    assert all(bucket["hits"] == sum(bucket["low"] <= size < bucket["high"] for size in sizes) for bucket in table["distribution"])
    text = run(BIN / "flamewire", "trace", "--input", path, "--only", f"event={WRITE}", "--by", "event", "--value", "count", "--distribution").stdout
    assert re.search(rf"\d+ .* {WRITE}\n", text) and "count from" in text
    assert "no traced event has a field 'nothing'" in run(BIN / "flamewire", "trace", "--input", path, "--by", "nothing").stderr


def test_sql_over_hits(both):
    path, _, _ = both
    outcome = run(BIN / "flamewire", "sql", path, "SELECT h.event, v.text, v.value, h.tid FROM hits h JOIN hit_values v USING (number) WHERE v.name = 'count' ORDER BY h.time_ns", "--json")
    assert outcome.returncode == 0, outcome
    rows = json.loads(outcome.stdout)["results"][0]["rows"]
    listed = [hit for hit in traced(path) if hit["event"] == WRITE]
    assert [row[1] for row in rows] == [hit["values"]["count"] for hit in listed] and [row[2] for row in rows] == [number(hit["values"]["count"]) for hit in listed]
    assert {row[3] for row in rows} == {hit["tid"] for hit in listed}


def test_the_flame_graph_has_each_hit_too(both):
    path, _, _ = both
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed", "-e", WRITE)
    assert outcome.returncode == 0 and sum(int(line.rsplit(" ", 1)[1]) for line in outcome.stdout.splitlines()) == sum(hit["event"] == WRITE for hit in traced(path))


def test_the_first_hits_after_a_trigger(tmp_path):
    """Nothing is kept before the first openat that fails, and then five hits."""
    program = [sys.executable, "-c", PROGRAM.replace("sys.stdin.readline()", "")]
    everything, _ = record(tmp_path, "--trace", f"{WRITE},{OPENED}/ret == -2/", program=program)
    writes = [number(hit["values"]["count"]) for hit in traced(everything) if hit["event"] == WRITE]
    assert writes.count(4001) == 1 and len(traced(everything, "--only", "ret~ENOENT")) >= 30
    path, _ = record(tmp_path, "--trace", f"{WRITE},trigger:{OPENED}/ret == -2/", "--trace-first", 5, program=program)
    hits = traced(path)
    assert len(hits) == 5 and hits[0]["event"].startswith(OPENED)
    # All of them are in the profile.
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed", "-e", WRITE)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in outcome.stdout.splitlines()) == len(writes)


def test_probes_with_texts(tmp_path):
    """Values of a uprobe are what the program passes."""
    program = [sys.executable, "-c", "import os\nfor i in range(40):\n    os.getenv(f'NAME{i}')\n    os.path.exists(f'/nowhere/{i}')"]
    path, _ = record(tmp_path, "--trace", "uprobe:stat64@libc//path=+0($arg1):string/", program=program)
    paths = [hit["values"]["path"] for hit in traced(path)]
    assert [one for one in paths if one.startswith("/nowhere/")] == [f"/nowhere/{i}" for i in range(40)]


def test_addresses_of_faults(tmp_path):
    """Each page of a fresh mapping is touched once: the addresses are those of its pages."""
    program = [sys.executable, "-c", "import mmap, ctypes\nm = mmap.mmap(-1, 4096 * 200)\na = ctypes.addressof(ctypes.c_char.from_buffer(m))\nprint(a, flush=True)\nfor i in range(200): m[i * 4096] = 1"]
    path, outcome = record(tmp_path, "--trace", "page-faults", program=program)
    begin = int(outcome.stdout)
    addresses = [number(hit["values"]["address"]) for hit in traced(path)]
    touched = [address for address in addresses if begin <= address < begin + 4096 * 200]
    # The kernel may map several pages at a fault, but never one of them twice.
    assert touched and len(set(touched)) == len(touched)
    assert sorted(touched) == touched


@test_breakpoints.pytestmark
def test_writes_to_a_variable_have_its_address(tmp_path):
    workload = TESTS_BIN / "breakpoints-fixed-workload"
    symbols = {line.split()[2]: int(line.split()[0], 16) for line in run("nm", workload).stdout.splitlines() if len(line.split()) == 3}
    path, _ = record(tmp_path, "--trace", "mem:written:w:u", program=[workload, 50])
    hits = traced(path)
    assert len(hits) == 100  # two stores each time
    assert {number(hit["values"]["address"]) for hit in hits} == {symbols["written"]}


def test_what_cannot_be_traced(tmp_path):
    def refused(*arguments):
        outcome = run(AGENT, "--output", tmp_path / "x.flw", *arguments, "--", "true")
        assert outcome.returncode == 2, outcome
        return outcome.stderr
    assert "is a time, not an event to trace" in refused("--trace", "off-cpu")
    assert "--trace needs at least one event" in refused("--trace", "")
    assert "--trace-first needs --trace LIST" in refused("--trace-first", "7")
    assert "--trace excludes --events none" in refused("--events", "none", "--trace", WRITE)
    outcome = run(BIN / "flamewire", "trace", "-p", "1")
    assert outcome.returncode != 0 and "give the events" in outcome.stderr


def test_hits_are_printed_live(tmp_path):
    """While the program still runs."""
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nos.write(2, b'y' * 33)\nsys.stdin.readline()\n")
    trace = subprocess.Popen([str(BIN / "flamewire"), "trace", "-e", WRITE, "--only", "count=33", "--json", "--stack", "3", "--", sys.executable, str(program)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        hit = json.loads(trace.stdout.readline())
        assert hit["event"] == WRITE and hit["values"]["fd"] == "0x2" and trace.poll() is None
        trace.stdin.write("end\n")
        trace.stdin.close()
        assert trace.wait(60) == 0
    finally:
        trace.kill()
        trace.wait()


def test_a_live_trace_ends_with_its_reader_and_with_a_signal(tmp_path):
    """`trace | head` ends, and SIGTERM ends the recording, not the command: the table is printed."""
    program = subprocess.Popen([sys.executable, "-c", "import os\nwhile True: os.getppid()"], stdin=subprocess.DEVNULL)
    arguments = [str(BIN / "flamewire"), "trace", "-p", str(program.pid), "-e", "syscalls:sys_exit_getppid@99"]
    traces = []
    try:
        traces.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        assert f"ret={os.getpid()}" in traces[0].stdout.readline()
        traces[0].stdout.close()
        assert traces[0].wait(60) == 0
        words = tmp_path / "words"
        with words.open("w") as errors:
            traces.append(subprocess.Popen([*arguments, "--by", "ret", "--json"], stdout=subprocess.PIPE, stderr=errors, text=True))
        wait_until(lambda: "profiling pid" in words.read_text(), 60, "the recording")
        time.sleep(1)
        traces[1].send_signal(signal.SIGTERM)
        table = json.loads(traces[1].communicate(timeout=60)[0])
        assert traces[1].returncode == 0 and all(group["key"] == str(os.getpid()) for group in table["groups"])
    finally:
        for one in (program, *traces):
            one.kill()
            one.wait()


def test_top_counts_hits_by_a_key(tmp_path):
    program = subprocess.Popen([sys.executable, "-c", "import os\nwhile True: os.getppid()"], stdin=subprocess.DEVNULL)
    try:
        top = subprocess.Popen([str(one) for one in (BIN / "flamewire", "top", "-p", program.pid, "-e", "syscalls:sys_exit_getppid", "--by", "ret", "--every", 0.2, "--json")],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        # The first tables are empty: the recording is about to begin.
        groups = next(groups for groups in (json.loads(line)["groups"] for line in top.stdout) if groups)
        assert [group["key"] for group in groups] == [str(os.getpid())] and groups[0]["hits"] > 0
        assert "--by needs events" in run(BIN / "flamewire", "top", "-p", program.pid, "--by", "ret").stderr
    finally:
        top.kill()
        top.wait()
        program.kill()
        program.wait()
