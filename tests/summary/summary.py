#!/usr/bin/python3
"""Prints the times of a run of ./dev test and what it skipped: summary.py FOLDER

FOLDER has `phases` (lines "seconds since the epoch, tab, name of the phase that begins"), the JUnit files of CTest (*.xml) and the
outcomes of recordings (disturbed.jsonl, from tests/harness). Each file may be missing. The exit code is 1 if more than a tenth of the
recordings could not be measured, because the tests then show too little."""
import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

# The tier of a test is the first word of its name. The table has this order; other tiers follow.
TIERS = ("fuzz", "unit", "web", "integration", "soak", "oracle", "cross", "boards", "e2e")
SLOWEST = 10
# One line per failed test of pytest and of node:test.
FAILED_CASE = re.compile(r"^(?:FAILED|ERROR) (\S.*)$|^✖ (.+) \([\d.]+ms\)$|^not ok \d+ - (.+)$", re.M)
SKIPPED_CASES = re.compile(r"^SKIPPED \[(\d+)\] (\S+?)(?::\d+)?: (.+)$", re.M)  # pytest -rs
SKIPPED_CASE = re.compile(r"^﹣ (.+) \([\d.]+ms\) # (?:SKIP ?)?(.*)$|^ok \d+ - (.+) # SKIP ?(.*)$", re.M)  # node:test
NOT_TESTED = re.compile(r"^.*\bNOT tested\b.*$", re.M)  # everything else

Test = collections.namedtuple("Test", "name tier seconds status message output")
Skip = collections.namedtuple("Skip", "test cases reason")


def read_phases(path):
    """[(name, seconds)]. The last line ends the last phase."""
    marks = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    return [(name, float(end) - float(begin)) for (begin, name), (end, _) in zip(marks, marks[1:])]


def read_tests(path):
    """The tests of one JUnit file."""
    tests = []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name, output = case.get("name"), case.findtext("system-out") or ""
        status, message = "passed", ""
        skipped = case.find("skipped")
        if case.get("status") == "disabled":
            status = "skipped"
        elif skipped is not None:
            message = skipped.get("message", "")
            # CTest also writes <skipped> for a test that could not run, but counts it as failed.
            status = "skipped" if message.startswith("SKIP_") else "failed"
        elif case.find("failure") is not None:
            status = "failed"
        tests.append(Test(name, name.split("_")[0], float(case.get("time", 0)), status, message, output))
    return tests


def failed_cases(output):
    return list(dict.fromkeys(next(filter(None, match.groups())) for match in FAILED_CASE.finditer(output)))


def skips_of(test):
    """The skipped parts of a test, with the printed reasons."""
    if test.status == "skipped":
        lines = [line.strip() for line in test.output.splitlines() if line.strip()]
        return [Skip(test.name, 0, lines[-1] if lines else test.message)]
    reasons = collections.Counter()
    for count, _, reason in SKIPPED_CASES.findall(test.output):
        reasons[reason] += int(count)
    for _, spec_reason, _, tap_reason in SKIPPED_CASE.findall(test.output):
        reasons[spec_reason or tap_reason or "no reason given"] += 1
    if not reasons:
        reasons = collections.Counter(line.strip() for line in NOT_TESTED.findall(test.output))
    return [Skip(test.name, count, reason) for reason, count in reasons.items()]


def read_recordings(path):
    """One object per attempt: test, recording, reason, attempt, outcome (measured, retaken, not measured)."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def not_measured(recordings):
    """(number of recordings that could not be measured, number of all recordings)"""
    outcomes = collections.Counter(one.get("outcome", "retaken") for one in recordings)
    return outcomes["not measured"], outcomes["not measured"] + outcomes["measured"]


def cut(text, width=150):
    return text if len(text) <= width else text[: width - 1] + "…"


def sections(phases, tests, recordings):
    """[(title, lines)] of the report. Sections without lines are omitted."""
    report = []
    failed = [test for test in tests if test.status == "failed"]
    lines = []
    for test in failed:
        lines.append(f"{test.name:<32} {test.seconds:7.1f} s  {cut(test.message)}".rstrip())
        lines += [f"    {cut(case)}" for case in failed_cases(test.output)]
    report.append((f"Failed: {len(failed)} of {len(tests)} tests", lines))

    report.append(("Elapsed time by phase", [f"{name:<32} {seconds:7.1f} s" for name, seconds in phases]
                   + ([f"{'total':<32} {sum(seconds for _, seconds in phases):7.1f} s"] if phases else [])))

    tiers = collections.defaultdict(list)
    for test in tests:
        tiers[test.tier].append(test)
    order = [tier for tier in TIERS if tier in tiers] + sorted(set(tiers) - set(TIERS))
    report.append(("Time of the tests by tier (tests that run at the same time add up)",
                   [f"{tier:<32} {sum(test.seconds for test in tiers[tier]):7.1f} s  {len(tiers[tier])} tests" for tier in order]))

    slowest = sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]
    report.append((f"The {len(slowest)} slowest tests", [f"{test.name:<32} {test.seconds:7.1f} s" for test in slowest]))

    skips = [skip for test in tests for skip in skips_of(test)]
    report.append(("Skipped", [f"{skip.test:<32} {cut(skip.reason)}" + (f" ({skip.cases} cases)" if skip.cases > 1 else "") for skip in skips]))

    never, number = not_measured(recordings)
    report.append((f"Disturbed recordings ({never} of {number} not measured)",
                   [f"{cut(one['test'], 80):<32} {one['recording']}, attempt {one['attempt']}: {cut(one['reason'])}" for one in recordings if one["reason"]]))
    return [(title, lines) for title, lines in report if lines]


def main(folder):
    folder = pathlib.Path(folder)
    tests = [test for path in sorted(folder.glob("*.xml")) for test in read_tests(path)]
    recordings = read_recordings(folder / "disturbed.jsonl")
    for title, lines in sections(read_phases(folder / "phases"), tests, recordings):
        print(f"\n{title}")
        for line in lines:
            print(f"  {line}")
    never, number = not_measured(recordings)
    return 1 if never > 0.1 * number else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
