"""Comparisons against sums over the collapsed exports of both sides.

The sums below do not use the server's code: a stack is a tuple of names with a number of samples, or a weight.
"""
import collections

import pytest
from collapsed import exported, totals
from flamewire import HttpError, TESTS_BIN


def by_function(stacks):
    """Name -> [self, total]. A recursive function counts once per stack."""
    sums = collections.defaultdict(lambda: [0, 0])
    for stack, number in stacks.items():
        if stack:
            sums[stack[-1]][0] += number
        for name in set(stack):
            sums[name][1] += number
    return sums


def plain(name):
    return name.replace(";", ":").replace("\n", " ")


def columns(answer, *names):
    """Path of names -> the sums of these columns. Paths have only names, because the export has only names."""
    nodes = answer["nodes"]
    paths, sums = [()], collections.defaultdict(lambda: [0] * len(names))
    for node, parent in enumerate(nodes["parent"]):
        if node > 0:
            paths.append(paths[parent] + (plain(answer["names"][nodes["name"][node]]),))
        for place, name in enumerate(names):
            sums[paths[node]][place] += nodes[name][node]
    return {path: tuple(numbers) for path, numbers in sums.items()}


def pairs(before, after):
    """Merges two tables of sums into one with pairs (before, after)."""
    return {path: (before[path], after[path]) for path in set(before) | set(after) | {()}}


def record(start, server, workload, *options):
    known = {session["id"] for session in server.sessions()}
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, *options, "--", TESTS_BIN / f"{workload}-workload", 4)
    assert agent.wait(120) == 0
    session, = {session["id"] for session in server.sessions()} - known
    return server.wait_ended(session, seconds=60)["id"]


def check_diff(server, view, baseline, event):
    """`view` and `baseline`: a session and its other filters."""
    def of(parameters, value):
        rest = {name: text for name, text in parameters.items() if name != "session"}
        return exported(server, parameters["session"], value, event=event, **rest)

    asked = dict(view, event=event, min_share=0, **{f"base_{name}": text for name, text in baseline.items()})
    samples = of(baseline, "samples"), of(view, "samples")
    weights = of(baseline, "weight"), of(view, "weight")
    assert samples[0].total() > 0 and samples[1].total() > 0
    for order, turn in (("top-down", lambda stack: stack), ("bottom-up", lambda stack: stack[::-1])):
        answer = server.get("/api/diff", order=order, **asked)
        for counts, (old, new) in ((samples, ("base_samples", "samples")), (weights, ("base_total", "total"))):
            turned = [totals(collections.Counter({turn(stack): number for stack, number in side.items()})) for side in counts]
            assert columns(answer, old, new) == pairs(*turned)
        assert answer["per"] == weights[1].total() and answer["base"]["per"] == weights[0].total()
        assert answer["whole"] == {"samples": samples[1].total(), "weight": weights[1].total()}
        assert answer["base"]["whole"] == {"samples": samples[0].total(), "weight": weights[0].total()}

    functions = [by_function(side) for side in weights]
    own = collections.defaultdict(lambda: [0, 0, 0, 0])
    rows = server.get("/api/diff/functions", **{name: text for name, text in asked.items() if name != "min_share"})["functions"]
    for row in rows:
        for place, column in enumerate(("base_self", "self", "base_total", "total")):
            own[plain(row["name"])][place] += row[column]
        for kind in ("self", "total"):
            change = row[kind] / weights[1].total() - row[f"base_{kind}"] / weights[0].total()
            assert abs(row[f"{kind}_change"] - change) < 1e-9, row
        assert row["presence"] == ("new" if row["base_total_samples"] == 0 else "gone" if row["total_samples"] == 0 else "both"), row
    assert set(own) == set(functions[0]) | set(functions[1])
    for name, (old_self, new_self, old_total, new_total) in own.items():
        assert (old_self, new_self) == (functions[0][name][0], functions[1][name][0]), name
        # Functions with one name in two modules are two rows whose stacks can overlap. Then only their self weights add up.
        if sum(plain(row["name"]) == name for row in rows) == 1:
            assert (old_total, new_total) == (functions[0][name][1], functions[1][name][1]), name
    changes = [abs(row["self_change"]) for row in rows]
    assert changes == sorted(changes, reverse=True)
    return answer, rows


def test_a_diff_equals_sums_over_both_exports(start):
    server = start.server()
    # Two programs with the same outermost frames, at two frequencies: weights are compared, not samples.
    before = record(start, server, "shares", "--events", "cpu-clock", "--frequency", 997)
    after = record(start, server, "demo", "--events", "cpu-clock", "--frequency", 499)
    event = server.session(after)["events"][0]["name"]
    answer, rows = check_diff(server, {"session": after}, {"session": before}, event)
    def row_of(part):
        return max((row for row in rows if part in row["name"]), key=lambda row: row["total"] + row["base_total"])

    # The amount of the change: burn_40 had two fifths of the weight of shares, and has none now.
    burn = row_of("burn_40(")
    assert (burn["presence"], burn["total"]) == ("gone", 0) and -0.55 < burn["total_change"] < -0.25, burn
    assert row_of("stage_weather(")["presence"] == "new"
    # The C library and the kernel are the same. `main` of another program is a different function.
    assert any(row["presence"] == "both" for row in rows)

    # With the sides swapped, every change has the opposite sign.
    back = {(row["name"], row["module"]): row for row in server.get("/api/diff/functions", session=before, base_session=after, event=event)["functions"]}
    for row in rows:
        assert abs(back[row["name"], row["module"]]["self_change"] + row["self_change"]) < 1e-9

    # Compare two threads and two halves of one session.
    threads = server.get("/api/thread-summary", session=after, event=event)["threads"]
    first, second = [thread["tid"] for thread in threads if thread["samples"] > 50][:2]
    check_diff(server, {"session": after, "tid": second}, {"session": after, "tid": first}, event)
    middle = server.session(after)["duration_ms"] / 2 // 10 * 10
    check_diff(server, {"session": after, "start": middle}, {"session": after, "end": middle}, event)
    # Without base_session, the baseline is the same session.
    same = server.get("/api/diff", session=after, event=event, start=middle, base_end=middle, min_share=0)
    assert same["base"]["session"] == after and same["base"]["whole"]["samples"] == exported(server, after, end=middle, event=event).total()

    # By time: weight per second of the ranges.
    timed = server.get("/api/diff/functions", session=after, event=event, start=500, end=1500, base_session=before, base_start=1000, base_end=1500, normalise="time")
    assert (timed["duration_ms"], timed["per"], timed["base"]["duration_ms"], timed["base"]["per"]) == (1000, 1, 500, 0.5)
    for row in timed["functions"]:
        assert abs(row["self_change"] - (row["self"] - row["base_self"] / 0.5)) < 1e-3

    # Hidden and zoomed subtrees apply to both sides.
    outer = next(path for path in columns(answer, "total") if len(path) == 1)
    kept = server.get("/api/diff", session=after, base_session=before, event=event, min_share=0, hide=outer[0])
    for side, session in ((kept["base"], before), (kept, after)):
        expected = sum(number for stack, number in exported(server, session, event=event).items() if stack[:1] != outer)
        assert side["whole"]["samples"] == expected


def test_what_cannot_be_compared_is_refused_with_the_reason(start):
    server = start.server()
    clock = record(start, server, "shares", "--events", "cpu-clock", "--frequency", 499)
    faults = record(start, server, "shares", "--events", "page-faults@499")
    event = server.session(clock)["events"][0]["name"]
    other = server.session(faults)["events"][0]["name"]
    for path in ("/api/diff", "/api/diff/functions"):
        with pytest.raises(HttpError) as refused:
            server.get(path, session=clock, base_session=faults)
        assert (refused.value.status, refused.value.error["code"]) == (400, "not_comparable")
        message = refused.value.error["message"]
        assert event in message and other in message and "choose" in message, message
        for wrong, word in (({"base_start": "soon"}, "base_start"), ({"base_end": 1, "base_start": 2}, "base_end is before base_start"), ({"base_tid": "x"}, "base_tid"), ({"normalise": "mood"}, "normalise")):
            with pytest.raises(HttpError) as refused:
                server.get(path, session=clock, **wrong)
            assert refused.value.status == 400 and word in refused.value.error["message"]
        with pytest.raises(HttpError) as missing:
            server.get(path, session=clock, base_session="20000101-000000-nothing")
        assert missing.value.status == 404
