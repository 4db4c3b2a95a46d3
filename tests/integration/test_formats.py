"""A recorded session is exported to the formats of other tools, read by independent readers, and imported again without changes."""
import collections
import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pprof
import pytest
from flamewire import ROOT, TESTS_BIN, Agent, Server, ended
from test_imports import upload

CORPUS = pathlib.Path(os.environ.get("FLAMEWIRE_CORPUS", ROOT.parent / "shared" / "corpus"))


def folded(server, session, **parameters):
    """Lines "comm;outer;…;inner number" of one event."""
    return server.get(f"/api/export/session/{session}", format="collapsed", **parameters).decode().splitlines()


def events_of(server, session):
    return {one["name"]: (one["unit"], one["samples"], one["weight"]) for one in server.session(session)["events"]}


def functions_of(server, session, event):
    answer = server.get("/api/functions", session=session, event=event, limit=100000)
    return {(one["name"], one.get("module", "")): (one["self"], one["total"]) for one in answer["functions"]}


def threads_of(server, session):
    return {(one["pid"], one["tid"], one["comm"]) for one in server.get("/api/thread-summary", session=session)["threads"]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """One recording, which each test exports and imports again."""
    folder = tmp_path_factory.mktemp("formats")
    server = Server(folder)
    agent = Agent(folder, "--server", "127.0.0.1", "--port", server.port, "--events", "cpu-clock,page-faults", "--frequency", "999", "--", TESTS_BIN / "shares-workload", "3")
    with ended(server, agent):
        assert agent.wait(120) == 0, agent.err
        yield server, server.wait_ended(seconds=60)["id"]


def again(server, session, name, **parameters):
    data = server.get(f"/api/export/session/{session}", **parameters)
    done, _ = upload(server, json.dumps(data).encode() if isinstance(data, dict) else data, name)
    assert done["state"] == "done", done
    return data, done["session"]


def same(server, session, copy):
    events = events_of(server, session)
    assert events_of(server, copy) == events
    for event in events:
        assert functions_of(server, copy, event) == functions_of(server, session, event)
        for value in ("samples", "weight"):
            assert folded(server, copy, event=event, value=value) == folded(server, session, event=event, value=value)
    assert threads_of(server, copy) == threads_of(server, session)


def test_pprof(recorded):
    server, session = recorded
    data, copy = again(server, session, "profile.pb.gz", format="pprof")
    events = events_of(server, session)
    assert {"cpu-clock", "page-faults"} <= set(events), events
    # protoc decodes the same stacks, of the same threads, with the same numbers.
    profile = pprof.Profile(data)
    assert profile.types == [pair for name, (unit, _, _) in events.items() for pair in ((f"{name}_samples", "count"), (name, "nanoseconds" if unit == "ns" else unit))]
    stacks = collections.Counter()
    for names, values, labels in profile.samples:
        assert labels["pid"] and labels["tid"]
        for index, (event, unit) in enumerate(profile.types):
            if unit == "count":
                stacks[";".join([event.removesuffix("_samples"), labels["thread"], *reversed(names)])] += values[index]
    lines = collections.Counter()
    for event in events:
        for line in folded(server, session, event=event):
            stack, number = line.rsplit(" ", 1)
            lines[f"{event};{stack}"] = int(number)
    assert sum(stacks.values()) == sum(lines.values())
    # In brackets are addresses (a caller's is that of its call), and the modules of kernel functions.
    named = {stack: number for stack, number in lines.items() if "[" not in stack}
    assert named and {stack: stacks[stack] for stack in named} == named
    # Our importer reads the same.
    same(server, session, copy)


def test_speedscope(recorded):
    server, session = recorded
    data, copy = again(server, session, "profile.speedscope.json", format="speedscope")
    events = events_of(server, session)
    # Read according to the format's schema, without our code.
    frames = [frame["name"] for frame in data["shared"]["frames"]]
    weights = collections.Counter()
    for profile in data["profiles"]:
        assert profile["type"] == "sampled" and profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        assert len(profile["samples"]) == len(profile["weights"])
        event = profile["name"].split(" ")[0]
        assert profile["unit"] == ("nanoseconds" if events[event][0] == "ns" else "none")
        for stack, weight in zip(profile["samples"], profile["weights"]):
            comm = profile["name"].split(" ", 1)[1].rsplit(" (", 1)[0]
            weights[";".join([event, comm, *(frames[frame] for frame in stack)])] += weight
    assert weights == collections.Counter({f"{event};{line.rsplit(' ', 1)[0]}": int(line.rsplit(" ", 1)[1]) for event in events for line in folded(server, session, event=event, value="weight")})
    same(server, session, copy)


def test_firefox(recorded):
    server, session = recorded
    data, copy = again(server, session, "profile.json", format="firefox")
    events = events_of(server, session)
    # Read by the format's column names, without our code.
    weights = collections.Counter()
    for thread in data["threads"]:
        strings, stacks, frames, funcs = thread["stringArray"], thread["stackTable"], thread["frameTable"], thread["funcTable"]
        event = thread["flamewire"]["event"]
        for stack, weight, time_ms in zip(thread["samples"]["stack"], thread["samples"]["weight"], thread["samples"]["time"], strict=True):
            assert time_ms >= 0
            names = []
            while stack is not None:
                names.insert(0, strings[funcs["name"][frames["func"][stacks["frame"][stack]]]])
                assert stacks["prefix"][stack] is None or stacks["prefix"][stack] < stack
                stack = stacks["prefix"][stack]
            weights[";".join([event, thread["flamewire"]["comm"], *names])] += round(weight * 10**6) if events[event][0] == "ns" else weight
    expected = collections.Counter()
    for event, (unit, _, _) in events.items():
        for line in folded(server, session, event=event, value="weight" if unit == "ns" else "samples"):
            expected[f"{event};{line.rsplit(' ', 1)[0]}"] = int(line.rsplit(" ", 1)[1])
    assert weights == expected
    same(server, session, copy)


PERF = shutil.which("perf")


def perf_script(path):
    """Per sample of a file, as perf reads it: (event, comm, pid, tid, time in us, period, frames outermost first).
    A frame without a name is its file and offset."""
    text = subprocess.run([PERF, "script", "--max-stack", "10000", "-i", path, "-F", "comm,pid,tid,time,period,event,ip,sym,dso"], check=True, capture_output=True, text=True, timeout=300)
    samples = []
    for block in text.stdout.strip("\n").split("\n\n"):
        head, *lines = block.splitlines()
        comm, pid, tid, seconds, micros, period, event = re.fullmatch(r" *(.*?) +(\d+)/(\d+) +(\d+)\.(\d{6}): +(\d+) +(\S+): *", head).groups()
        frames = []
        for line in lines:
            address, name = line.split(None, 1)
            if int(address, 16) >> 63:
                # perf also prints the name as the file's name.
                name = name[: (len(name) - 3) // 2]
                assert line.endswith(f" {name} ({name})"), line
            else:
                name = f"[{os.path.basename(name.rsplit('(', 1)[1].rstrip(')'))}+0x{int(address, 16):x}]"
            frames.insert(0, name)
        samples.append((event, comm, int(pid), int(tid), int(seconds + micros), int(period), tuple(frames)))
    return samples


def same_stacks(server, session, samples):
    """Every stack of every thread, as perf_script() returns them. If several functions have a name, the file for perf adds the module to it."""
    events = events_of(server, session)

    def bare(frame):
        return re.sub(r"(?<=.) \[[^]]*\]$", "", frame)

    for value, of in (("samples", lambda one: 1), ("weight", lambda one: one[5])):
        found = collections.Counter()
        for one in samples:
            found[";".join([one[0], one[1], *(bare(frame).replace(";", ":") for frame in one[6])])] += of(one)
        expected = collections.Counter()
        for event in events:
            for line in folded(server, session, event=event, value=value):
                stack, number = line.rsplit(" ", 1)
                expected[f"{event};" + ";".join(map(bare, stack.split(";")))] += int(number)
        assert found == expected


@pytest.mark.skipif(PERF is None, reason="perf is not installed: nothing was compared")
def test_perfdata(recorded, tmp_path):
    server, session = recorded
    data, copy = again(server, session, "perf.data", format="perfdata")
    same(server, session, copy)
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    events = events_of(server, session)
    samples = perf_script(path)
    assert {event: (sum(1 for one in samples if one[0] == event), sum(one[5] for one in samples if one[0] == event)) for event in events} == {
        event: (number, weight) for event, (_, number, weight) in events.items()}
    same_stacks(server, session, samples)
    assert {(pid, tid, comm) for _, comm, pid, tid, *_ in samples} == threads_of(server, session)
    assert [one[4] for one in samples] == sorted(one[4] for one in samples)
    # perf's table of functions is the same as ours. For a frame without a name, perf prints only its address.
    def place(name):
        address = re.fullmatch(r"(?:\[.*\+)?0x0*([0-9a-f]+)\]?", name)
        return address[1] if address else name

    report = subprocess.run([PERF, "report", "-i", path, "--stdio", "--no-children", "-g", "none", "-s", "sym", "-t", "\t", "-F", "period,sym"], check=True, capture_output=True, text=True, timeout=300).stdout
    tables = {re.search(r"of event '(\S+)'", part)[1]: part for part in report.split("# Samples: ")[1:]}
    assert set(tables) == set(events)
    for event, table in tables.items():
        found, expected = collections.Counter(), collections.Counter()
        for line in table.splitlines():
            if row := re.fullmatch(r" *(\d+) *\t\[[k.]\] (.*?)(?: \[[^]]*\])? *", line):
                found[place(row[2])] += int(row[1])
        for line in folded(server, session, event=event, value="weight"):
            stack, number = line.rsplit(" ", 1)
            expected[place(re.sub(r" \[[^]]*\]$", "", stack.rsplit(";", 1)[1]))] += int(number)
        assert found == expected, event
    header = subprocess.run([PERF, "report", "-i", path, "--header-only"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert f"hostname : {os.uname().nodename}" in header and f"os release : {os.uname().release}" in header and f"arch : {os.uname().machine}" in header
    assert all(f"event : name = {event}," in header for event in events)


@pytest.mark.skipif(PERF is None, reason="perf is not installed: nothing was compared")
def test_perfdata_as_old_versions_wrote_it(recorded, tmp_path):
    """perf up to Linux 3.2 wrote another magic and attributes of 64 bytes."""
    server, session = recorded
    data, new = again(server, session, "perf.data", format="perfdata")
    _, size, attribute_size, offset, attributes_size, *_ = struct.unpack_from("<8s4Q", data)
    attributes = b""
    for at in range(offset, offset + attributes_size, attribute_size):
        ids = data[at + attribute_size - 16 : at + attribute_size]
        attributes += data[at : at + 4] + struct.pack("<I", 64) + data[at + 8 : at + 64] + ids
    changed = bytearray(data)
    changed[offset : offset + len(attributes)] = attributes
    struct.pack_into("<8s4Q", changed, 0, b"PERFFILE", size, 64 + 16, offset, len(attributes))
    old, path = tmp_path / "old.data", tmp_path / "new.data"
    old.write_bytes(changed)
    path.write_bytes(data)
    assert perf_script(old) == perf_script(path)
    done, _ = upload(server, bytes(changed), "old.data")
    assert done["state"] == "done", done
    assert folded(server, done["session"]) == folded(server, new)


@pytest.mark.skipif(PERF is None or not CORPUS.is_dir(), reason="perf is not installed, or the corpus is missing: nothing was compared")
@pytest.mark.parametrize("name", ["vector_static_gcc__perf.data", "vector_static_gcc__perf.lbr.data"])
def test_perfdata_of_addresses_without_names(start, tmp_path, name):
    """The program files are absent: perf must search for them at their old paths, by their build-ids."""
    server = start.server()
    recording = CORPUS / "plain" / "kdab" / name
    done, _ = upload(server, recording.read_bytes(), name)
    data, copy = again(server, done["session"], "perf.data", format="perfdata")
    same(server, done["session"], copy)
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    samples = perf_script(path)
    assert sum(any(frame.startswith("[vector_static_gcc_v9.1.0+0x") for frame in one[6]) for one in samples) > 20
    same_stacks(server, done["session"], samples)
    listed, theirs = (subprocess.run([PERF, "buildid-list", "-i", file], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines() for file in (path, recording))
    assert listed and set(listed) <= set(theirs), (listed, theirs)


def test_csv(recorded):
    server, session = recorded
    text = server.get(f"/api/export/session/{session}", format="csv", event="cpu-clock").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    table = functions_of(server, session, "cpu-clock")
    assert {(row["function"], row["module"]): (int(row["self weight"]), int(row["total weight"])) for row in rows} == table
    assert {row["unit"] for row in rows} == {"ns"}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_pprof_files_of_others(start, tmp_path):
    server = start.server()
    for name in ("jlfwong+speedscope/sample/profiles/pprof/simple.prof", "google+pprof/internal/report/testdata/sample.cpu"):
        data = (CORPUS / name).read_bytes()
        profile = pprof.Profile(data)
        done, _ = upload(server, data, name)
        assert done["state"] == "done", done
        events = events_of(server, done["session"])
        # The last type is a value. The first one counts its samples.
        assert profile.types[0] == ("samples", "count") and profile.types[1][1] == "nanoseconds"
        assert events == {profile.types[1][0]: ("ns", sum(v[0] for _, v, _ in profile.samples), sum(v[1] for _, v, _ in profile.samples))}
        own = collections.Counter()
        for names, values, _ in profile.samples:
            own[names[0]] += values[1]
        found = collections.Counter()
        for (function, _), (weight, _) in functions_of(server, done["session"], profile.types[1][0]).items():
            found[function] += weight
        assert +found == +own


def as_stackcollapse(frame, java):
    """A frame with the changes to names that the documentation of stackcollapse-perf.pl describes."""
    unknown = re.fullmatch(r"\[(.+)\+0x[0-9a-f]+\]", frame)
    if unknown:
        return f"[{unknown[1]}]"
    if re.fullmatch(r"\[0x[0-9a-f]+\]", frame):
        return "[unknown]"
    if not re.search(r"\.\(.*\)\.", frame):
        frame = re.sub(r"\((?!anonymous namespace\)).*", "", frame)
    frame = re.sub("[\"']", "", frame)
    return frame[1:] if java and "/" in frame and frame[0] == "L" else frame


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_perf_script_of_others(start):
    server = start.server()
    folder = CORPUS / "brendangregg+FlameGraph" / "test"
    files = sorted(folder.glob("perf-*.txt"))
    assert len(files) >= 9
    for path in files:
        # stackcollapse-perf.pl also needs an empty line after the last sample.
        done, _ = upload(server, path.read_bytes(), path.name)
        assert done["state"] == "done", done
        wanted, found = collections.Counter(), collections.Counter()
        for line in (folder / "results" / f"{path.stem}-collapsed-all.txt").read_text().splitlines():
            stack, number = line.rsplit(" ", 1)
            wanted[re.sub(r"_\[[kji]\]", "", stack)] += int(number)
        java = "java" in path.name
        first = server.session(done["session"])["events"][0]["name"]  # the script supports one event per file
        for line in folded(server, done["session"], event=first, value="weight"):
            stack, number = line.rsplit(" ", 1)
            comm, *frames = stack.split(";")
            frames = [as_stackcollapse(part, java) for frame in frames if not frame.startswith("(") for part in frame.split("->")]
            found[";".join([comm.replace(" ", "_"), *frames])] += int(number)
        last = found - wanted
        assert not wanted - found and len(last) <= 1, (path.name, wanted - found, last)
        if last:  # without an empty line at the end, the script omits the last sample
            assert not path.read_bytes().endswith(b"\n\n"), (path.name, last)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_chunks_of_perflens(start):
    server = start.server()
    folder = CORPUS / "harshithsunku+perflens" / "tests" / "fixtures" / "session-x86-baseline"
    metadata = json.loads((folder / "metadata.json").read_text())
    # The chunks as they are stored: concatenated, each as its own zstd frame.
    packed = b""
    for path in sorted(folder.glob("chunk_*.gz")):
        packed += subprocess.run(["zstd", "-q", "-1", "-c"], input=gzip.decompress(path.read_bytes()), stdout=subprocess.PIPE, check=True).stdout
    done, _ = upload(server, packed, "chunks.zst")
    assert done["state"] == "done", done
    session = server.session(done["session"])
    assert session["samples"] == metadata["total_samples"]
    assert sorted(one["name"] for one in session["events"]) == metadata["event_types"]
    counters = {one["name"]: one for one in server.get("/api/counters", session=done["session"], by="total")["groups"][0]["counters"]}
    assert set(metadata["event_types"]) <= set(counters), sorted(counters)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_speedscope_files_of_others(start):
    server = start.server()
    folder = CORPUS / "jlfwong+speedscope" / "sample" / "profiles" / "speedscope"
    # All versions have the same content: a;b;c 1 + 1 + 3, a;b;d 4, a;b 5.
    for name, scale, profiles in [("0.0.1/simple.speedscope.json", 1, 1), ("0.0.1/simple-no-pretty-print.speedscope.json", 1, 1),
                                  ("0.1.2/simple-sampled.speedscope.json", 10**9, 1), ("0.6.0/two-sampled.speedscope.json", 10**9, 2)]:
        done, _ = upload(server, (folder / name).read_bytes(), name)
        assert done["state"] == "done", done
        sums = collections.Counter()
        for line in folded(server, done["session"], value="weight"):
            sums[line.rsplit(" ", 1)[0].split(";", 1)[1]] += int(line.rsplit(" ", 1)[1])
        assert sums == {"a;b": 5 * scale * profiles, "a;b;c": 5 * scale * profiles, "a;b;d": 4 * scale * profiles}, name
    done, _ = upload(server, (folder / "invalid" / "out-of-order-events.json").read_bytes(), "out-of-order.json")
    assert done["state"] == "failed" and "not the innermost" in done["problem"], done


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other tools' files is missing")
def test_traces_of_others(start):
    server = start.server()
    folder = CORPUS / "jlfwong+speedscope" / "sample" / "profiles" / "trace-event"
    # alpha is open from 0 to 14 us and beta in it from 1 to 13; gamma takes 2 to 7, epsilon 7 to 11.
    nested = {"alpha": 2000, "alpha;beta": 3000, "alpha;beta;gamma": 5000, "alpha;beta;epsilon": 4000}
    for name in ("simple.json", "simple-partial.json", "simple-partial-trailing-comma.json", "simple-partial-whitespace.json"):
        done, _ = upload(server, (folder / name).read_bytes(), name)
        assert done["state"] == "done", done
        sums = {line.rsplit(" ", 1)[0].removeprefix("[unknown];"): int(line.rsplit(" ", 1)[1]) for line in folded(server, done["session"], value="weight")}
        assert sums == nested, (name, sums)
    for name in ("simple-object.json", "simple-hermes.json"):
        done, _ = upload(server, (folder / name).read_bytes(), name)
        assert done["state"] == "done", done
    done, _ = upload(server, (folder / "simple-with-samples.json").read_bytes(), "simple-with-samples.json")
    assert done["state"] == "done", done
    # Each sample of Hermes lasts until the next one. The last one lasts as long as the one before it.
    assert {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in folded(server, done["session"], value="weight")} == {
        "mqt_js;[root]": 30_779_000, "mqt_js;[root];function1": 13_326_000, "mqt_js;[root];function2;function3": 10_605_000, "mqt_js;[root];[GC Young Gen]": 20_000_000}
