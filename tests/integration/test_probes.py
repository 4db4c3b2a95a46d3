"""Probes on functions and USDT probes: hits against bpftrace on the same run, stacks against gdb's, and programs that leave
probed functions by exceptions, longjmp, cancellation and fork."""
import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from flamewire import BIN, TESTS_BIN, wait_until

AGENT = BIN / "flamewire-agent"
WORKLOAD = TESTS_BIN / "probes-workload"
UPROBE_EVENTS = pathlib.Path("/sys/kernel/tracing/uprobe_events")

if not UPROBE_EVENTS.exists():
    subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False)
pytestmark = pytest.mark.skipif(not os.access(UPROBE_EVENTS, os.W_OK),
                                reason="probes need root and a kernel with CONFIG_UPROBE_EVENTS: nothing of them is tested")


def run(*arguments, timeout=120, **options):
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, **options)


def created_probes():
    """The probes in tracefs, one line each."""
    return [line for line in UPROBE_EVENTS.read_text().splitlines() if "flamewire_" in line]


def owner(line):
    return int(re.match(r".:flamewire_[0-9a-f]+_([0-9a-f]+)_", line)[1], 16)


@pytest.fixture(autouse=True)
def nothing_stays():
    """Each recording removes its probes. Other tests have recordings of their own at the same time, so only ended agents count."""
    def left():
        lines = created_probes()
        return [line for line in lines if re.search(r"/p[0-9]+_(probed|shop)_", line) and not pathlib.Path(f"/proc/{owner(line)}").exists()]
    yield
    wait_until(lambda: not left(), what="the removal of probes")


def record(directory, *arguments, program, events=(), timeout=120):
    """Hits are exact: the mode of stacks does not change, which reopens the events, and the rings have room for all samples."""
    path = directory / "recorded.flw"
    exact = ["--unwind", "dwarf", "--stack-size", 4096, "--ring-pages", 4096]
    outcome = run(AGENT, "--output", path, "--force", "--events", ",".join(events), *exact, *arguments, "--", *program, timeout=timeout)
    assert outcome.returncode == 0, outcome
    return path, outcome


def counts(*arguments, events, program, **options):
    """Event -> what --stat counted."""
    outcome = run(AGENT, "--output", "-", "--events", "none", "--stat", ",".join(events), *arguments, "--", *program, **options)
    assert outcome.returncode == 0, outcome
    found = {}
    for line in outcome.stdout.splitlines():
        if match := re.match(r" +([0-9,]+) +(\S.*?)( +# .*)?$", line):
            found[match[2].strip()] = int(match[1].replace(",", ""))
    return found


def stacks(path, event):
    """Call path, outermost first -> number of hits."""
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed", "-e", event, "--weights")
    assert outcome.returncode == 0, outcome
    return {tuple(names.split(";")): int(number) for names, number in (line.rsplit(" ", 1) for line in outcome.stdout.splitlines())}


def hits(path, event):
    return sum(stacks(path, event).values())


def probe(function, attributes=""):
    return f'uprobe:{function}@"{WORKLOAD}"{attributes}'


def test_each_hit_is_a_sample_with_its_stack(tmp_path):
    leaf = probe("probed_leaf")
    path, outcome = record(tmp_path, "--count", 1, events=[leaf], program=[WORKLOAD, "calls", 200])
    found = stacks(path, leaf)
    calls = 200 + 20  # probed_recursion() ends in probed_outer()
    assert sum(found.values()) == 2 * calls, outcome.stderr
    for frames in found:
        assert frames[-3:] == ("probed_outer", "probed_inner", "probed_leaf"), frames
        assert "main" in frames
    # The entry is not emulated; the branch after it is passed by every call.
    offset = int(re.search(r"offset (0x[0-9a-f]+) of", outcome.stderr)[1], 16)
    code = run("objdump", "-d", "--disassemble=probed_leaf", WORKLOAD).stdout
    entry, branch = re.findall(r"^ *([0-9a-f]+):.*\t(\w+) ", code, re.M)[:2]
    if os.uname().machine == "x86_64":
        assert (entry[1], branch[1]) == ("test", "je"), code
        assert offset == int(branch[0], 16)


def test_names_of_cxx_functions(tmp_path):
    methods = [probe("shop::Cart::add"), probe("shop::Cart::~Cart")]
    path, _ = record(tmp_path, "--count", 1, events=methods, program=[WORKLOAD, "calls", 30])
    assert [hits(path, method) for method in methods] == [30, 1]
    unknown = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'uprobe:nothing::here@"{WORKLOAD}"', "--", WORKLOAD)
    assert unknown.returncode == 1
    assert "has no function nothing::here" in unknown.stderr
    ambiguous = run(AGENT, "--output", tmp_path / "x.flw", "--events", probe("shop::Cart::remove"), "--", WORKLOAD)
    assert ambiguous.returncode == 1
    assert "2 functions named shop::Cart::remove" in ambiguous.stderr


def test_a_pattern_is_one_event_for_each_function(tmp_path):
    path, _ = record(tmp_path, "--count", 1, events=[probe("probed_*er")], program=[WORKLOAD, "calls", 10])
    outcome = run(BIN / "flamewire", "report", path, "--json")
    names = {event["name"] for event in json.loads(outcome.stdout)["events"]}
    assert names == {probe("probed_inner"), probe("probed_outer")}, outcome.stdout
    too_many = run(AGENT, "--output", tmp_path / "x.flw", "--events", 'uprobe:*@"libc.so.6"', "--", WORKLOAD)
    assert too_many.returncode == 1
    assert "more than" in too_many.stderr


def test_fields_and_filters(tmp_path):
    """The kernel reads the arguments that the calls pass, and the filter selects by them."""
    counted = counts(events=[
        probe("probed_outer", "/number >= 90/number=$arg1:s32/"),
        probe("probed_leaf", '/text == "odd"/text=+0($arg1):string/number=$arg2:s32/'),
        probe("probed_leaf", "/number == 5/number=$arg2:s32/alias=five/"),
    ], program=[WORKLOAD, "calls", 100])
    # probed_recursion(i % 7) for i = 0, 10, … calls probed_outer(0).
    assert [counted[name] for name in sorted(counted)] == [2, 50, 10], counted
    wrong = run(AGENT, "--output", tmp_path / "x.flw", "--events", probe("probed_outer", "/size > 1/number=$arg1/"), "--", WORKLOAD)
    assert wrong.returncode == 1
    assert "fields here: __probe_ip, number" in wrong.stderr


# Functions of Debian's programs, which are stripped: of their dynamic symbols, of libc, and the entry point by its address.
PROGRAMS = {
    "/usr/bin/bash": (["-c", "for ((i = 0; i < 200; i++)); do x=$i$(:); done; shopt >/dev/null"],
                      ["execute_command", "expand_word", "make_child", "bind_variable", "parse_command", "xmalloc"]),
    "/usr/bin/python3.11": (["-c", "print(sum(len(str(i)) for i in range(2000)), [dict(a=i) for i in range(50)][-1])"],
                            ["PyDict_New", "PyObject_Str", "PyLong_FromLong", "PyObject_GetIter"]),
    "/usr/bin/perl": (["-e", "my %h; $h{$_ % 7} .= $_ for 1 .. 500; print sort values %h"], ["Perl_sv_setsv_flags", "Perl_newSV", "Perl_hv_common"]),
    "/usr/bin/xz": (["--help"], []),
    "/usr/bin/sort": (["--version"], []),
}
LIBC_FUNCTIONS = ["malloc", "free", "realloc", "fwrite", "setlocale", "getenv", "__libc_start_main"]


def bpftrace_counts(places, command, comm, kind="uprobe"):
    """(file, function) -> hits in processes of that name, while the command runs."""
    text = " ".join(f'{kind}:{file}:{function if function.startswith("0x") else json.dumps(function)} /comm == "{comm}"/ {{ @{name} = count(); }}'
                    for (file, function), name in zip(places, map("c{}".format, range(len(places)))))
    outcome = run("bpftrace", "--unsafe", "-f", "json", "-e", text, "-c", f"/bin/sh {command}")
    assert outcome.returncode == 0, outcome
    found = dict.fromkeys(places, 0)
    for line in outcome.stdout.splitlines():
        if line.startswith("{") and '"map"' in line:
            for name, value in json.loads(line)["data"].items():
                found[places[int(name.removeprefix("@c"))]] = value
    return found


def code_offset(path, address):
    """File offset of the code at a virtual address."""
    for line in run("readelf", "-lW", path).stdout.splitlines():
        if line.split()[:1] == ["LOAD"]:
            offset, start, _, size = (int(word, 16) for word in line.split()[1:5])
            if start <= address < start + size:
                return address - start + offset
    raise AssertionError(path)


@pytest.mark.parametrize("original", PROGRAMS)
def test_hits_are_those_of_bpftrace(tmp_path, original):
    """Both count the same run, so that nothing depends on how much the program does in each run."""
    if not pathlib.Path(original).exists():
        pytest.skip(f"{original} is not installed: its hits are not compared")
    unique = f"fw{os.getpid()}{pathlib.Path(original).name}"[:15]
    program = tmp_path / unique
    shutil.copy(original, program)
    arguments, functions = PROGRAMS[original]
    # bpftrace stops every process that uses a file, also those of other tests, so the program has its own libc.
    libc = str(tmp_path / "libc.so.6")
    shutil.copy(re.search(r"libc\.so\.6 => (\S+)", run("ldd", program).stdout)[1], libc)
    places = [(str(program), function) for function in functions] + [(libc, function) for function in LIBC_FUNCTIONS]
    entry = int(re.search(r"Entry point address: +(0x[0-9a-f]+)", run("readelf", "-h", program).stdout)[1], 16)
    events = ",".join([f'uprobe:{function}@"{file}"' for file, function in places] + [f"uprobe:{program}:{code_offset(program, entry):#x}"])
    table, errors, command = (tmp_path / name for name in ("table", "errors", "command"))
    words = " ".join(shlex.quote(str(word)) for word in [program, *arguments])
    command.write_text(f"export LD_LIBRARY_PATH={tmp_path}\nexec {AGENT} --output - --events none --stat {shlex.quote(events)} -- {words} > {table} 2> {errors}\n")
    expected = bpftrace_counts([*places, (str(program), f"{entry:#x}")], command, unique)
    found = {}
    for line in table.read_text().splitlines():
        if match := re.match(r' +([0-9,]+) +uprobe:(\S+)@"([^"]+)"', line):
            found[match[3], match[2]] = int(match[1].replace(",", ""))
        elif match := re.match(r" +([0-9,]+) +uprobe:(/\S+):0x", line):
            found[match[2], f"{entry:#x}"] = int(match[1].replace(",", ""))
    assert len(found) == len(places) + 1, (table.read_text(), errors.read_text())
    assert found == {place: expected[place] for place in found}
    assert found[str(program), f"{entry:#x}"] == 1
    assert found[libc, "malloc"] > 0


def private_copy(directory, original):
    """bpftrace stops every process that uses a file, also those of other tests, so the program and its libc are copies."""
    program = directory / f"fw{os.getpid()}{pathlib.Path(original).name}"[:15]
    shutil.copy(original, program)
    libc = directory / "libc.so.6"
    shutil.copy(re.search(r"libc\.so\.6 => (\S+)", run("ldd", program).stdout)[1], libc)
    return program, libc


# Functions of optimized, stripped programs, with up to 40 returns, moved parts, switches and tail calls.
RETURNS = {
    "/usr/bin/bash": ["execute_command", "expand_word", "bind_variable", "parse_command", "xmalloc", "make_word", "find_variable", "copy_word", "dispose_words", "make_child",
                      "command_substitute", "evalexp"],
    "/usr/bin/python3.11": ["PyDict_New", "PyObject_Str", "PyLong_FromLong", "PyDict_SetItem", "PyUnicode_FromString", "PyTuple_New", "PyList_Append", "PyArg_ParseTuple"],
    "/usr/bin/perl": ["Perl_sv_setsv_flags", "Perl_newSV", "Perl_hv_common", "Perl_sv_2iv_flags", "Perl_sv_2pv_flags", "Perl_save_alloc", "Perl_av_fetch"],
}
LIBC_RETURNS = ["malloc", "free", "calloc", "realloc", "posix_memalign", "fwrite", "setlocale", "getenv", "strdup", "fopen", "qsort", "strtol"]


@pytest.mark.parametrize("original", RETURNS)
def test_returns_are_those_of_bpftrace(tmp_path, original):
    """bpftrace uses the kernel's return probes, which see the results of tail calls, too."""
    if not pathlib.Path(original).exists():
        pytest.skip(f"{original} is not installed: its returns are not compared")
    program, libc = private_copy(tmp_path, original)
    places = [(str(program), function) for function in RETURNS[original]] + [(str(libc), function) for function in LIBC_RETURNS]
    events = ",".join(f'uretprobe:{function}@"{file}"' for file, function in places)
    table, errors, command = (tmp_path / name for name in ("table", "errors", "command"))
    words = " ".join(shlex.quote(str(word)) for word in [program, *PROGRAMS[original][0]])
    command.write_text(f"export LD_LIBRARY_PATH={tmp_path}\nexec {AGENT} --output - --events none --stat {shlex.quote(events)} -- {words} > {table} 2> {errors}\n")
    expected = bpftrace_counts(places, command, program.name, "uretprobe")
    found = {(match[2], match[1]): int(match[0].replace(",", "")) for match in re.findall(r'^ +([0-9,]+) +uretprobe:(\S+)@"([^"]+)"', table.read_text(), re.M)}
    assert len(found) == len(places), (table.read_text(), errors.read_text())
    assert found == {place: expected[place] for place in found}
    assert sum(number > 0 for number in found.values()) >= 10, found


# Conditions of bpftrace, which are also filters of the kernel.
RESULTS = {
    "returns": (WORKLOAD, ["returns", 300], {"probed_returns": ["retval == 100", "retval == 104", "retval > 90 && retval < 105", "retval == -1"]}),
    "recursion": (WORKLOAD, ["calls", 200], {"probed_recursion": ["retval == 1", "retval == 3", "retval > 2"]}),
    "pointers": ("/usr/bin/python3.11", PROGRAMS["/usr/bin/python3.11"][0], {name: [f"retval & {1 << bit}" for bit in (4, 5, 6, 12)] for name in ("malloc", "PyTuple_New")}),
}


@pytest.mark.parametrize("run_of", RESULTS)
def test_results(tmp_path, run_of):
    original, arguments, conditions = RESULTS[run_of]
    if not pathlib.Path(original).exists():
        pytest.skip(f"{original} is not installed: results of its functions are not compared")
    program, libc = private_copy(tmp_path, original)
    kinds = [(function, condition) for function, all_of in conditions.items() for condition in all_of]
    files = {function: libc if function == "malloc" else program for function in conditions}
    events = ",".join(f'uretprobe:{function}@"{files[function]}"/{condition}/retval=$retval:{"u64" if "&" in condition else "s64"}/alias=c{i}/'
                      for i, (function, condition) in enumerate(kinds))
    table, errors, command = (tmp_path / name for name in ("table", "errors", "command"))
    words = " ".join(shlex.quote(str(word)) for word in [program, *arguments])
    command.write_text(f"export LD_LIBRARY_PATH={tmp_path}\nexec {AGENT} --output - --events none --stat {shlex.quote(events)} -- {words} > {table} 2> {errors}\n")
    # bpftrace's retval is unsigned.
    text = " ".join(f'uretprobe:{files[function]}:{function} /comm == "{program.name}" && {condition.replace("retval", "(int64)retval")}/ {{ @c{i} = count(); }}'
                    for i, (function, condition) in enumerate(kinds))
    outcome = run("bpftrace", "--unsafe", "-f", "json", "-e", text, "-c", f"/bin/sh {command}")
    assert outcome.returncode == 0, outcome
    expected = {}
    for line in outcome.stdout.splitlines():
        if line.startswith("{") and '"map"' in line:
            expected |= {name.removeprefix("@"): value for name, value in json.loads(line)["data"].items()}
    found = {name: int(number.replace(",", "")) for number, name in re.findall(r"^ +([0-9,]+) +(c\d+) ", table.read_text(), re.M)}
    assert len(found) == len(kinds), (table.read_text(), errors.read_text())
    assert found == {name: expected.get(name, 0) for name in found}
    assert all(found.values()), found


@pytest.mark.parametrize("way", ["exceptions", "jumps", "cancellations"])
def test_only_calls_that_return_count(tmp_path, way):
    """A return probe of the kernel would end the program at the first exception."""
    event = f'uretprobe:probed_may_leave@"{WORKLOAD}"'
    path, outcome = record(tmp_path, "--count", 1, events=[event], program=[WORKLOAD, "leaves", 750, way])
    assert "returned 500" in outcome.stdout
    assert hits(path, event) == 500
    for frames in stacks(path, event):
        assert frames[-1] == "probed_may_leave" and ("probed_catches" in frames) == (way == "exceptions"), frames
    if way == "exceptions":
        assert counts(events=['uretprobe:probed_catches@"%s"' % WORKLOAD], program=[WORKLOAD, "leaves", 750, way]) == {f'uretprobe:probed_catches@"{WORKLOAD}"': 750}


def test_tail_calls(tmp_path):
    """The jump to the other function counts as the end. The result is that of the other function."""
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("the workload has no tail call here: it is NOT tested")
    event = f'uretprobe:probed_tail@"{WORKLOAD}"'
    assert counts(events=[event], program=[WORKLOAD, "returns", 70]) == {event: 70}
    refused = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'uretprobe:probed_tail@"{WORKLOAD}"/r > 0/r=$retval/', "--", WORKLOAD)
    assert refused.returncode == 1
    assert re.search(r"probed_tail in .* ends with a jump to probed_returns at probed_tail\+0x\d, so its result is not known there\. Remove \$retval, or probe probed_returns$",
                     refused.stderr.strip()), refused
    argument = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'uretprobe:probed_returns@"{WORKLOAD}"/r > 0/r=$arg1/', "--", WORKLOAD)
    assert "the value '$arg1' is not available" in argument.stderr
    never = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'uretprobe:probed_jumps@"{WORKLOAD}"', "--", WORKLOAD)
    assert re.search(r"where probed_jumps in .* returns is not certain: no return at probed_jumps\+0x0\. Probe its entry with uprobe:", never.stderr), never


def test_returns_of_forks_and_loaded_libraries(tmp_path):
    event = f'uretprobe:probed_outer@"{WORKLOAD}"'
    path, outcome = record(tmp_path, "--count", 1, events=[event], program=[WORKLOAD, "forks", 100])
    assert "ended 100" in outcome.stdout
    assert hits(path, event) == 100
    library = TESTS_BIN / "plugin-workload.so"
    event = f'uretprobe:plugin_work@"{library}"'
    path, outcome = record(tmp_path, "--count", 1, events=[event], program=[WORKLOAD, "loads", 20, library])
    assert "called 20" in outcome.stdout
    assert hits(path, event) == 20


def gdb_stacks(program, places, most):
    """The call paths of the first hits of breakpoints, outermost first, as gdb finds them."""
    script = ["set pagination off", "set print frame-arguments none", "set debuginfod enabled off", *(f"break *{place}" for place in places), "run"]
    script += ["bt", "continue"] * most
    words = [word for line in script for word in ("-ex", line)]
    outcome = run("gdb", "-nx", "-batch", *words, "--args", *program)
    found = collections.Counter()
    frames = []
    for line in [*outcome.stdout.splitlines(), ""]:
        if match := re.match(r"#(\d+) +(?:0x[0-9a-f]+ in )?(.*?) \(", line):
            if match[1] == "0" and frames:
                found[tuple(reversed(frames))] += 1
                frames = []
            frames.append(match[2])
    if frames:
        found[tuple(reversed(frames))] += 1
    return found


@pytest.mark.parametrize("kind", ["uprobe", "uretprobe"])
def test_stacks_are_those_of_gdb(tmp_path, kind):
    function = "probed_recursion"
    places = [function]
    if kind == "uretprobe":
        code = run("objdump", "-d", f"--disassemble={function}", WORKLOAD).stdout
        lines = re.findall(r"^ *([0-9a-f]+):\t(?:[0-9a-f]{2} |[0-9a-f]{8} )+\s*(\w+)", code, re.M)
        places = [f"((char*){function} + {int(address, 16) - int(lines[0][0], 16)})" for address, word in lines if word == "ret"]
        assert places, code
    program = [WORKLOAD, "calls", 600]
    expected = gdb_stacks(program, places, 300)
    assert sum(expected.values()) >= 200, expected
    event = f'{kind}:{function}@"{WORKLOAD}"'
    path, _ = record(tmp_path, "--count", 1, events=[event], program=program)
    found = collections.Counter()
    for frames, number in stacks(path, event).items():
        # gdb ends at main, and names inlined functions without their namespace.
        inner = frames[frames.index("main"):]
        found[tuple(re.sub(r"\(.*", "", name).split("::")[-1] for name in inner)] += number
    expected = collections.Counter({tuple(name.split("::")[-1] for name in frames): number for frames, number in expected.items()})
    assert found == expected


@pytest.mark.parametrize(("scene", "functions", "report"), [
    ("exceptions", ["probed_throws", "probed_passes_exception"], "caught 300"),
    ("jumps", ["probed_jumps"], "landed 300"),
    ("cancellations", ["probed_waits"], "cancelled 300"),
    ("forks", ["probed_outer", "probed_leaf"], "ended 300"),
])
def test_programs_survive(tmp_path, scene, functions, report):
    """Functions that are left by an exception, longjmp or cancellation, and children of a fork."""
    events = [probe(function) for function in functions]
    path, outcome = record(tmp_path, "--count", 1, events=events, program=[WORKLOAD, scene, 300])
    assert report in outcome.stdout
    for function, event in zip(functions, events):
        expected = 600 if function == "probed_leaf" else 300
        found = hits(path, event)
        # A thread may be cancelled before it calls the function.
        assert found == expected or (scene == "cancellations" and 0 < found <= expected), (function, found)


def test_a_library_that_is_loaded_later(tmp_path):
    library = TESTS_BIN / "plugin-workload.so"
    event = f'uprobe:plugin_work@"{library}"'
    path, outcome = record(tmp_path, "--count", 1, events=[event], program=[WORKLOAD, "loads", 20, library])
    assert "called 20" in outcome.stdout
    assert hits(path, event) == 20


def test_static_probes(tmp_path):
    """The program sees the semaphore only while the probe is open; fields have the arguments."""
    plain, counted = (f'usdt:probed:{name}@"{WORKLOAD}"' for name in ("plain", "counted"))
    program = [WORKLOAD, "static", 50]
    assert "with semaphore 0" in run(*program).stdout
    path, outcome = record(tmp_path, "--count", 1, events=[plain, counted], program=program)
    assert "with semaphore 50" in outcome.stdout
    assert [hits(path, event) for event in (plain, counted)] == [50, 50]
    assert "with semaphore 0" in run(*program).stdout

    filtered = counts(events=[
        f'usdt:probed:plain@"{WORKLOAD}"/arg2 > 40000000000000/alias=wide/',
        f'usdt:probed:counted@"{WORKLOAD}"/arg1 < 7/alias=low/',
        f'usdt:probed:plain@"{WORKLOAD}"/text == "text"/text=+0($arg3):string/alias=text/',
        f'usdt:probed:plain@"{WORKLOAD}"/text == "texts"/text=+0($arg3):string/alias=other/',
    ], program=program)
    assert filtered == {"wide": 9, "low": 7, "text": 50, "other": 0}
    # Notes that point to data, or into an instruction, are not probes.
    for name in ("in_data", "in_instruction"):
        assert f"Name: {name}" in run("readelf", "-n", WORKLOAD).stdout
        misplaced = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'usdt:probed:{name}@"{WORKLOAD}"', "--", WORKLOAD)
        assert f"has no USDT probe probed:{name}" in misplaced.stderr
    missing = run(AGENT, "--output", tmp_path / "x.flw", "--events", f'usdt:probed:other@"{WORKLOAD}"', "--", WORKLOAD)
    assert "has no USDT probe probed:other" in missing.stderr


@pytest.fixture
def busy(start):
    process = start.workload("probes", "busy", 600)
    wait_until(lambda: len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())) == 5, what="the threads of the workload")
    return process


def test_a_killed_agent_leaves_nothing(tmp_path, busy):
    """Its probes stay in tracefs, but no longer stop the program, and the next agent removes them."""
    agent = subprocess.Popen([AGENT, "--output", tmp_path / "killed.flw", "--events", probe("probed_outer"), "--max-slowdown", "10000", "--pid", str(busy.pid)],
                             stderr=subprocess.PIPE, text=True)
    def mine():
        return [line for line in created_probes() if owner(line) == agent.pid]

    wait_until(mine, what="the probe")
    for line in agent.stderr:
        if "profiling" in line:
            break
    agent.kill()
    agent.wait()
    # The agent of another test may have removed them already.
    outcome = run(AGENT, "--output", tmp_path / "next.flw", "--duration", 1, "--pid", busy.pid)
    assert outcome.returncode == 0, outcome
    assert not mine()
    assert busy.alive()


def test_the_cost_is_predicted_before(tmp_path, busy):
    refused = run(AGENT, "--output", tmp_path / "x.flw", "--events", probe("probed_leaf", "/number=%si:s32/"), "--max-slowdown", 1, "--pid", busy.pid)
    assert refused.returncode == 1, refused
    assert re.search(r"\d+ hits per second, most of them of .*, would slow down the target by about \d+\.\d%; --max-slowdown allows 1%", refused.stderr)
    assert not (tmp_path / "x.flw").exists()
    thinned = run(AGENT, "--output", tmp_path / "y.flw", "--events", probe("probed_leaf"), "--max-slowdown", 10000, "--duration", 1, "--pid", busy.pid)
    assert thinned.returncode == 0, thinned
    assert re.search(r"\d+ hits per second: a slowdown of about \d+\.\d%", thinned.stderr)


def test_the_kernel_is_probed_only_with_kprobes(tmp_path):
    if UPROBE_EVENTS.with_name("kprobe_events").exists():
        pytest.skip("this kernel has kprobes: its refusal is NOT tested")
    for event in ("kprobe:vfs_read", "kprobe:vfs_wr*e/count > 3/count=$arg3:u64/"):
        outcome = run(AGENT, "--output", tmp_path / "x.flw", "--events", event, "--", "/bin/true")
        assert outcome.returncode == 1
        assert outcome.stderr == "flamewire-agent: this kernel has no kprobes (CONFIG_KPROBE_EVENTS)\n"
    unknown = run(AGENT, "--output", tmp_path / "x.flw", "--events", "kprobe:no_function_has_*", "--", "/bin/true")
    assert "this kernel has no function no_function_has_*" in unknown.stderr
    many = run(AGENT, "--output", tmp_path / "x.flw", "--events", "kprobe:*", "--", "/bin/true")
    assert "kprobe:*: more than 64 functions match" in many.stderr


def test_a_server_probes_the_kernel_only_if_the_agent_lets_it(start, busy):
    server = start.server()
    refusal = "this agent does not let servers probe the kernel; start it with --allow-kprobes"
    for option, own in ((), False), (("--allow-kprobes",), True), (("--stat", "kprobe:vfs_read"), False):
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, *option, name=f"agent{len(option)}{own}")
        wait_until(lambda: [one for one in server.get("/api/agents")["agents"] if one["connected"]], what="the agent")
        for settings in {"events": "cpu-clock,kprobe:vfs_read"}, {"stat": "task-clock,kprobe:vfs_read"}:
            reply = server.command("start", pid=busy.pid, **settings)
            assert (refusal in reply.get("error", "")) == (not own), (option, settings, reply)
        if "--stat" in option:
            # Its own list needs no permission.
            assert refusal not in server.command("start", pid=busy.pid).get("error", "")
        agent.stop()
        wait_until(lambda: not [one for one in server.get("/api/agents")["agents"] if one["connected"]], what="the agent's end")


def test_a_server_probes_only_what_it_may_profile(start, busy):
    """With a list of processes, only files whose code these processes have in memory."""
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--allow-pid", busy.pid, "--max-slowdown", 10000)
    wait_until(lambda: server.get("/api/agents")["agents"], what="the agent")
    refused = server.command("start", pid=busy.pid, events=['uprobe:xz_main@"/usr/bin/sort"'])
    assert not refused["ok"]
    assert "no recorded process has code of /usr/bin/sort in memory" in refused["error"]
    # An offset inside an instruction would change the program's code.
    leaf = int(re.search(r"^([0-9a-f]+) T probed_leaf$", run("nm", WORKLOAD).stdout, re.M)[1], 16)
    inside = server.command("start", pid=busy.pid, events=[f"uprobe:{WORKLOAD}:{code_offset(WORKLOAD, leaf) + 1:#x}"])
    assert "no known instruction of" in inside["error"]
    assert server.command("start", pid=busy.pid, events=[probe("probed_outer", "/alias=outer/")])["ok"]
    assert server.command("status")["events"] == ["outer"]
    # Other probes replace those of a running recording, which are then removed.
    mine = {line.split("/")[0] for line in created_probes() if "_probed_outer" in line}
    assert mine
    changed = server.command("configure", events=[probe("probed_inner", "/alias=inner/")])
    assert changed["ok"], changed
    assert server.command("status")["events"] == ["inner"]
    wait_until(lambda: not mine & {line.split("/")[0] for line in created_probes()}, what="the removal of the first probe")
    # A change that is not of the events keeps the probe.
    assert server.command("configure", interval=100)["ok"]
    assert server.command("configure", stat="none")["ok"]
    assert any("probed_inner" in line for line in created_probes())
    assert server.command("stop")["ok"]
    wait_until(lambda: not any("probed_inner" in line for line in created_probes()), what="the removal of the second probe")
