"""`./dev flaky [N] [--load]`: runs the tests with the label `live` N times, alone or next to two busy loops, and prints the number of failures per test."""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "flaky"
RESULTS = FOLDER / "results.jsonl"
LOOPS = 2


@contextlib.contextmanager
def busy_loops(count):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(count)]
    try:
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def end_group(leader, patience=20):
    """Ends a process and its children. It sends SIGINT first, so that tests end their programs."""
    for number, seconds in ((signal.SIGINT, patience), (signal.SIGKILL, 5)):
        end = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
            while time.monotonic() < end:
                leader.poll()
                os.killpg(leader.pid, 0)
                time.sleep(0.1)
    leader.wait()


def run_round(folder, selection):
    """Returns the path of the round's JUnit file. Ctrl-C also ends the tests of the round."""
    folder.mkdir(parents=True)
    junit = folder / "junit.xml"
    command = ["ctest", "--preset", "release", "-L", "^live$", "--output-junit", str(junit), "--test-output-size-passed", "100000", "--test-output-size-failed", "1000000", *selection]
    with open(folder / "ctest.log", "w", encoding="utf-8") as log:
        tests = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                 env={**os.environ, "FLAMEWIRE_DISTURBED": str(folder / "disturbed.jsonl")})
        try:
            tests.wait()
        finally:
            end_group(tests)
    if not junit.exists():
        raise SystemExit(f"flaky: ctest wrote no results: see {folder / 'ctest.log'}")
    return junit


def main():
    parser = argparse.ArgumentParser(prog="./dev flaky", description="Runs the live tests repeatedly and prints failures by test.")
    parser.add_argument("rounds", nargs="?", type=int, default=1, metavar="N", help="how often (1)")
    parser.add_argument("--load", action="store_true", help=f"beside {LOOPS} busy loops")
    parser.add_argument("--table", action="store_true", help="print the results of all runs so far and run nothing")
    parser.add_argument("-R", metavar="NAME", help="only tests whose name matches, as ctest -R")
    parser.add_argument("-E", metavar="NAME", help="not those whose name matches, as ctest -E")
    options = parser.parse_args()
    selection = [word for name in "RE" if (value := getattr(options, name)) for word in (f"-{name}", value)]
    if options.table:
        print(results.table(results.load(RESULTS)))
        return 0
    label, begun, these = commit(), time.strftime("%Y-%m-%dT%H-%M-%S"), []
    print(f"{options.rounds} rounds of {label}{f' beside {LOOPS} busy loops' if options.load else ''}; logs in {FOLDER / begun}", flush=True)
    try:
        with busy_loops(LOOPS if options.load else 0):
            for number in range(1, options.rounds + 1):
                folder, at = FOLDER / begun / f"round-{number}", time.monotonic()
                junit = run_round(folder, selection)
                new = results.of_junit(junit, folder, commit=label, time=f"{begun}.{number:03}", load=options.load)
                if not new:
                    raise SystemExit(f"flaky: no live test is selected by {' '.join(selection)}")
                results.append(RESULTS, new)
                these += new
                failed = [result["test"] for result in new if result["outcome"] != "passed"]
                print(f"round {number}: {len(new)} tests, {time.monotonic() - at:.0f} s, {results.recordings(folder / 'disturbed.jsonl')}, "
                      f"{', '.join(failed) + ' failed' if failed else 'no failure'}", flush=True)
    except KeyboardInterrupt:
        print(f"\ninterrupted; the current round does not count\n\n{results.table(these)}", flush=True)
        return 130
    print("\n" + results.table(these))
    return 1 if any(result["outcome"] != "passed" for result in these) else 0


if __name__ == "__main__":
    sys.exit(main())
