"""JIT code, replayed: each function has its name while it is at its address, according to the times that the program printed."""
import collections
import re
import subprocess

import pprof
import pytest
from flamewire import BIN, Tree
from jit import EDGE_MS, of_function, self_shares, unknown_jit_share


@pytest.fixture
def opened(replayed, served):
    """name -> (server with the replayed session, its start (ns), the program's output)"""
    def of(name):
        server, session = served(name)
        return server, session["start_ns"], replayed(name).truth["output"]

    return of


def window(server, begin, end):
    return Tree(server.get("/api/flamegraph", min_share=0, start=begin, end=end))


@pytest.mark.parametrize("how", ["map", "dump"])
def test_an_address_that_is_reused(opened, how):
    """Two functions, one after the other, at the same addresses (with jitdump, also moved later): each appears only in its time."""
    server, start_ns, output = opened(f"jit-{how}")
    times = {line.split()[0]: (int(line.split()[1]) - start_ns) / 1e6 for line in output}

    def check(begin, end, function, never):
        tree = window(server, begin, end)
        shares = self_shares(tree)
        assert tree.weight and shares[function] >= 0.95 and shares[never] == 0, shares.most_common(5)

    switch = times["second_function"]
    check(times["first_function"], switch - EDGE_MS, "first_function", "second_function")
    end = times.get("moved", switch + 1000)
    check(switch + EDGE_MS, end - EDGE_MS, "second_function", "first_function")
    if how == "dump":
        check(end + EDGE_MS, end + 900, "second_function", "first_function")
    whole = Tree(server.get("/api/flamegraph", min_share=0))
    assert unknown_jit_share(whole) <= 0.005


def test_the_lines_of_a_jitdump(replayed, tmp_path):
    """The loop is in the first half of the code."""
    archive = tmp_path / "lines.pb.gz"
    subprocess.run([BIN / "flamewire", "export", replayed("jit-dump").session, "--format", "pprof", "-o", archive], check=True)
    raw = pprof.decode(archive.read_bytes())
    strings = raw["string_table"]
    functions = {one["id"][0]: (strings[one["name"][0]], strings[one.get("filename", [0])[0]]) for one in raw["function"]}
    places = {location["id"][0]: [(*functions[line["function_id"][0]], line.get("line", [0])[0]) for line in location.get("line", [])] for location in raw["location"]}
    lines = collections.Counter()
    for sample in raw["sample"]:
        for place in {place for location in sample["location_id"] for place in places[location] if place[0].endswith("_function")}:
            lines[place] += sample["value"][0]
    # Except for samples from before the file was read, about a tenth of a second.
    for function, line in (("first_function", 10), ("second_function", 20)):
        assert lines[function, "/src/jitted.src", line] >= 0.85 * sum(count for place, count in lines.items() if place[0] == function) > 0, lines


def test_each_phase_has_its_own_function(opened):
    """Functions follow each other in the same memory. Each is compiled again within its time."""
    server, start_ns, output = opened("jit-node")
    phases = [tuple(map(int, line.split()[1:3])) for line in output]
    assert len(phases) == 4
    for phase, (begin_ms, end_ms) in enumerate(phases):
        tree = window(server, begin_ms - start_ns / 1e6 + EDGE_MS, end_ms - start_ns / 1e6 - EDGE_MS)
        shares = tree.shares()
        assert of_function(shares, f"phase_{phase}") >= 0.85, shares.most_common(5)
        assert sum(of_function(shares, f"phase_{other}") for other in range(4) if other != phase) == 0, shares
        assert unknown_jit_share(tree) <= 0.005

@pytest.mark.parametrize("name", ["jit-map", "jit-dump"])
def test_functions_at_one_address_are_distinguished_by_time(replayed, name):
    """The workload prints when each function replaces the other."""
    replay = replayed(name)
    begins = {line.split()[0]: int(line.split()[1]) for line in replay.truth["output"]}
    spans = {}
    for frame, first, end in (match.groups() for match in (re.match(r"span (.*): (\d+) (\d+)", line) for line in replay.lines) if match):
        function = replay.function(frame)
        before = spans.get(function, (int(first), int(end)))
        spans[function] = min(before[0], int(first)), max(before[1], int(end))
    assert set(spans) == {"first_function", "second_function"}, spans
    # A bucket is 10 ms long, and a file's time stamp has a resolution of 4 ms.
    edge_ns = 30_000_000
    assert begins["first_function"] - edge_ns <= spans["first_function"][0] and spans["first_function"][1] <= begins["second_function"] + edge_ns, (begins, spans)
    assert begins["second_function"] - edge_ns <= spans["second_function"][0], (begins, spans)


def test_short_functions_at_one_address_are_distinguished(replayed):
    """jitdump has the load time of a function in nanoseconds. If an address was never sampled before, all samples of one round of the sampler get one
    name, so a function's name may stay until the next round."""
    replay = replayed("jit-quick")
    begins = [int(line.split()[1]) for line in replay.truth["output"]]
    bucket_ns, round_ns, seen = 10_000_000, 110_000_000, set()
    for frame, first, end in (match.groups() for match in (re.match(r"span (.*): (\d+) (\d+)", line) for line in replay.lines) if match):
        function = replay.function(frame)
        number = int(re.fullmatch(r"function_(\d+)", function)[1])
        assert begins[number] - bucket_ns < int(first), (function, first, begins[number])
        assert number + 1 == len(begins) or int(end) < begins[number + 1] + round_ns + bucket_ns, (function, end, begins[number + 1])
        seen.add(number)
    # Half of the functions are the first ones at their addresses.
    assert seen >= set(range(0, len(begins), 2)) and len(seen) > 20, seen


def test_compiled_functions_have_their_names_while_they_live(replayed):
    """The program prints when each phase begins and ends. Each phase has its own function, at addresses that other functions use before or later."""
    replay = replayed("jit-node")
    edge_ns = 30_000_000
    seen = set()
    for frame, first, end in (match.groups() for match in (re.match(r"span (.*): (\d+) (\d+)", line) for line in replay.lines) if match):
        if (found := re.search(r"phase_(\d)\b", replay.function(frame))) is None:
            continue
        begin_ms, end_ms = map(int, replay.truth["output"][int(found[1])].split()[1:3])
        assert begin_ms * 1_000_000 - edge_ns <= int(first) < int(end) <= end_ms * 1_000_000 + edge_ns, (frame, first, end, begin_ms, end_ms)
        seen.add(found[1])
    assert seen == set("0123")
    named = sum(count for _, _, frames, count, _ in replay.rows if any("phase_" in name for name in frames))
    assert named >= 0.9 * replay.truth["samples"], named
