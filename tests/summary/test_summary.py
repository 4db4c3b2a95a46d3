"""The summary of ./dev test, from files in the format of CTest 3.25 and from output of pytest, node:test and Catch2."""
import pathlib
import subprocess
import sys

import summary

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="10" failures="2" disabled="1" skipped="3" hostname="" time="1" timestamp="2026-11-25T02:26:53">
  <testcase name="unit_base" classname="unit_base" time="0.25" status="run"><system-out>../x_test.cc:39: warning:
  NOT tested: events of whole CPUs need root here
</system-out></testcase>
  <testcase name="unit_wire" classname="unit_wire" time="0.5" status="run"><system-out>All tests passed</system-out></testcase>
  <testcase name="integration_travel" classname="integration_travel" time="61.5" status="fail">
    <failure message=""/>
    <system-out>SKIPPED [2] tests/integration/test_travel.py:81: NOT tested: no root
FAILED tests/integration/test_travel.py::test_archive[small] - AssertionError: [1, 2]
ERROR tests/integration/test_travel.py::test_window - OSError
</system-out>
  </testcase>
  <testcase name="e2e_live" classname="e2e_live" time="20" status="fail">
    <failure message=""/>
    <system-out>✔ the page opens (12.5ms)
✖ a range is chosen (1204.113ms)
﹣ a later step (0.05ms) # an earlier step failed
✖ failing tests:
✖ a range is chosen (1204.113ms)
</system-out>
  </testcase>
  <testcase name="oracle_corpus" classname="oracle_corpus" time="0.1" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/><system-out>reading

no corpus: nothing was compared
</system-out>
  </testcase>
  <testcase name="oracle_off" classname="oracle_off" time="0" status="disabled"><system-out>Disabled</system-out></testcase>
  <testcase name="cross_agent" classname="cross_agent" time="0" status="notrun">
    <skipped message="Fixture dependency failed"/><system-out>Failed test dependencies: cross_build</system-out>
  </testcase>
</testsuite>
"""
PHASES = "100.0\tinstall\n103.5\tbuild\n203.5\ttests\n290.0\tend\n"
RETAKEN = '{"test": "test_off_cpu.py", "recording": "waits", "reason": "2.1 % steal time", "attempt": 1, "outcome": "retaken"}\n'
MEASURED = '{"test": "test_off_cpu.py", "recording": "waits", "reason": "", "attempt": 2, "outcome": "measured"}\n'
NEVER = '{"test": "test_jit.py", "recording": "map", "reason": "late timers", "attempt": 4, "outcome": "not measured"}\n'


def run(folder, code=0, **files):
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    done = subprocess.run([sys.executable, pathlib.Path(summary.__file__), folder], capture_output=True, text=True, check=False)
    assert done.stderr == "" and done.returncode == code
    report = {}
    for part in filter(None, done.stdout.strip().split("\n\n")):
        title, *lines = part.splitlines()
        report[title] = [" ".join(line.split()) for line in lines]
    return report


def test_failed_tests_come_first_with_their_cases(tmp_path):
    report = run(tmp_path, release__xml=JUNIT)
    title = "Failed: 3 of 7 tests"
    assert next(iter(report)) == title
    assert report[title] == [
        "integration_travel 61.5 s",
        "tests/integration/test_travel.py::test_archive[small] - AssertionError: [1, 2]",
        "tests/integration/test_travel.py::test_window - OSError",
        "e2e_live 20.0 s",
        "a range is chosen",
        "cross_agent 0.0 s Fixture dependency failed",
    ]


def test_times_by_phase_and_tier(tmp_path):
    report = run(tmp_path, release__xml=JUNIT, phases=PHASES)
    assert report["Elapsed time by phase"] == ["install 3.5 s", "build 100.0 s", "tests 86.5 s", "total 190.0 s"]
    (tiers,) = (lines for title, lines in report.items() if title.startswith("Time of the tests by tier"))
    assert tiers == ["unit 0.8 s 2 tests", "integration 61.5 s 1 tests", "oracle 0.1 s 2 tests", "cross 0.0 s 1 tests", "e2e 20.0 s 1 tests"]


def test_the_slowest_of_all_files(tmp_path):
    other = "<testsuite>" + "".join(f'<testcase name="fuzz_{n}" time="{n}" status="run"/>' for n in range(1, 13)) + "</testsuite>"
    report = run(tmp_path, release__xml=JUNIT, fuzz__xml=other)
    assert report["The 10 slowest tests"] == ["integration_travel 61.5 s", "e2e_live 20.0 s", *(f"fuzz_{n} {n}.0 s" for n in range(12, 4, -1))]


def test_every_kind_of_skip_has_its_reason(tmp_path):
    assert run(tmp_path, release__xml=JUNIT)["Skipped"] == [
        "unit_base NOT tested: events of whole CPUs need root here",
        "integration_travel NOT tested: no root (2 cases)",
        "e2e_live an earlier step failed",
        "oracle_corpus no corpus: nothing was compared",
        "oracle_off Disabled",
    ]


def test_disturbed_recordings_are_listed(tmp_path):
    report = run(tmp_path, release__xml=JUNIT, disturbed__jsonl=RETAKEN + 9 * MEASURED + NEVER)
    assert report["Disturbed recordings (1 of 10 not measured)"] == ["test_off_cpu.py waits, attempt 1: 2.1 % steal time", "test_jit.py map, attempt 4: late timers"]


def test_too_few_measured_recordings_fail_the_run(tmp_path):
    assert run(tmp_path, code=1, disturbed__jsonl=8 * MEASURED + NEVER)


def test_a_run_without_failures_or_files(tmp_path):
    assert run(tmp_path) == {}
    passed = '<testsuite><testcase name="unit_base" time="1" status="run"/></testsuite>'
    assert [title for title in run(tmp_path, release__xml=passed)] == ["Time of the tests by tier (tests that run at the same time add up)", "The 1 slowest tests"]


def test_output_of_node_18_which_is_tap():
    output = "ok 1 - a page # SKIP needs root\nnot ok 2 - another page\n"
    test = summary.Test("e2e_page", "e2e", 1.0, "failed", "", output)
    assert summary.failed_cases(output) == ["another page"]
    assert summary.skips_of(test) == [summary.Skip("e2e_page", 1, "needs root")]
