"""Checks that the tests named in docs/limits.md exist and that ctest runs them. unit_limits generates that page."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", ROOT / "build" / "bin"))


def named_tests(page):
    """Returns (bound, [its tests]) for each row of the page's last table."""
    listed = page.split("## Which test reaches it")[1]
    rows = [line for line in listed.splitlines() if line.startswith("| ") and line != "| bound | tests |"]
    return [(line[2:].split(" | ")[0], re.findall(r"`(unit_\w+: [^`]+|[\w/]+\.py::\w+)`", line)) for line in rows]


@functools.cache
def ctest():
    """Returns name -> command for each test that ctest runs."""
    listed = subprocess.run(["ctest", "--test-dir", BIN.parent, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
    disabled = {"name": "DISABLED", "value": True}
    return {test["name"]: test.get("command", []) for test in json.loads(listed)["tests"] if disabled not in test["properties"]}


@functools.cache
def catch_cases(program):
    # Catch2 returns the number of cases as its exit status. A case with a hidden tag does not run, so it is not listed.
    return subprocess.run([BIN / program, "--list-test-names-only"], capture_output=True, text=True).stdout.splitlines()


@functools.cache
def pytest_functions(file):
    listed = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", file], cwd=ROOT, capture_output=True, text=True).stdout
    # A parametrized test has several nodes.
    return {line.split("[")[0] for line in listed.splitlines() if "::" in line}


def problem(test):
    """Describes what is wrong with the name of a test. Empty if the test exists and runs."""
    if ": " in test:
        program, case = test.split(": ", 1)
        if program not in ctest():
            return f"ctest has no test {program}"
        if not (BIN / program).exists():
            return f"{program} is not built"
        return "" if case in catch_cases(program) else f"{program} has no test case '{case}'"
    file = test.split("::")[0]
    if not any(str(ROOT / file) in command for command in ctest().values()):
        return f"ctest does not run {file}"
    return "" if test in pytest_functions(file) else f"{file} has no test {test.split('::')[1]}"


def test_each_bound_names_tests_that_run():
    page = (ROOT / "docs" / "limits.md").read_text()
    bounds = named_tests(page)
    rows = [line for line in page.split("## Which test reaches it")[0].splitlines() if line.startswith("| ") and not line.startswith("| bound ")]
    assert len(bounds) == len(rows) > 40
    assert [bound for bound, tests in bounds if not tests] == []
    wrong = [f"{bound}: {problem(test)}" for bound, tests in bounds for test in tests if problem(test)]
    assert not wrong, "\n".join(wrong)


def test_missing_tests_are_reported():
    assert problem("unit_wire: depth and size are bounded") == ""
    assert problem("tests/integration/test_limits.py::test_dials") == ""
    assert "has no test case" in problem("unit_wire: depth and size are")
    assert "ctest has no test" in problem("unit_nothing: depth and size are bounded")
    assert "has no test test_dial" in problem("tests/integration/test_limits.py::test_dial")
    assert "ctest does not run" in problem("tests/harness/flamewire.py::test_dials")
    assert named_tests("## Which test reaches it\n\n| bound | tests |\n|---|---|\n| one, `--two` | `unit_a: b, c`, `tests/a.py::test_b` |\n| none | `` |\n") == [
        ("one, `--two`", ["unit_a: b, c", "tests/a.py::test_b"]), ("none", [])]
