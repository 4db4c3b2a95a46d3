"""Kept captures of this kind of machine, replayed: no kernel takes part, so what changes is what we make of its records.

Each replay is compared with the workload's own log, and as a whole with summary.txt, which shows every intended change of what the agent sends
(make.py). The other files check replays by subject."""
import re

import pytest
from replay import HERE, SCENES

NOT_SAMPLED = "?![not sampled: short-lived threads]"

@pytest.mark.parametrize("name", SCENES)
def test_the_replay_sends_what_it_always_sent(replayed, name):
    replay = replayed(name)
    kept = (HERE / name / "summary.txt").read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(kept) - set(replay.lines)), sorted(set(replay.lines) - set(kept))
    assert replay.lines == kept, f"{len(gone)} lines are gone and {len(new)} are new: {gone[:3]} {new[:3]}. Is this intended? Then run `python3 tests/captures/make.py --summaries {name}`."


@pytest.mark.parametrize("name", [name for name in SCENES if name != "losses"])
def test_every_sample_is_there(replayed, name):
    """As many as the recording said that it read. Rows of what was counted and not sampled are no samples."""
    replay = replayed(name)
    assert sum(count for _, _, frames, count, _ in replay.rows if frames != [NOT_SAMPLED]) == replay.truth["samples"]


def test_what_is_lost_is_counted(replayed):
    """A fault is a sample, or it is lost: the program counts its own."""
    replay = replayed("losses")
    ring_full = 1
    counted = int(next(line for line in replay.lines if line.startswith("counter page-faults: ")).split()[-1])
    own = sum(int(number) for number in re.findall(r"\d+", " ".join(replay.truth["output"])))
    assert replay.losses[ring_full] > 100
    # The counter also has faults in kernel mode, of which no samples were taken.
    assert counted >= replay.samples("page-faults") + replay.losses[ring_full] >= own >= 1000, (counted, own, replay.losses)
