"""The table of live rounds, the accumulation of results, and the cleanup of processes."""
import json
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import results  # noqa: E402
import run  # noqa: E402

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="release" tests="3" failures="1" disabled="0" skipped="1" hostname="" time="9">
  <testcase name="oracle_shares" classname="oracle_shares" time="61.26" status="run"><system-out>4 passed</system-out></testcase>
  <testcase name="integration_off_cpu" classname="integration_off_cpu" time="30.04" status="fail"><failure message=""/><system-out>
FAILED tests/integration/test_off_cpu.py::test_a[system] - AssertionError: 3 &lt; 4
1 failed</system-out></testcase>
  <testcase name="boards" classname="boards" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE"/></testcase>
</testsuite>"""


def result(test, outcome="passed", commit="aaa", at="t.001", load=False, cases=()):
    return {"commit": commit, "time": at, "load": load, "test": test, "outcome": outcome, "seconds": 1.0, "log": None if outcome == "passed" else f"{test}.log", "cases": list(cases)}


def test_results_of_ctest(tmp_path):
    (tmp_path / "junit.xml").write_text(JUNIT)
    shares, off_cpu, boards = results.of_junit(tmp_path / "junit.xml", tmp_path, commit="abc", time="t", load=True)
    assert shares == {"commit": "abc", "time": "t", "load": True, "test": "oracle_shares", "outcome": "passed", "seconds": 61.3, "log": None, "cases": []}
    assert (off_cpu["outcome"], off_cpu["cases"]) == ("failed", ["tests/integration/test_off_cpu.py::test_a[system]"])
    assert "3 < 4" in pathlib.Path(off_cpu["log"]).read_text()
    assert boards["outcome"] == "not run"


def test_results_accumulate_and_survive_a_cut_line(tmp_path):
    path = tmp_path / "below" / "results.jsonl"
    results.append(path, [result("a")])
    results.append(path, [result("a", at="t.002"), result("b")])
    with open(path, "a") as file:
        file.write('{"commit": "aa')
    assert [one["test"] for one in results.load(path)] == ["a", "a", "b"]
    assert results.load(tmp_path / "none") == [] and results.table([]) == "No results yet."


def test_recordings_of_a_round(tmp_path):
    path = tmp_path / "disturbed.jsonl"
    assert results.recordings(path) == "0 recordings, 0 taken again"
    path.write_text("".join(json.dumps({"test": "t", "outcome": outcome}) + "\n" for outcome in ["measured", "retaken", "measured", "retaken", "retaken", "retaken", "not measured"]))
    assert results.recordings(path) == "3 recordings, 4 taken again, 1 not measured"


def test_table():
    these = [result("a", "failed", at="t.001", load=True, cases=["f.py::one", "f.py::two"]), result("b", at="t.001", load=True),
             result("a", "failed", at="t.002", load=True, cases=["f.py::one"]), result("b", at="t.002", load=True),
             result("a", at="t.003", load=True, commit="bbb"), result("a", at="t.004", load=True, commit="bbb"),
             result("a", at="t.005", commit="bbb"), result("b", "not run", at="t.006", commit="bbb")]
    assert results.table(these).splitlines() == [
        "failed  runs  load  test       last failure",
        "2       4     yes   f.py::one  aaa a.log",
        "1       4     yes   f.py::two  aaa a.log",
        "1       1     no    b          bbb b.log",
        "",
        "commit  rounds with load  failed  rounds without  failed",
        "aaa     2                 2       0               0",
        "bbb     2                 0       2               1",
        "",
        "2 tests. Without a failure since the last one: 2 rounds with load, 0 without."]


def test_busy_loops_end_with_their_block():
    with pytest.raises(KeyboardInterrupt), run.busy_loops(2) as loops:
        assert all(loop.poll() is None for loop in loops)
        raise KeyboardInterrupt
    assert all(loop.returncode is not None for loop in loops)


def test_a_round_ends_the_processes_that_it_started(tmp_path):
    """The leader has already exited, and a child ignores the first signal."""
    child = tmp_path / "child"
    leader = subprocess.Popen(["sh", "-c", f"trap '' INT; sleep 60 & echo $! > {child}; trap - INT; sleep 60"], start_new_session=True)
    while not child.exists() or not child.read_text():
        time.sleep(0.02)
    pid = int(child.read_text())
    run.end_group(leader, patience=1)
    for _ in range(100):
        if not pathlib.Path(f"/proc/{pid}").exists() or pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the child is still running")


def test_a_selection_without_tests_is_an_error(tmp_path, monkeypatch):
    junit = tmp_path / "junit.xml"
    junit.write_text("<testsuite/>")
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "run_round", lambda folder, selection: junit)
    monkeypatch.setattr(sys, "argv", ["run.py", "-R", "nothing"])
    with pytest.raises(SystemExit, match="no live test is selected by -R nothing"):
        run.main()


def test_table_as_a_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").write_text(json.dumps(result("a", "failed", cases=["x::y"])) + "\n")
    monkeypatch.setattr(sys, "argv", ["run.py", "--table"])
    assert run.main() == 0
    assert "x::y" in capsys.readouterr().out
