"""What counts as a disturbance, and how a disturbed recording is handled."""
import json
import pathlib
import subprocess
import sys
import time

import disturbance
import pytest

STAT = "cpu  100 5 50 800 20 3 2 {} 40 0\ncpu0 50 2 25 400 10 1 1 9 20 0\nintr 1\n"


def test_steal_is_read_per_field():
    # proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice. user includes guest.
    assert disturbance.steal(STAT.format(20)) == (20, 1000)
    assert disturbance.steal("cpu  1 2 3 4 5 6 7\n") == (0, 28)  # before Linux 2.6.11


def test_waiting_for_a_cpu_is_not_lateness():
    assert disturbance.late(10.0, 10.030, 0) == pytest.approx(0.030)
    assert disturbance.late(10.0, 10.030, 28_000_000) == pytest.approx(0.002)
    assert disturbance.late(10.0, 10.001, 5_000_000) == 0


def test_reasons_begin_beyond_their_bounds():
    assert disturbance.machine_reasons(disturbance.STEAL, disturbance.LATE, 0) == []
    reasons = disturbance.machine_reasons(disturbance.STEAL + 0.001, disturbance.LATE + 0.001, 0.02)
    assert reasons == ["steal time: 2.10 % of the CPUs' time, more than 2 %", "late timers: 1.10 % of the time, more than 1 %; the latest by 20 ms"]
    assert disturbance.loss_reasons(1, 999) == [] and disturbance.loss_reasons(2, 998) == ["lost records: 2 of 1000 samples, more than 0.1 %"]
    assert disturbance.loss_reasons(1, 999_999, 0) and not disturbance.loss_reasons(0, 0, 0)


def test_busy_loops_are_not_a_disturbance():
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        with disturbance.Watch() as watch:
            time.sleep(2)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert watch.late_share < disturbance.LATE, watch


SLOW_TIMER = """
import disturbance, time
sleep, late = time.sleep, iter([0.5])
time.sleep = lambda seconds: sleep(seconds + next(late, 0))
disturbance.queued = lambda: 0
disturbance.run_timer()
"""


def test_a_timer_that_is_held_up_is_late():
    """The timer sleeps half a second too long, as if the machine had been stopped once."""
    timer = subprocess.Popen([sys.executable, "-c", SLOW_TIMER], cwd=pathlib.Path(disturbance.__file__).parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert timer.stdout.readline() == "ready\n"
    time.sleep(1)
    seen = json.loads(timer.communicate()[0])
    assert seen["late_s"] > 0.49 and seen["worst_s"] >= 0.5, seen
    reasons = disturbance.machine_reasons(0, seen["late_s"] / seen["seconds"], seen["worst_s"])
    assert [reason.split(":")[0] for reason in reasons] == ["late timers"], (reasons, seen)


@pytest.fixture
def lines(monkeypatch, tmp_path):
    path = tmp_path / "lines"
    monkeypatch.setenv(disturbance.LOG, str(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def quiet(monkeypatch):
    """Simulates a machine without stolen time and late timers."""
    monkeypatch.setattr(disturbance, "machine_reasons", lambda *_: [])


def test_the_first_undisturbed_recording_counts(quiet, lines):
    disturbed = [["lost records: 5 of 9 samples"], ["late timers"], []]
    assert disturbance.undisturbed("tests/a.py::b[c]", lambda attempt: attempt, lambda: disturbed.pop(0)) == 3
    assert [(line["attempt"], line["outcome"], line["reason"]) for line in lines()] == [
        (1, "retaken", "lost records: 5 of 9 samples"), (2, "retaken", "late timers"), (3, "measured", "")]
    assert {(line["test"], line["recording"]) for line in lines()} == {("tests/a.py", "b[c]")}


def test_a_good_result_of_a_disturbed_recording_does_not_count(quiet, lines):
    taken = []
    with pytest.raises(disturbance.NotMeasured, match="each of 4 recordings; the last one by steal time"):
        disturbance.undisturbed("t", taken.append, lambda: ["steal time"])
    assert taken == [1, 2, 3, 4] and [line["outcome"] for line in lines()] == ["retaken"] * 3 + ["not measured"]


def test_a_recording_can_report_its_own_disturbance(quiet, lines):
    def take(attempt):
        if attempt < 3:
            raise disturbance.Disturbed("perf lost records")
        return attempt

    assert disturbance.undisturbed("t", take) == 3
    assert [(line["outcome"], line["reason"]) for line in lines()] == [("retaken", "perf lost records")] * 2 + [("measured", "")]


def test_an_undisturbed_failure_fails_at_once(quiet, lines):
    taken = []

    def take(attempt):
        taken.append(attempt)
        raise AssertionError("wrong")

    with pytest.raises(AssertionError, match="wrong"):
        disturbance.undisturbed("t", take)
    assert taken == [1] and [line["outcome"] for line in lines()] == ["measured"]


def test_marked_tests_start_again(lines, tmp_path):
    """Through conftest.py: the second attempt has another folder and none of the first attempt's programs, and its comparisons count only once."""
    file = tmp_path / "test_marked.py"
    file.write_text("""
import bounds, disturbance, pathlib, pytest, time
disturbance.machine_reasons = lambda *_: []
CHECK = bounds.Check("once", times=1)
seen = []

@pytest.mark.recording
def test_one(start, tmp_path, monkeypatch):
    process = start.process("sleep", ["sleep", "60"])
    CHECK.at_most(0, 100, 0.01)
    seen.append((process, tmp_path, start.directory))
    monkeypatch.setattr(type(start), "losses", staticmethod(lambda: [(1, 1)] if len(seen) < 2 else []))

def test_two():
    (one, first, _), (two, second, directory) = seen
    assert not one.alive() and not two.alive() and second == directory == first / "attempt-2" and (second / "sleep.err").exists()

@pytest.mark.recording
def test_three():
    disturbance.machine_reasons = lambda *_: ["late timers"]
""")
    outcome = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", tmp_path, "--confcutdir", tmp_path,
                              "-p", "conftest", file], capture_output=True, text=True, cwd=tmp_path,
                             env={"PYTHONPATH": str(pathlib.Path(disturbance.__file__).parents[1]), "PATH": "/usr/bin:/bin", disturbance.LOG: str(tmp_path / "lines")})
    assert "2 passed, 1 skipped" in outcome.stdout and "not measured: the machine disturbed each of 4 recordings; the last one by late timers" in outcome.stdout, outcome
    assert [line["outcome"] for line in lines()] == ["retaken", "measured", *["retaken"] * 3, "not measured"]
