"""The long runs for a moment: what must hold in them holds from the beginning."""
import pytest
import run


def test_soak(tmp_path):
    run.soak(tmp_path, 24, every=4)


def test_load(tmp_path):
    run.load(tmp_path, 12, agents=40, clients=20)


def test_hostile(tmp_path):
    run.hostile(tmp_path, 2, agents=4, kinds=("query", "half"))


def test_too_few_hostile_requests(tmp_path):
    """A run beside less than what it states is not a run that holds."""
    with pytest.raises(run.NotMeasured, match=r"not measured: foreign \d+ requests/s were made, fewer than the 100000"):
        run.hostile(tmp_path, 1, agents=1, least_rate=100_000, kinds=("foreign",))
