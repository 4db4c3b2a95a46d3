"""pytest configuration: replays of the stored captures."""
import contextlib

import flamewire
import pytest
from replay import replay


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """name -> Replay. Each capture is replayed once."""
    done = {}

    def once(name):
        if name not in done:
            done[name] = replay(name, tmp_path_factory.mktemp(name))
        return done[name]

    return once


@pytest.fixture(scope="module")
def served(replayed, tmp_path_factory):
    """name -> (server with only the replayed session, that session)"""
    done = {}
    with contextlib.ExitStack() as servers:
        def once(name):
            if name not in done:
                server = flamewire.Server(tmp_path_factory.mktemp(f"server-{name}"), "--import", replayed(name).session)
                servers.enter_context(flamewire.ended(server))
                done[name] = server, server.wait_ended()
            return done[name]

        yield once
