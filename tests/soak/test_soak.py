"""Short versions of the long runs: their conditions hold from the beginning."""
import pytest
import run


def test_soak(tmp_path):
    run.soak(tmp_path, 24, every=4)


def test_load(tmp_path):
    run.load(tmp_path, 12, agents=40, clients=20)


def test_hostile(tmp_path):
    run.hostile(tmp_path, 2, agents=4, kinds=("query", "half"))


def test_too_few_hostile_requests(tmp_path):
    """A run with less than the stated load does not count."""
    with pytest.raises(run.NotMeasured, match=r"not measured: foreign \d+ requests/s were made, but the limits need at least 100000"):
        run.hostile(tmp_path, 1, agents=1, least_rate=100_000, kinds=("foreign",))
