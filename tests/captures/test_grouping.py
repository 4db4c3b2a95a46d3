"""Root frames for processes, threads, containers and CPUs in the flame graph, in folded stacks and in the report. Expected values come from two
programs, each limited to one CPU, and from the tables of threads."""
import collections
import os
import subprocess

import pytest
from flamewire import BIN, HttpError, Tree
from stages import CONTAINER

GROUP_FRAME = 5


@pytest.fixture(scope="module")
def recorded(replayed):
    """(session file, facts about the program in the container, facts about the one outside)"""
    replay = replayed("groups")
    return replay.session, replay.truth["inside"], replay.truth["outside"]


def folded(path, *options):
    text = subprocess.run([BIN / "flamewire", "export", path, *options], check=True, capture_output=True, text=True, timeout=60).stdout
    sums = collections.Counter()
    for line in text.splitlines():
        stack, number = line.rsplit(" ", 1)
        sums[stack.split(";")[0]] += int(number)
    return sums


def test_folded_stacks_by_group(recorded):
    path, *programs = recorded
    inside, outside = (program["pid"] for program in programs)
    whole = {pid: sum(folded(path, "-p", str(pid)).values()) for pid in (inside, outside)}
    assert all(whole.values()), whole
    assert folded(path, "--group", "process") == {f"shares-workload ({pid})": number for pid, number in whole.items()}
    assert folded(path, "--group", "container") == {CONTAINER[:12]: whole[inside], "[no container]": whole[outside]}
    assert folded(path, "--group", "cpu") == {f"CPU {program['cpu']}": whole[program["pid"]] for program in programs}
    threads = folded(path, "--group", "thread")
    assert threads.keys() == {f"shares-workload ({tid})" for program in programs for tid in program["tids"]}
    for program in programs:
        assert sum(threads[f"shares-workload ({tid})"] for tid in program["tids"]) == whole[program["pid"]]
    assert folded(path, "--group", "none") == folded(path)


def test_report_and_picture(recorded):
    path, *programs = recorded
    report = subprocess.run([BIN / "flamewire", "report", path, "--only", "tree", "--group", "process"], check=True, capture_output=True, text=True, timeout=60).stdout
    for pid in (program["pid"] for program in programs):
        assert sum(line.endswith(f"shares-workload ({pid})") for line in report.splitlines()) == 1, report
    picture = subprocess.run([BIN / "flamewire", "export", path, "--format", "svg", "--group", "container"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert f"<title>{CONTAINER[:12]}, " in picture and "<title>[no container], " in picture
    wrong = subprocess.run([BIN / "flamewire", "report", path, "--group", "planet"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode != 0 and "planet" in wrong.stderr and "container" in wrong.stderr, wrong.stderr
    # Formats without groups refuse the option, so the total is not mistaken for a group.
    for name in ("csv", "pprof", "html"):
        wrong = subprocess.run([BIN / "flamewire", "export", path, "--format", name, "-o", os.devnull, "--group", "process"], capture_output=True, text=True, timeout=60, check=False)
        assert wrong.returncode == 1 and f"for {name} take one process" in wrong.stderr, wrong


def test_flame_graph_by_group(recorded, served):
    _, *programs = recorded
    server, session = served("groups")
    session = session["id"]

    def graph(**options):
        return Tree(server.get("/api/flamegraph", session=session, min_share=0, **options))

    def roots(tree):
        assert all((kind == GROUP_FRAME) == (up == 0) for up, kind in list(zip(tree.parent, tree.kind))[1:])
        return {name: number for name, number, up in list(zip(tree.names, tree.samples, tree.parent))[1:] if up == 0}

    threads = server.get("/api/thread-summary", session=session)["threads"]
    by_process = collections.Counter()
    for thread in threads:
        by_process[f"shares-workload ({thread['pid']})"] += thread["samples"]
    plain = graph()
    for options in ({}, {"order": "bottom-up"}, {"merge": "line"}, {"merge": "address"}, {"recursion": "collapse"}):
        tree = graph(group="process", **options)
        assert roots(tree) == by_process and tree.samples[0] == plain.samples[0], options
        assert roots(graph(group="thread", **options)) == {f"{thread['comm']} ({thread['tid']})": thread["samples"] for thread in threads if thread["samples"]}
    whole = [by_process[f"shares-workload ({program['pid']})"] for program in programs]
    assert roots(graph(group="cpu")) == {f"CPU {program['cpu']}": number for program, number in zip(programs, whole)}
    assert roots(graph(group="container")) == {CONTAINER[:12]: whole[0], "[no container]": whole[1]}

    # Zooming into a group by its path shows only that process.
    one, other = sorted(by_process)
    pid = int(one.split("(")[1][:-1])
    inside, alone = graph(group="process", path=f"{one}\x1e{GROUP_FRAME}\x1e"), graph(pid=pid)
    assert collections.Counter(zip(inside.names[1:], inside.samples[1:])) == collections.Counter(zip(alone.names[1:], alone.samples[1:]))
    assert roots(graph(group="process", hide=one)) == {other: by_process[other]}
    assert graph(group="none").names == plain.names
    for path in ("/api/flamegraph", "/api/export/flamegraph", f"/api/export/session/{session}"):
        with pytest.raises(HttpError, match="group must be none, process, thread, container or cpu"):
            server.get(path, session=session, group="planet")
    assert one in server.get("/api/export/flamegraph", session=session, group="process").decode()

    # Views without groups refuse the parameter, so that sums of all are not mistaken for those of each group.
    function = plain.names[-1]
    for path, more in (("functions", {}), ("callers", {"function": function}), ("diff", {}), ("diff/functions", {}), ("thread-view", {"tid": threads[0]["tid"]}), ("thread-summary", {}),
                       ("timeline", {"slices": 10}), ("source-files", {}), ("disasm", {"function": function}), ("modules", {}), ("counters", {}),
                       *((f"export/session/{session}", {"format": name}) for name in ("json", "csv", "pprof", "speedscope", "firefox", "perfdata", "html", "flamewire"))):
        with pytest.raises(HttpError, match="400: .*group is for flame graphs, their pictures and folded stacks: elsewhere, ask for each process"):
            server.get(f"/api/{path}", session=session, group="process", **more)
    assert server.get("/api/functions", session=session, group="none") == server.get("/api/functions", session=session)
