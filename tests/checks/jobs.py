"""A job is one run of a tool over some files. Jobs run in parallel. Jobs that passed with equal inputs are skipped."""
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess
import threading
import time
from typing import Callable

from cache import Cache
from files import ROOT


@dataclasses.dataclass
class Outcome:
    ok: bool
    output: str = ""


@dataclasses.dataclass
class Job:
    check: str                      # the row of the summary
    files: list[str]
    run: Callable[[], Outcome]
    keys: list[str] = dataclasses.field(default_factory=list)  # cached when the job passes
    weight: int = 0                 # heavier jobs start first


@dataclasses.dataclass
class Row:
    files: int = 0
    cached: int = 0
    failed: int = 0
    seconds: float = 0


def command(words: list[str], cwd: pathlib.Path = ROOT, expected_output: bool = True) -> Outcome:
    """expected_output=False: the tool exits with 0 even if it prints findings."""
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return Outcome(done.returncode == 0 and (expected_output or not done.stdout.strip()), done.stdout)


def in_turn(runs: list[Callable[[], Outcome]]) -> Outcome:
    """Sequential runs over the same files, for tools that write them."""
    outcomes = [run() for run in runs]
    return Outcome(all(outcome.ok for outcome in outcomes), "".join(outcome.output for outcome in outcomes if not outcome.ok))


def run_jobs(jobs: list[Job], cache: Cache, rows: dict[str, Row]) -> bool:
    """Runs all jobs, prints the output of a failed one immediately, and counts in `rows`."""
    lock = threading.Lock()
    passed = True

    def work(job: Job) -> None:
        nonlocal passed
        started = time.monotonic()
        outcome = job.run()
        with lock:
            row = rows.setdefault(job.check, Row())
            row.files += len(job.files)
            row.seconds += time.monotonic() - started
            if outcome.ok:
                cache.add(job.keys)
            else:
                row.failed += 1
                passed = False
                print(f"--- {job.check} ---\n{outcome.output.rstrip()}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in [pool.submit(work, job) for job in sorted(jobs, key=lambda job: -job.weight)]:
            done.result()
    return passed
