"""Every HTTP answer on live data and on a replayed session. The harness validates each answer against docs/openapi.yaml."""
import http.client
import re
import time
import xml.etree.ElementTree

import bounds
import pytest
from flamewire import BIN, CONTRACT, SANITIZED, HttpError, Tree, wait_until
from known_shares import check_known_shares

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=5)


def views(server, session, **parameters):
    graph = server.get("/api/flamegraph", session=session, min_share=0, **parameters)
    functions = server.get("/api/functions", session=session, **parameters)
    threads = server.get("/api/thread-summary", session=session, **parameters)
    # test_thread_times.py checks the values.
    server.get("/api/thread-states", session=session, slices=20, **parameters)
    server.get("/api/scheduling", session=session, **parameters)
    timeline = server.get("/api/timeline", session=session, slices=50, **parameters)
    # test_counters.py, test_health.py, test_modules.py and test_quality_warnings.py check the values.
    for path in ("/api/warnings", "/api/counters", "/api/metrics/current", "/api/metrics/history", "/api/modules"):
        server.get(path, session=session)
    # The browser test of traced events checks the values.
    assert server.get("/api/hits", session=session)["hits"] == [] and server.get("/api/hits/table", session=session, by="comm")["groups"] == []
    # test_imports.py and test_modules.py check these.
    assert server.get("/api/imports")["imports"] == []
    assert server.request("PUT", "/api/uploads/some-file", body=b"half", offset=0, size=8)[0] == 200
    assert server.get("/api/uploads/some-file")["offset"] == 4
    assert server.request("DELETE", "/api/uploads/some-file")[0] == 200
    # This upload is not a profile, so it leaves no session.
    assert server.request("PUT", "/api/uploads/no-profile", body=b"no", offset=0, size=2)[0] == 200
    begun = server.post("/api/imports", {"upload": "no-profile"})
    wait_until(lambda: server.get(f"/api/imports/{begun['id']}")["state"] == "failed", 30, "the end of the import")
    # test_diff.py and test_shapes.py check these.
    server.get("/api/diff", session=session, base_tid=0, **parameters)
    server.get("/api/diff/functions", session=session, base_tid=0, **parameters)
    server.get("/api/callers", session=session, function=next((row["name"] for row in functions["functions"]), "none"), **parameters)
    # test_code.py checks this.
    server.get("/api/disasm", session=session, function=next((row["name"] for row in functions["functions"]), "none"), **parameters)
    # test_travel.py checks these.
    assert server.post(f"/api/sessions/{session}/sources")["files"] >= 0
    assert server.request("POST", f"/api/sessions/{session}/cut", body={})[0] == 400
    assert server.request("POST", "/api/sessions/merge", body={})[0] == 400
    assert server.request("GET", f"/api/export/session/{session}", format="flamewire")[1] == "application/zstd"
    # test_browse.py and test_connecting.py check these.
    server.get("/api/browse")
    server.get("/api/agent/dials")
    server.get("/api/pairing")
    server.post("/api/pairing")
    return graph, functions, threads, timeline


def stacks(graph):
    """The content of a flame graph, regardless of the order of equal siblings: path -> (self, total, samples)."""
    tree = Tree(graph)
    paths, answer = [()], {}
    for node in range(1, len(tree.names)):
        paths.append(paths[tree.parent[node]] + ((tree.names[node], tree.modules[node], tree.kind[node]),))
        answer[paths[node]] = (tree.self_weight[node], tree.total[node], tree.samples[node])
    return answer


def check_views(server, session):
    graph, functions, threads, timeline = views(server, session)
    total = graph["total"]["samples"]
    assert total == threads["total_samples"] == functions["total"]["samples"] == sum(timeline["samples"]) > 0
    assert sum(thread["samples"] for thread in threads["threads"]) == total
    # Of a complete session, the partial answer is the complete one.
    assert server.get("/api/functions", session=session, partial="1")["functions"] == functions["functions"]
    assert sum(function["self_samples"] for function in functions["functions"]) == total
    assert sum(graph["nodes"]["self_samples"]) == total
    tree = Tree(graph)
    for node in range(1, len(tree.names)):
        assert tree.parent[node] < node
    by_name = {}
    for function in functions["functions"]:
        by_name[function["name"]] = by_name.get(function["name"], 0) + function["total"] / graph["total"]["weight"]
    for name, share in tree.shares().items():
        assert abs(by_name[name] - share) < 1e-6, name
    # Filters: the threads' samples add up to the total, and so do those of two halves of the time.
    tids = [thread["tid"] for thread in threads["threads"]]
    assert sum(server.get("/api/flamegraph", session=session, tid=tid)["total"]["samples"] for tid in tids) == total
    assert server.get("/api/flamegraph", session=session, tid=",".join(map(str, tids)))["total"]["samples"] == total
    duration = server.session(session)["duration_ms"]
    middle = duration / 2 // 10 * 10
    assert sum(server.get("/api/flamegraph", session=session, start=begin, end=end)["total"]["samples"] for begin, end in ((0, middle), (middle, duration + 1000))) == total
    pid = server.session(session)["pids"][0]
    assert server.get("/api/functions", session=session, pid=pid)["total"]["samples"] == total
    assert server.get("/api/functions", session=session, pid=pid + 1)["total"]["samples"] == 0
    one = server.get("/api/thread-view", session=session, tid=tids[0])
    assert one["flamegraph"]["total"]["samples"] == one["functions"]["total"]["samples"] == threads["threads"][0]["samples"]
    return total


def test_live_and_replayed(start):
    server = start.server()
    assert server.get("/api/status")["agent_connected"] is False
    with pytest.raises(HttpError) as nothing:
        server.get("/api/flamegraph")
    assert nothing.value.status == 404 and nothing.value.error["code"] == "no_data"
    with pytest.raises(HttpError) as nobody:
        server.command("ping")
    assert nobody.value.status == 409 and nobody.value.error["code"] == "no_agent"
    program = start.workload("demo", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 2000, 20, "samples")
    seen = {}
    with server.stream() as events:
        for name, data in events:
            seen.setdefault(name, data)
            if {"status", "agent", "data_version"} <= set(seen):
                break
    assert seen["data_version"]["total_samples"] > 0
    assert server.command("pause")["ok"]
    time.sleep(0.7)
    session = server.wait_named(server.only_session()["id"])["id"]
    total = check_views(server, session)
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    # stage_weather takes 30 % of a round's time, and does not call functions without frame pointers, which would break its call chain.
    weather, rounds = (total * sum(share for name, share in tree.shares().items() if name.startswith(f"city::{function}(")) for function in ("stage_weather", "simulate_round"))
    KNOWN.share(weather, rounds, 0.30, bias=0.01, detail="in stage_weather")

    # Zooming by path returns the subtree. Pruning preserves the sums.
    answer = server.get("/api/flamegraph", min_share=0.02)
    pruned = Tree(answer)
    assert len(pruned.names) < len(tree.names) and pruned.total[0] == tree.total[0]
    node = next(index for index, name in enumerate(tree.names) if "stage_traffic" in name)
    path, up = [], node
    while up:
        path.insert(0, tree.names[up])
        up = tree.parent[up]
    zoomed = Tree(server.get("/api/flamegraph", min_share=0, path="\x1f".join(path)))
    assert zoomed.total[0] == tree.total[node]
    # A path can name thousands of frames: this one is 400 KB long in the URL, and no stack matches it.
    deep = server.get("/api/flamegraph", path="\x1f".join(path + ["city::visit_quadrant(World&, double, double)"] * 4096))
    assert len(deep["nodes"]["parent"]) == 1 and deep["total"]["samples"] == 0

    svg = server.get("/api/export/flamegraph")
    assert xml.etree.ElementTree.fromstring(svg).tag.endswith("svg") and b"stage_traffic" in svg
    collapsed = server.get(f"/api/export/session/{session}", format="collapsed").decode()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in collapsed.splitlines()) == total
    assert re.search(r"^city-1;.*stage_weather.* \d+$", collapsed, re.M)
    exported = server.get(f"/api/export/session/{session}", format="json")
    assert exported
    page = server.get(f"/api/export/session/{session}", format="html", end=1000).decode()
    assert page.startswith("<!doctype html>") and "flamewire-answers" in page and len(page) < 3_000_000
    assert server.request("GET", f"/api/export/session/{session}", format="html", page="x" * 70_000)[0] == 400

    assert server.get("/api/agent/events", kind="file", pid=program.pid)["total"] > 0
    assert agent.stop() == 0
    server.wait_ended(session)
    live = server.get("/api/flamegraph", session=session, min_share=0)
    server.stop()
    again = start.server(name="again", data_dir=server.data_dir)
    assert again.only_session()["id"] == session
    assert check_views(again, session) == total
    replayed = again.get("/api/flamegraph", session=session, min_share=0)
    assert stacks(replayed) == stacks(live)
    assert again.request("DELETE", f"/api/sessions/{session}")[2] == {"ok": True, "session_id": session}
    assert not again.sessions() and again.request("DELETE", f"/api/sessions/{session}")[0] == 404
    program.stop()


def test_a_server_that_ends_while_connections_are_open(start):
    """A browser keeps its connections open, one with the event stream. When the server exits, no code may access freed memory."""
    server = start.server(program=(*(() if SANITIZED else ("valgrind", "-q", "--error-exitcode=9")), BIN / "flamewire-server"))
    idle = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    idle.request("GET", "/api/status")
    assert idle.getresponse().read()
    with server.stream() as events:
        assert next(events)
        assert server.stop() == 0, server.err
    assert "Invalid" not in server.err
    idle.close()


def test_a_live_session_is_not_deleted(start):
    server = start.server()
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid)
    session = wait_until(lambda: server.sessions(), 20, "a session")[0]["id"]
    assert server.request("DELETE", f"/api/sessions/{session}")[0] == 409


def test_better_symbols_arrive_late(start, tmp_path):
    """A stripped program shows addresses. The unstripped file, given later, adds the names to the running session."""
    import shutil
    import subprocess
    from flamewire import TESTS_BIN
    stripped = tmp_path / "stripped" / "shares-workload"
    stripped.parent.mkdir()
    subprocess.run(["strip", "-o", stripped, TESTS_BIN / "shares-workload"], check=True)
    server = start.server()
    program = start.process("stripped", [stripped, "60"])
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    names = Tree(server.get("/api/flamegraph", min_share=0)).names
    assert any(name.startswith("[shares-workload+0x") for name in names) and not any("burn_" in name for name in names)
    module = next(module for module in server.only_session()["modules"] if module["name"] == "shares-workload")
    assert module["quality"] in ("none", "dynamic_symbols") and module["remedy"]

    wrong = tmp_path / "wrong" / "shares-workload"
    wrong.parent.mkdir()
    shutil.copy(TESTS_BIN / "lines-workload", wrong)
    notes = server.request("PATCH", "/api/config", body={"binary": str(wrong)})[2]["notes"]
    assert any("build-id" in note for note in notes), notes

    answer = server.request("PATCH", "/api/config", body={"binary": str(TESTS_BIN / "shares-workload")})
    assert answer[0] == 200, answer
    wait_until(lambda: any("burn_40" in name for name in Tree(server.get("/api/flamegraph", min_share=0)).names), 10, "names")
    assert agent.stop() == 0
    server.wait_ended()
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_known_shares(KNOWN, tree)
    assert not any(name.startswith("[shares-workload+0x") for name, weight in zip(tree.names, tree.self_weight) if weight > 0.01 * tree.weight)


def test_source_lookup(start, tmp_path):
    """A file outside the roots: the answer has the tried paths and a --source-dir that would show it. A path map finds it."""
    (tmp_path / "empty").mkdir()
    from flamewire import ROOT, TESTS_BIN
    server = start.server("--source-dir", tmp_path / "empty")
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--", TESTS_BIN / "lines-workload", 2)
    assert agent.wait() == 0
    server.wait_ended()
    file = server.get("/api/source-files")["files"][0]["file"]
    with pytest.raises(HttpError) as missing:
        server.get("/api/source", file=file)
    error = missing.value.error
    assert missing.value.status == 404 and error["tried"] and error["suggestion"] == "", error
    assert error["message"].endswith(f": start the server with --source-dir {file.rsplit('/', 1)[0]}"), error
    root = file.removesuffix("/tests/workloads/lines.cc")
    answer = server.request("PATCH", "/api/config", body={"path_map": [f"{root}={ROOT}"]})
    assert answer[0] == 200
    source = server.get("/api/source", file=file)
    assert source["resolved"].endswith("tests/workloads/lines.cc") and source["hottest"]
    with pytest.raises(HttpError):
        server.get("/api/source", file="/etc/hostname")


def test_every_described_get_was_checked():
    """Runs last in this file: every GET of the contract returned 200 at least once above."""
    described = {path for path, operations in CONTRACT.document["paths"].items() if "get" in operations} - {"/api/stream", "/api/config", "/api/config/toolchain"}
    answered = {path for method, path, status in CONTRACT.checked if method == "GET" and status == 200}
    assert described - answered - {"/api/source", "/api/agents"} == set(), described - answered
