"""Events with one sample each: page faults against getrusage around each function, and periods against perf stat."""
import json


def within(replay, event, function):
    return sum(weight for name, _, frames, _, weight in replay.rows if name == event and any(function in frame for frame in frames))


def test_page_faults_one_by_one(replayed):
    replay = replayed("faults")
    own = json.loads(replay.truth["output"][0])
    assert own["memory"]["minor"] >= 200 and own["file"]["major"] > 0, own
    for event, kinds in {"minor-faults": ["minor"], "major-faults": ["major"], "page-faults": ["minor", "major"]}.items():
        for function, counted in {"touch_memory": own["memory"], "touch_file": own["file"]}.items():
            # The function begins shortly before it reads the numbers and ends shortly after.
            assert 0 <= within(replay, event, function) - sum(counted[kind] for kind in kinds) <= 6, (event, function, own)


def test_a_sample_stands_for_its_period(replayed):
    """Every 20th fault has a sample with the weight 20. perf stat counts the same program."""
    replay = replayed("faults-by-period")
    counted = replay.truth["by_perf"]["page-faults"]
    samples = replay.samples("page-faults")
    total = within(replay, "page-faults", "")
    assert samples == replay.truth["samples"] and total == 20 * samples
    # The kernel's read-ahead, and its mapping of pages around a fault, differ between runs.
    assert abs(total - counted) <= 0.01 * counted + 2 * 20, (total, counted)
