"""Hardware breakpoints: hits against perf stat on the same program, stacks and source lines against markers in the source, several
processes with ASLR, symbols of libraries, and refusals."""
import collections
import pathlib
import signal
import struct
import subprocess
import time

import pprof
import pytest
from flamewire import BIN, TESTS_BIN, wait_until

AGENT = BIN / "flamewire-agent"
FIXED, PIE = TESTS_BIN / "breakpoints-fixed-workload", TESTS_BIN / "breakpoints-pie-workload"
LIBRARY = TESTS_BIN / "breakpoints-library.so"
SOURCES = pathlib.Path(__file__).parents[1] / "workloads"
TIMES = 300


def run(*arguments, timeout=120, **options):
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, **options)


def symbols(program):
    """Name -> address, as nm reads it."""
    fields = [line.split() for line in run("nm", program).stdout.splitlines()]
    return {parts[2]: int(parts[0], 16) for parts in fields if len(parts) == 3}


def by_perf(event, *program):
    outcome = run("perf", "stat", "-x", ";", "-e", event, *program)
    found = [line.split(";")[0] for line in outcome.stderr.splitlines() if ";mem:" in line]
    return int(found[0]) if found and found[0].isdigit() else None


pytestmark = pytest.mark.skipif(by_perf(f"mem:{symbols(FIXED)['written']:#x}:w:u", FIXED, 3) != 6,
                                reason="perf cannot use hardware breakpoints here: nothing of them is tested")


def line_of(marker, source="breakpoints.cc"):
    lines = (SOURCES / source).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith("// " + marker))


def record(directory, *arguments, events, program=(), timeout=120):
    path = directory / "recorded.flw"
    command = [AGENT, "--output", path, "--force", "--unwind", "dwarf", "--events", ",".join(events), *arguments]
    outcome = run(*command, *(("--", *program) if program else ()), timeout=timeout)
    assert outcome.returncode == 0, outcome
    assert "left out" not in outcome.stderr and "Threads that are not sampled" not in outcome.stderr, outcome
    return path


def stacks(path, event, *arguments):
    """Call path, outermost first -> number of hits."""
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed", "-e", event, "--weights", *arguments)
    assert outcome.returncode == 0, outcome
    return {tuple(names.split(";")): int(number) for names, number in (line.rsplit(" ", 1) for line in outcome.stdout.splitlines())}


def leaves(path, event, *arguments):
    found = collections.Counter()
    for names, number in stacks(path, event, *arguments).items():
        found[names[-1]] += number
    return dict(found)


def innermost_lines(path, event):
    """(function, line) of the innermost frame -> number of hits, as protoc reads them from a pprof profile."""
    exported = path.with_suffix(".pb.gz")
    outcome = run(BIN / "flamewire", "export", path, "--format", "pprof", "-e", event, "-o", exported)
    assert outcome.returncode == 0, outcome
    raw = pprof.decode(exported.read_bytes())
    exported.unlink()
    names = {one["id"][0]: raw["string_table"][one["name"][0]] for one in raw["function"]}
    lines = {one["id"][0]: one["line"][0] for one in raw["location"] if "line" in one}
    found = collections.Counter()
    for sample in raw["sample"]:
        line = lines[sample["location_id"][0]]
        found[names[line["function_id"][0]], line["line"][0]] += sample["value"][0]
    return dict(found)


@pytest.mark.parametrize("symbol, access, function, marker", [
    ("written", "w", "write_variable", "line of the store"),
    ("written", "rw", "write_variable", "line of the store"),
    ("long_written", "w", "write_long", "line of the long store"),
    ("only_read", "rw", "read_variable", "line of the load"),
    ("several+8", "w", "write_several", "line of the store in an array"),
])
def test_hits_are_those_of_perf(tmp_path, symbol, access, function, marker):
    """Each access is a sample, whose innermost frame is the line of the access, although the CPU reports the next instruction."""
    name, _, offset = symbol.partition("+")
    address = symbols(FIXED)[name] + int(offset or 0)
    length = 8 if name == "long_written" else 4
    counted = by_perf(f"mem:{address:#x}/{length}:{access}:u", FIXED, TIMES)
    assert counted == TIMES * (2 if name == "written" else 1)
    event = f"mem:{symbol}:{access}:u"
    by_symbol = record(tmp_path, events=[event], program=[FIXED, TIMES])
    assert leaves(by_symbol, event) == {function: counted}
    assert innermost_lines(by_symbol, event) == {(function, line_of(marker)): counted}
    assert all(names[1:] in ((*names[1:-2], "main", function), (*names[1:-3], "main", names[-2], function)) for names in stacks(by_symbol, event))
    event = f"mem:{address:#x}/{length}:{access}:u"
    by_address = record(tmp_path, events=[event], program=[FIXED, TIMES])
    assert leaves(by_address, event) == {function: counted}
    # The kernel, too: it clears the variables of a program that it loads.
    event = f"mem:{symbol}:{access}"
    with_kernel = sum(stacks(record(tmp_path, events=[event], program=[FIXED, TIMES]), event).values())
    assert with_kernel == by_perf(f"mem:{address:#x}/{length}:{access}", FIXED, TIMES)


def test_a_write_is_not_a_read_and_other_bytes_do_not_count(tmp_path):
    event = "mem:only_read:w:u"
    assert stacks(record(tmp_path, events=["cpu-clock", event], program=[FIXED, TIMES]), event) == {}
    event = "mem:several/4:w:u"
    assert stacks(record(tmp_path, events=["cpu-clock", event], program=[FIXED, TIMES]), event) == {}


def test_execution(tmp_path):
    """The innermost frame is the instruction at the breakpoint."""
    counted = by_perf(f"mem:{symbols(FIXED)['write_variable']:#x}:x:u", FIXED, TIMES)
    assert counted == 2 * TIMES
    event = "mem:write_variable:x"
    path = record(tmp_path, events=[event], program=[FIXED, TIMES])
    assert leaves(path, event) == {"write_variable": counted}
    place = run("addr2line", "-e", FIXED, hex(symbols(FIXED)["write_variable"])).stdout
    assert innermost_lines(path, event) == {("write_variable", int(place.rsplit(":", 1)[1])): counted}


def test_children_and_threads(tmp_path):
    event = "mem:written:w:u"
    path = record(tmp_path, events=[event], program=[FIXED, TIMES, "fork", "threads"])
    assert leaves(path, event) == {"write_variable": 2 * TIMES * 4}


@pytest.fixture
def waiting():
    """Starts programs that wait for a line before they access their variables."""
    started = []

    def begin(program, *arguments, times=TIMES):
        process = subprocess.Popen([program, str(times), "wait", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def record_waiting(directory, processes, *arguments, events, unwind="dwarf"):
    """Records running processes until all have ended."""
    path = directory / "recorded.flw"
    agent = subprocess.Popen([AGENT, "--output", path, "--force", "--unwind", unwind, "--duration", "60", "--events", ",".join(events), *arguments,
                              "--pid", ",".join(str(process.pid) for process in processes)], stderr=subprocess.PIPE, text=True)
    text = ""
    for line in agent.stderr:
        text += line
        if "profiling" in line:
            break
    for process in processes:
        process.stdin.write("\n")
        process.stdin.close()
        process.wait(60)
    text += agent.stderr.read()
    assert agent.wait(60) == 0, text
    return path


def test_processes_with_different_addresses(tmp_path, waiting):
    """Address space layout randomization gives each process its own addresses. One of them has a child."""
    times = 100
    processes = [waiting(PIE, times=times), waiting(PIE, "fork", times=times), waiting(FIXED, times=times)]
    bases = {pathlib.Path(f"/proc/{one.pid}/maps").read_text().split("-")[0] for one in processes[:2]}
    assert len(bases) == 2, "the kernel does not randomize addresses here"
    total = "mem:shop::total:w"
    events = ["mem:written:w", total, f'mem:library_written@"{LIBRARY}":w']
    path = record_waiting(tmp_path, processes, events=events, unwind="fp")
    for process, runs in zip(processes, (1, 2, 1)):
        own = () if runs > 1 else ("-p", process.pid)
        expected = times * (4 if own == () else 1)
        assert sum(stacks(path, "mem:written:w", *own).values()) == 2 * expected
    assert innermost_lines(path, "mem:written:w") == {("write_variable", line_of("line of the store")): 8 * times}
    (function, line), = innermost_lines(path, total)
    assert function.startswith("shop::add") and line == line_of("line of the store in a namespace")
    library = line_of("line of the store in the library", "breakpoints_library.cc")
    assert innermost_lines(path, events[2]) == {("library_write", library): 4 * times}


def test_a_library_by_its_name(tmp_path, waiting):
    event = "mem:library_written@breakpoints-library:w"
    path = record_waiting(tmp_path, [waiting(PIE)], events=[event])
    assert leaves(path, event) == {"library_write": TIMES}


def test_refusals(tmp_path, waiting):
    def sentence(event, *arguments, program=(FIXED, 1)):
        outcome = run(AGENT, "--output", tmp_path / "x.flw", "--events", event, *arguments, *(("--", *program) if program else ()))
        assert outcome.returncode != 0 and not (tmp_path / "x.flw").exists(), outcome
        return outcome.stderr

    assert "breakpoints-pie-workload is position-independent, so the address is not known before it runs; start the command first, and give its process with --pid" in sentence(
        "mem:written:w", program=(PIE, 1))
    assert "where breakpoints-library.so will be is not known before the command runs" in sentence("mem:library_written@breakpoints-library.so:w")
    assert "has no variable nothing" in sentence("mem:nothing:w")
    assert "has no variable write_variable" in sentence("mem:write_variable:w")
    assert "several has only 16 bytes" in sentence("mem:several+16:w")
    assert "the size of __dso_handle is unknown, so the offset must be less than 8" in sentence("mem:__dso_handle+0xffffffff80c00000:w")
    crafted = tmp_path / "crafted"
    entry = struct.pack("<QQ", symbols(FIXED)["several"], 16)  # st_value and st_size
    assert FIXED.read_bytes().count(entry) == 1
    crafted.write_bytes(FIXED.read_bytes().replace(entry, struct.pack("<QQ", 0xffffffff81000000, 16)))
    crafted.chmod(0o755)
    assert "the address 0xffffffff81000000 is not in user space" in sentence("mem:several:w", program=(crafted, 1))
    assert "is not a multiple of the length 8" in sentence("mem:several+4/8:w")
    assert "give an address instead of a variable" in sentence("mem:written:w", "--all", program=())
    process = waiting(PIE)
    assert f"process {process.pid} has no code of libnothing in memory" in sentence("mem:x@libnothing:w", "--pid", process.pid, program=())
    assert "needs kernel mode" in sentence("mem:0xffffffff81000000:w", "--no-kernel")
    five = ",".join(f"mem:several+{4 * i}:w" for i in range(4)) + ",mem:written:w"
    outcome = run(AGENT, "--output", tmp_path / "x.flw", "--events", five, "--", FIXED, 1)
    assert "mem:written:w is left out: the CPU has no free breakpoint for event mem:written:w" in outcome.stderr, outcome


def test_a_server_needs_permission(start, waiting):
    process = waiting(PIE)
    server = start.server()
    arguments = ("--server", "127.0.0.1", "--port", server.port)
    agent = start.agent(*arguments)

    def connected(agents):
        wait_until(lambda: sum(entry["connected"] for entry in server.get("/api/agents")["agents"]) == agents, 30, "the agent")

    connected(1)
    refused = server.command("start", pid=process.pid, events=["mem:written:w"])
    assert not refused["ok"]
    assert "this agent does not let servers set breakpoints; start it with --allow-breakpoints" in refused["error"], refused
    agent.stop()
    connected(0)
    start.agent(*arguments, "--allow-breakpoints", name="allowed")
    connected(1)
    for event in ("mem:0xffffffff81000000:w", "mem:0x1000:w"):
        refused = server.command("start", **({"all": True} if "0x1000" in event else {"pid": process.pid}), events=[event])
        assert not refused["ok"] and "servers may set breakpoints only in the user space of processes" in refused["error"], refused
    refused = server.command("start", pid=process.pid, events=["breakpoint/config1=0x1000/"])
    assert not refused["ok"], refused
    assert server.command("start", pid=process.pid, events=["mem:written:w", "cpu-clock"], unwind="fp")["ok"]
    # Three of the four breakpoints of the CPU, so that the old and the new events do not fit together.
    changed = server.command("configure", events=["mem:written:w", "mem:long_written:w", "mem:only_read:rw"])
    assert changed["ok"], changed
    assert server.command("configure", frequency=199)["ok"]
    process.stdin.write("\n")
    process.stdin.close()
    process.wait(60)
    server.wait_ended()
    session = server.only_session()["id"]
    for event, hits in (("mem:written:w", 2 * TIMES), ("mem:long_written:w", TIMES), ("mem:only_read:rw", TIMES)):
        found = server.get("/api/functions", session=session, event=event)
        assert found["total"]["weight"] == hits, (event, found["total"])


def test_a_server_may_keep_the_breakpoints_of_the_agent(start):
    server = start.server()
    own = "mem:0x10000:w,cpu-clock"
    start.agent("--server", "127.0.0.1", "--port", server.port, "--all", "--events", own)
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    assert server.command("stop")["ok"]
    started = server.command("start", all=True, events=own.split(","))
    assert started["ok"], started
    refused = server.command("configure", events=["mem:0x20000:w"])
    assert not refused["ok"] and "this agent does not let servers set breakpoints" in refused["error"], refused


def test_children_keep_their_breakpoints(start, waiting):
    """Each change of a recording opens new events, for children of the target, too. Their addresses are those of their parent."""
    process = waiting(PIE, "fork", times=3000)
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--allow-breakpoints")
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    assert server.command("start", pid=process.pid, events=["mem:written:w"])["ok"]
    process.stdin.write("\n")
    process.stdin.close()
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    child = int(wait_until(lambda: children.read_text().split(), what="the child")[0])
    assert server.command("configure", frequency=199)["ok"]
    assert server.command("configure", frequency=499)["ok"]
    process.wait(60)
    server.wait_ended()
    for pid in (process.pid, child):
        total = server.get("/api/functions", session=server.only_session()["id"], event="mem:written:w", pid=pid)["total"]
        assert 0.9 * 6000 < total["weight"] <= 6000, (pid, total)


def test_processes_that_start_later(tmp_path, waiting):
    """--name adds them, with their own addresses. Three of the four breakpoints of the CPU do not fit beside those in use."""
    events = {"mem:written:w": ("write_variable", 4), "mem:long_written:w": ("write_long", 2), "mem:only_read:rw": ("read_variable", 2)}
    path = tmp_path / "recorded.flw"
    first = waiting(PIE)
    agent = subprocess.Popen([AGENT, "--output", path, "--events", ",".join(events), "--unwind", "fp", "--duration", "60", "--name", PIE.name],
                             stderr=subprocess.PIPE, text=True)
    text = ""
    for line in agent.stderr:
        text += line
        if "profiling" in line:
            break
    second = waiting(PIE)
    for line in agent.stderr:
        text += line
        if str(second.pid) in line:
            break
    for process in (first, second):
        process.stdin.write("\n")
        process.stdin.close()
        process.wait(60)
    time.sleep(1)  # the agent reads the rest
    agent.send_signal(signal.SIGINT)
    text += agent.stderr.read()
    assert agent.wait(60) == 0, text
    assert "Threads that are not sampled" not in text, text
    for event, (function, times) in events.items():
        assert leaves(path, event) == {function: times * TIMES}, (event, text)
