"""Events that are counted one by one: page faults against getrusage around each, and periods against perf stat."""
import json


def within(replay, event, function):
    return sum(weight for name, _, frames, _, weight in replay.rows if name == event and any(function in frame for frame in frames))


def test_page_faults_one_by_one(replayed):
    replay = replayed("faults")
    own = json.loads(replay.truth["output"][0])
    assert own["memory"]["minor"] >= 200 and own["file"]["major"] > 0, own
    for event, kinds in {"minor-faults": ["minor"], "major-faults": ["major"], "page-faults": ["minor", "major"]}.items():
        for function, counted in {"touch_memory": own["memory"], "touch_file": own["file"]}.items():
            # The function begins a little before it asks for the numbers and ends a little after that.
            assert 0 <= within(replay, event, function) - sum(counted[kind] for kind in kinds) <= 6, (event, function, own)


def test_a_period_is_a_period(replayed):
    """Every 20th fault is a sample that stands for 20; perf stat counts the same program."""
    replay = replayed("faults-by-period")
    counted = replay.truth["by_perf"]["page-faults"]
    samples = replay.samples("page-faults")
    total = within(replay, "page-faults", "")
    assert samples == replay.truth["samples"] and total == 20 * samples
    # What the kernel reads ahead of a file, or maps around a fault, is not the same twice.
    assert abs(total - counted) <= 0.01 * counted + 2 * 20, (total, counted)
