"""Our export for pprof, read by Debian's `go tool pprof`: the same functions, stacks, threads, files and lines."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

import bounds
import pytest
from flamewire import ROOT
from recording import Recording, functions, marked_lines

# For each loop, and for the loop of the inlined function compared with its call.
HOT = bounds.Check("samples in hot loops, of those in their source file", times=4)
GO = shutil.which("go")
pytestmark = pytest.mark.skipif(GO is None, reason="go tool pprof is not installed: nothing was compared")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    recording = Recording(tmp_path_factory.mktemp("pprof"), "demo-workload", "3", options=["--tag", "build=b 17"])
    recording.pprof = recording.file("pprof")
    return recording


def pprof(path, *options, symbolize="none"):
    """pprof's output: (lines of the header, the rest). It shortens C++ names unless symbolize is set."""
    environment = {**os.environ, "HOME": str(path.parent), "PPROF_TMPDIR": str(path.parent), "PPROF_BINARY_PATH": str(path.parent)}
    shorten = [] if symbolize is None else [f"-symbolize={symbolize}"]
    text = subprocess.run([GO, "tool", "pprof", *shorten, *options, path], check=True, capture_output=True, text=True, env=environment, timeout=60)
    assert not re.search("warning|error|failed", text.stderr, re.I), text.stderr
    return text.stdout.splitlines()


NUMBER = r"([\d.]+)[a-z]*"
ROW = re.compile(rf" *{NUMBER} +[\d.]+% +[\d.]+% +{NUMBER} +[\d.]+%  (.*?)( \(inline\)| \(partial-inline\))?")


def top(path, *options, **more):
    """Name -> (flat, cum, "", " (inline)" or " (partial-inline)")."""
    lines = pprof(path, "-top", "-nodefraction=0", "-edgefraction=0", *options, **more)
    head = next(number for number, line in enumerate(lines) if line.split() == ["flat", "flat%", "sum%", "cum", "cum%"])
    rows = [ROW.fullmatch(line).groups() for line in lines[head + 1 :]]
    assert len({name for *_, name, _ in rows}) == len(rows)
    return {name: (float(flat), float(cum), inline or "") for flat, cum, name, inline in rows}


def as_pprof(name):
    """For an address without a name, pprof prints only the file. It prints the module of a kernel function after its name."""
    place = re.fullmatch(r"\[(?:(.+)\+)?0x[0-9a-f]+\]", name)
    if place:
        return f"[{'[kernel.kallsyms]' if place[1] == 'kernel' else place[1]}]" if place[1] else "<unknown>"
    return name


def from_pprof(name):
    return re.sub(r"(?<=[^ ]) \[\w+\]$", "", name).replace(";", ":")


def types_of(recording):
    """(sample type, options, event, whether values are weights)"""
    for event, about in recording.events.items():
        yield f"{event}_samples", [], event, False
        yield event, ["-unit=ns"] if about["unit"] == "ns" else [], event, True


def wanted(recording, event, weights):
    """Merges names that pprof prints identically."""
    stacks = collections.Counter()
    for (comm, names), number in recording.stacks(event, weights).items():
        stacks[comm, tuple(map(as_pprof, names))] += number
    return stacks


def test_functions(recorded):
    assert set(recorded.events) == {"cpu-clock", "page-faults"}
    for sample_type, options, event, weights in types_of(recorded):
        found = {from_pprof(name): [flat, cum] for name, (flat, cum, _) in top(recorded.pprof, f"-sample_index={sample_type}", *options).items()}
        table = functions(wanted(recorded, event, weights))
        assert len(table) > (60 if event == "cpu-clock" else 10)
        assert found == table, sample_type


def test_the_default_output(recorded):
    lines = pprof(recorded.pprof, "-top", symbolize=None)
    head = "\n".join(lines[:8])
    assert f"File: {recorded.program.name}" in lines, head
    assert f"Build ID: {build_id(recorded.program)}" in lines, head
    assert "Type: cpu-clock" in lines, head
    total = sum(recorded.stacks("cpu-clock", True).values())
    assert float(re.search(r"Total samples = ([\d.]+)(ms|s)", head)[1]) * {"ms": 10**6, "s": 10**9}[re.search(r"= [\d.]+(ms|s)", head)[1]] == pytest.approx(total, rel=0.005)
    # The first ten, as shares. Here pprof omits parameters, so functions with one name are merged.
    def short(name):
        while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)) != name:
            name = shorter
        return re.sub(r" \[clone .*", "", name).strip()

    table = collections.Counter()
    for (_, names), number in wanted(recorded, "cpu-clock", True).items():
        if names:
            table[short(names[-1])] += number
    rows = [ROW.fullmatch(line) for line in lines[-20:] if ROW.fullmatch(line)]
    listed = {short(row[3]): float(row[1]) for row in rows}
    percent = {short(row[3]): float(re.search(r"([\d.]+)%", row[0])[1]) for row in rows}
    assert len(listed) >= 10
    for name, share in percent.items():
        assert share == pytest.approx(100 * table[name] / total, abs=0.006), name


def test_every_stack_of_every_thread(recorded):
    for sample_type, options, event, weights in types_of(recorded):
        found = collections.Counter()
        value, names, labels = None, [], {}
        for line in [*pprof(recorded.pprof, "-traces", f"-sample_index={sample_type}", *options), "-----------+--"]:
            if line.startswith("-----------+--"):
                if value:
                    found[labels["thread"], tuple(map(from_pprof, reversed(names)))] += value
                    assert labels["process"] == "demo-workload" and labels["build"] == "b 17"
                value, names, labels = None, [], {}
            elif label := re.fullmatch(r" *(\w+):  (.*)", line):
                labels[label[1]] = label[2]
            elif first := re.fullmatch(rf" *{NUMBER}   (\S.*?)(?: \(inline\))?", line):
                value = float(first[1])
                names = [first[2]]
            elif names:
                names.append(re.fullmatch(r" {13}(.*?)(?: \(inline\))?", line)[1])
        assert found == wanted(recorded, event, weights), sample_type


def test_labels(recorded):
    """`-tags`: the sums of threads, and the session's own tags."""
    of_thread = collections.Counter()
    for (comm, _), number in recorded.stacks("cpu-clock", False).items():
        of_thread[comm] += number
    text = "\n".join(pprof(recorded.pprof, "-tags", "-sample_index=cpu-clock_samples"))
    found = {key: dict(reversed(row) for row in re.findall(r"^ +([\d.]+) \( *[\d.]+%\): (.*)$", rows, re.M)) for key, rows in re.findall(r"^ *(\w+): Total .*\n((?:.+\n?)*)", text, re.M)}
    # The control group, if it is not the root: it must be our own.
    where = {key: list(found.pop(key)) for key in ("container_id", "pod_uid", "cgroup_path") if key in found}
    groups = {line.split(":", 2)[2] for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()}
    assert set(where.get("cgroup_path", ["/"])) <= groups | {"/"} and (where or groups <= {"/"}), (where, groups)
    assert set(found) == {"pid", "tid", "thread", "process", "build"}, text
    assert {name: float(number) for name, number in found["thread"].items()} == of_thread
    assert len(of_thread) == 4
    assert sorted(map(float, found["tid"].values())) == sorted(of_thread.values())
    assert list(found["process"]) == ["demo-workload"] and list(found["build"]) == ["b 17"]
    assert len(found["pid"]) == 1 and set(found["pid"]) < set(found["tid"])


def build_id(path):
    return re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout)[1]


def test_mappings(recorded):
    """Files with their build-ids, and the program first, because pprof takes the first one for the program."""
    lines = pprof(recorded.pprof, "-raw")
    rows = [re.fullmatch(r"(\d+): 0x0/0xffffffffffffffff/0x0 (\S+) ?(\w*) \[FN\]\[FL\]\[LN\]\[IN\]", line).groups() for line in lines[lines.index("Mappings") + 1 :]]
    files = {name: identity for _, name, identity in rows}
    assert rows[0][:2] == ("1", str(recorded.program.resolve()))
    libraries = [name for name in files if name.startswith("/")]
    assert len(libraries) >= 3
    assert {name: files[name] for name in libraries} == {name: build_id(name) for name in libraries}


def test_inlined_functions(recorded):
    """pprof marks functions that are always inlined."""
    kinds = collections.defaultdict(set)
    for function in recorded.events["cpu-clock"]["functions"]:
        kinds[function["name"].replace(";", ":")].add(function["kind"] == "inlined")
    marks = {from_pprof(name): mark for name, (_, _, mark) in top(recorded.pprof, "-sample_index=cpu-clock").items()}
    expected = {name: {(True,): " (inline)", (False,): ""}.get(tuple(kinds[name]), " (partial-inline)") for name in marks if name in kinds}
    assert sum(mark == " (inline)" for mark in expected.values()) > 5
    assert {name: marks[name] for name in expected} == expected


def test_lines(tmp_path):
    """pprof attributes the time to the lines where the program spends it, also in an inlined function."""
    recording = Recording(tmp_path, "lines-workload", "3", events="cpu-clock")
    path = recording.file("pprof")
    source = ROOT / "tests" / "workloads" / "lines.cc"
    marks = marked_lines(source)
    assert set(marks) == {"plain", "inlined", "template"}
    own = collections.Counter()
    for name, (flat, *_) in top(path, "-lines", "-sample_index=samples").items():
        if place := re.search(r" (\S+/lines\.cc):(\d+)$", name):
            assert os.path.samefile(place[1], source)
            own[int(place[2])] += flat
    # Of four turns, one is the plain function's, one the inlined function's and two are the template's. The line above is the loop's.
    total = sum(own.values())
    loops = {mark: own[line] + own[line - 1] for mark, line in marks.items()}
    for mark, share in (("plain", 0.25), ("inlined", 0.25), ("template", 0.5)):
        assert own[marks[mark]] == max(own[line] for line in range(marks[mark] - 3, marks[mark] + 4))
        HOT.share(loops[mark], total, share, bias=0.01, detail=f"in the loop {mark}: {own}")
    # Also in the listing of the source: the inlined line's time is included in the functions that contain it.
    listing = pprof(path, "-list", "caller_of_inlined", "-sample_index=samples")
    routine = next(line for line in listing if line.startswith("ROUTINE"))
    assert "caller_of_inlined" in routine
    call = next(re.match(rf" *(\.|{NUMBER}) +(\.|{NUMBER}) +(\d+):", line) for line in listing if "x = inlined_function(x);" in line)
    assert loops["inlined"] <= float(call[4])
    HOT.at_least(loops["inlined"], float(call[4]), 0.97, detail="in the inlined loop, compared with its call")
