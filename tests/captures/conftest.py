"""pytest: replays of kept captures."""
import pytest
from replay import replay


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """name -> Replay; each is done once."""
    done = {}

    def once(name):
        if name not in done:
            done[name] = replay(name, tmp_path_factory.mktemp(name))
        return done[name]

    return once
