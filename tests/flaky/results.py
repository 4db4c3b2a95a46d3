"""Results of live rounds: one line of JSON per test and round, appended to a file in the build folder; and their table."""
import collections
import json
import re
import xml.etree.ElementTree


def of_junit(path, folder, **common):
    """One result per test in a file of `ctest --output-junit`. The output of each failed test is written to a file in `folder`."""
    results = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        outcome = {"run": "passed", "fail": "failed"}.get(case.get("status"), "not run")
        log = None
        if outcome != "passed":
            log = folder / f"{case.get('name')}.log"
            log.write_text(output)
        results.append({**common, "test": case.get("name"), "outcome": outcome, "seconds": round(float(case.get("time", 0)), 1),
                        "log": log and str(log), "cases": re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)})
    return results


def recordings(path):
    """The number of recordings that a round measured, repeated and could not measure, from the file of FLAMEWIRE_DISTURBED."""
    outcomes = collections.Counter(line["outcome"] for line in load(path))
    again, never = outcomes["retaken"], outcomes["not measured"]
    text = f"{outcomes['measured'] + never} recordings, {again} taken again"
    return f"{text}, {never} not measured" if never else text


def append(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(result) + "\n" for result in results)


def load(path):
    """Ignores an incomplete last line, which an interrupt can leave."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return results


def rounds(results):
    """(time, commit, load) -> results, in the order of the rounds."""
    grouped = collections.defaultdict(list)
    for result in results:
        grouped[result["time"], result["commit"], result["load"]].append(result)
    return dict(sorted(grouped.items()))


def columns(lines):
    widths = [max(len(str(line[column])) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(str(word).ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]


def table(results):
    """Failures by test, then rounds by commit, then the number of consecutive rounds without a failure."""
    if not results:
        return "No results yet."
    runs, failures, logs = collections.Counter(), collections.Counter(), {}
    for result in results:
        key = result["test"], result["load"]
        runs[key] += 1
        if result["outcome"] != "passed":
            for case in result["cases"] or [result["test"]]:
                failures[case, *key] += 1
                logs[case, *key] = f"{result['commit']} {result['log']}"
    text = []
    if failures:
        lines = [("failed", "runs", "load", "test", "last failure")]
        for (case, test, busy), number in failures.most_common():
            lines.append((number, runs[test, busy], "yes" if busy else "no", case, logs[case, test, busy]))
        text += columns(lines) + [""]
    by_commit = collections.defaultdict(lambda: [0, 0, 0, 0])
    in_a_row = {True: 0, False: 0}
    for (_, commit, busy), these in rounds(results).items():
        bad = any(result["outcome"] != "passed" for result in these)
        by_commit[commit][0 if busy else 2] += 1
        by_commit[commit][1 if busy else 3] += bad
        in_a_row[busy] = 0 if bad else in_a_row[busy] + 1
    text += columns([("commit", "rounds with load", "failed", "rounds without", "failed"), *((commit, *numbers) for commit, numbers in by_commit.items())])
    tests = len({result["test"] for result in results})
    text += ["", f"{tests} tests. Without a failure since the last one: {in_a_row[True]} rounds with load, {in_a_row[False]} without."]
    return "\n".join(text)
