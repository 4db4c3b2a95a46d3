"""The long runs for a moment: what must hold in them holds from the beginning."""
import run


def test_soak(tmp_path):
    run.soak(tmp_path, 24, every=4)


def test_load(tmp_path):
    run.load(tmp_path, 12, agents=40, clients=20)


def test_hostile(tmp_path):
    run.hostile(tmp_path, 2, agents=4, kinds=("query", "half"))
