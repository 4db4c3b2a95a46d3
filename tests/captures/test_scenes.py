"""Kept captures of this kind of machine, replayed: no kernel takes part, so what changes is what we make of its records.

Each replay is compared with the workload's own log or with perf, and as a whole with summary.txt, which shows every intended change of what the
agent sends (make.py). test_unwinding_scenes.py checks call stacks."""
import json
import re

import pytest
from replay import AWAY, HERE, SCENES
from switches import check_life


@pytest.mark.parametrize("name", SCENES)
def test_the_replay_sends_what_it_always_sent(replayed, name):
    replay = replayed(name)
    kept = (HERE / name / "summary.txt").read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(kept) - set(replay.lines)), sorted(set(replay.lines) - set(kept))
    assert replay.lines == kept, f"{len(gone)} lines are gone and {len(new)} are new: {gone[:3]} {new[:3]}. Is this intended? Then run `python3 tests/captures/make.py --summaries {name}`."


@pytest.mark.parametrize("name", [name for name in SCENES if name not in ("waits", "losses", "faults", "faults-by-period")])
def test_every_sample_is_there(replayed, name):
    """As many as the recording said that it read."""
    assert sum(count for event, _, _, count, _ in replayed(name).rows if event.startswith("cpu-clock")) == replayed(name).truth["samples"]


def lives(replay):
    return {life["thread"]: life for life in map(json.loads, (line for line in replay.truth["output"] if line.startswith("{")))}


@pytest.mark.parametrize("thread, function", [("sleeper", "sleep_a_while"), ("pipe-reader", "read_from_pipe"), ("pipe-writer", "sleep_a_while"),
                                              ("mutex-waiter", "wait_for_mutex")])
def test_waits_are_as_long_as_measured_with_their_stacks(replayed, thread, function):
    replay = replayed("waits")
    measured = lives(replay)[thread]["waited_ns"]
    assert abs(replay.weight(thread, function) - measured) <= 0.02 * measured, (replay.weight(thread, function), measured)


def test_the_states_of_a_thread_add_up_to_its_life_by_perf(replayed):
    replay = replayed("waits")
    for life in lives(replay).values():
        tid = str(life["tid"])
        life["span_by_perf_ns"] = replay.truth["span_ns"][tid]
        run, runnable, blocked, io_wait, preempted, slept, io_waits = replay.threads[tid]
        apart = check_life(run + runnable + blocked + io_wait, life)
        assert abs(run - replay.truth["run_ns"][tid]) <= apart, (life, run)
        away = sum(replay.weight(life["thread"], "", [kind]) for kind in AWAY)
        check_life(replay.truth["run_ns"][tid] + away, life)
        assert abs(slept + io_waits - life["slept"]) <= 2 and abs(preempted - life["preempted"]) <= 10, (life, slept, io_waits, preempted)


def test_kinds_of_waits_are_told_apart(replayed):
    replay = replayed("waits")
    own = lives(replay)
    for thread in ("burner-1", "burner-2"):
        assert replay.weight(thread, "", ["run-queue"]) >= 0.35 * own[thread]["wall_ns"]
        assert replay.weight(thread, "burn(", ["off-cpu", "io-wait"]) == 0
    for thread in ("sleeper", "pipe-reader", "mutex-waiter"):
        assert replay.weight(thread, "", ["io-wait"]) == 0
    assert own["disk-reader"]["waited_ns"] >= replay.weight("disk-reader", "read_from_disk", ["io-wait"]) > 0




def test_what_is_lost_is_counted(replayed):
    """A fault is a sample, or it is lost: the program counts its own."""
    replay = replayed("losses")
    ring_full = 1
    counted = int(next(line for line in replay.lines if line.startswith("counter page-faults: ")).split()[-1])
    own = sum(int(number) for number in re.findall(r"\d+", " ".join(replay.truth["output"])))
    assert replay.losses[ring_full] > 100
    # The counter also has faults in kernel mode, of which no samples were taken.
    assert counted >= replay.samples("page-faults") + replay.losses[ring_full] >= own >= 1000, (counted, own, replay.losses)
