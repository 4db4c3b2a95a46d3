"""Stored captures of this architecture, replayed without a kernel: a difference comes from how the agent handles the kernel's records.

Each replay is compared with the workload's own log, and as a whole with summary.txt, which shows every intended change of the agent's output
(make.py). The other files check replays by subject."""
import re

import pytest
from replay import HERE, SCENES

NOT_SAMPLED = "?![not sampled: short-lived threads]"

@pytest.mark.parametrize("name", SCENES)
def test_the_output_of_the_replay_is_unchanged(replayed, name):
    replay = replayed(name)
    kept = (HERE / name / "summary.txt").read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(kept) - set(replay.lines)), sorted(set(replay.lines) - set(kept))
    assert replay.lines == kept, f"{len(gone)} lines are missing and {len(new)} are new: {gone[:3]} {new[:3]}. Is this intended? Then run `python3 tests/captures/make.py --summaries {name}`."


@pytest.mark.parametrize("name", [name for name in SCENES if name != "losses"])
def test_no_sample_is_missing(replayed, name):
    """As many samples as the recording reported. Rows of unsampled time are not samples."""
    replay = replayed(name)
    assert sum(count for _, _, frames, count, _ in replay.rows if frames != [NOT_SAMPLED]) == replay.truth["samples"]


def test_lost_samples_are_counted(replayed):
    """A fault is either a sample or lost. The program counts its own faults."""
    replay = replayed("losses")
    ring_full = 1
    counted = int(next(line for line in replay.lines if line.startswith("counter page-faults: ")).split()[-1])
    own = sum(int(number) for number in re.findall(r"\d+", " ".join(replay.truth["output"])))
    assert replay.losses[ring_full] > 100
    # The counter includes faults in kernel mode, which were not sampled.
    assert counted >= replay.samples("page-faults") + replay.losses[ring_full] >= own >= 1000, (counted, own, replay.losses)
