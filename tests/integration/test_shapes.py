"""Inverted trees, collapsed recursion, hidden subtrees and callers, against sums over the collapsed export.

The sums below do not use the server's code: a stack is a tuple of names with a number of samples.
"""
import collections

import pytest
from collapsed import exported, totals
from flamewire import HttpError, Tree, wait_until


def totals_of(answer):
    """The sums of a flame graph. Paths have only names, because the export has only names, and without ';' and line breaks."""
    tree = Tree(answer)
    names = [name.replace(";", ":").replace("\n", " ") for name in tree.names]
    paths, sums = [()], collections.Counter({(): answer["nodes"]["samples"][0]})
    for node in range(1, len(names)):
        paths.append(paths[tree.parent[node]] + (names[node],))
        sums[paths[node]] += answer["nodes"]["samples"][node]
    return sums


def collapse(stack):
    return tuple(name for index, name in enumerate(stack) if index == 0 or stack[index - 1] != name)


def map_stacks(stacks, change):
    changed = collections.Counter()
    for stack, number in stacks.items():
        changed[change(stack)] += number
    return changed


def check_sandwich(server, session, stacks, name):
    answer = server.get("/api/callers", session=session, function=name, min_share=0)
    callers, callees, above, below = (collections.Counter() for _ in range(4))
    total = self_samples = 0
    for stack, number in stacks.items():
        if name not in stack:
            continue
        outermost = stack.index(name)
        total += number
        self_samples += number * (stack[-1] == name)
        callers[stack[:outermost][::-1]] += number
        callees[stack[outermost + 1:]] += number
        for caller in {a for a, b in zip(stack, stack[1:]) if b == name}:
            above[caller] += number
        for callee in {b for a, b in zip(stack, stack[1:]) if a == name}:
            below[callee] += number
    assert (answer["function_total"]["samples"], answer["function_self"]["samples"]) == (total, self_samples)
    assert totals_of(answer["callers"]) == totals(callers)
    assert totals_of(answer["callees"]) == totals(callees)
    for side, expected in (("direct_callers", above), ("direct_callees", below)):
        found = collections.Counter()
        for neighbour in answer[side]:
            found[neighbour["name"].replace(";", ":")] += neighbour["samples"]
        assert found == expected, side
    return answer


def test_shapes_equal_sums_over_the_export(start):
    server = start.server()
    program = start.workload("demo", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1000, 60, "samples")
    agent.stop()
    program.stop()
    session = server.sessions()[0]["id"]
    server.wait_ended(session, seconds=60)
    stacks = exported(server, session)

    def graph(**parameters):
        return server.get("/api/flamegraph", session=session, min_share=0, **parameters)

    assert totals_of(graph()) == totals(stacks)
    assert totals_of(graph(order="bottom-up")) == totals(map_stacks(stacks, lambda stack: stack[::-1]))
    collapsed = map_stacks(stacks, collapse)
    assert collapsed != stacks, "the workload has recursion"
    assert totals_of(graph(recursion="collapse")) == totals(collapsed)
    assert totals_of(graph(recursion="collapse", order="bottom-up")) == totals(map_stacks(collapsed, lambda stack: stack[::-1]))

    # Hide the subtree of stage_weather.
    weather = next(stack for stack in stacks if any("stage_weather" in name for name in stack))
    path = weather[:next(index for index, name in enumerate(weather) if "stage_weather" in name) + 1]
    kept = collections.Counter({stack: number for stack, number in stacks.items() if stack[:len(path)] != path})
    assert 0 < kept.total() < stacks.total()
    assert totals_of(graph(hide="\x1f".join(path))) == totals(kept)

    # A finer tree has the same sums by name.
    for merge in ("line", "address"):
        finer = graph(merge=merge)
        assert totals_of(finer) == totals(stacks)
        assert len(finer["nodes"]["parent"]) >= len(totals(stacks))
        assert ("address" in finer["nodes"]) == (merge == "address")

    recursive = collections.Counter()
    for stack, number in stacks.items():
        for name in {a for a, b in zip(stack, stack[1:]) if a == b}:
            recursive[name] += number
    recursive = recursive.most_common(1)[0][0]
    answer = check_sandwich(server, session, stacks, recursive)
    functions = server.get("/api/functions", session=session)["functions"]
    row = next(row for row in functions if row["name"] == recursive)
    assert (row["total"], row["self"]) == (answer["function_total"]["weight"], answer["function_self"]["weight"])
    for name in (path[-1], path[0]):
        check_sandwich(server, session, stacks, name)

    for wrong in ({"order": "sideways"}, {"merge": "colour"}, {"recursion": "no"}):
        with pytest.raises(HttpError) as refused:
            graph(**wrong)
        assert refused.value.status == 400
    for parameters, status in (({}, 400), ({"function": "no_such_function"}, 404), ({"function": recursive, "module": "other"}, 404)):
        with pytest.raises(HttpError) as refused:
            server.get("/api/callers", session=session, **parameters)
        assert refused.value.status == status
