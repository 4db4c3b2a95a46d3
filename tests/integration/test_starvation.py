"""One client cannot delay others, neither with many expensive requests nor by not reading its answers."""
import contextlib
import random
import re
import select
import socket
import tarfile
import urllib.parse

import pytest
from flamewire import Tree, cpu_seconds, wait_until

# Fewer queries than one host may have waiting, and more than the server may have connections.
CROWD, MORE = 90, 600


@pytest.fixture(scope="module")
def stacks(tmp_path_factory):
    """Folded stacks for which an answer takes 0.1 s of CPU time or more."""
    generator = random.Random(11)
    path = tmp_path_factory.mktemp("stacks") / "many.folded"
    with path.open("w", encoding="ascii") as file:
        for number in range(40_000):
            file.write(";".join(f"f{generator.randrange(3000)}" for _ in range(20)) + f" {number % 7 + 1}\n")
    return path


def imported(server):
    session = wait_until(lambda: server.sessions() and server.sessions()[0]["state"] == "ended" and server.sessions()[0], 60, "the import")["id"]
    # Loads the session, so that later answers have equal costs.
    whole_answer(server, session)
    return session


def ask(server, source, path, **parameters):
    """Connects from this address of the machine and sends a request."""
    one = socket.create_connection(("127.0.0.1", server.http_port), timeout=120, source_address=(source, 0))
    one.sendall(f"GET {path}?{urllib.parse.urlencode(parameters)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return one


def whole_answer(server, session):
    """Not decoded, because decoding would take longer than everything else."""
    one = ask(server, "127.0.0.3", "/api/flamegraph", session=session, min_share=0)
    assert one.recv(12) == b"HTTP/1.1 200"
    one.close()


def answered(crowd):
    return len(select.select(crowd, [], [], 0)[0])


def test_one_host_with_many_queries(start, stacks):
    """Another host's query gets its turn, and cheap requests do not wait."""
    server = start.server("--import", stacks)
    session = imported(server)
    crowd = [ask(server, "127.0.0.2", "/api/flamegraph", session=session, min_share=0) for _ in range(CROWD)]
    wait_until(lambda: answered(crowd) >= 1, 60, "the first answer")
    assert server.get("/api/status")["status"] == "ok" and len(server.sessions()) == 1
    assert answered(crowd) < CROWD / 2
    whole_answer(server, session)
    # In the order of arrival, it would have been answered last.
    assert answered(crowd) < 3 / 4 * CROWD
    for one in crowd:
        one.close()


@pytest.mark.parametrize("leaves", [False, True])
def test_more_queries_than_connections(start, stacks, leaves):
    """Neither waiting queries nor those of disconnected clients hold a connection that another host needs."""
    server = start.server("--import", stacks)
    session = imported(server)
    crowd = []
    for _ in range(MORE):
        # The server may close the connection at once to make room.
        with contextlib.suppress(ConnectionError):
            crowd.append(ask(server, "127.0.0.2", "/api/flamegraph", session=session, min_share=0))
            if leaves:
                crowd.pop().close()
    assert server.get("/api/status")["status"] == "ok"
    whole_answer(server, session)
    refused = re.search(rb'limit="http_waiting"} (\d+)$', server.get("/metrics"), re.M)
    assert leaves or int(refused[1]) > 0
    for one in crowd:
        one.close()


def test_queries_whose_sender_has_left(start, stacks):
    """Queries of disconnected clients are skipped."""
    server = start.server("--import", stacks)
    session = imported(server)
    # A single answer takes little more than one clock tick, so measure 20.
    before = cpu_seconds(server.pid)
    for _ in range(20):
        whole_answer(server, session)
    cost = (cpu_seconds(server.pid) - before) / 20
    before = cpu_seconds(server.pid)
    crowd = [ask(server, "127.0.0.2", "/api/flamegraph", session=session, min_share=0) for _ in range(CROWD)]
    for one in crowd:
        one.close()
    whole_answer(server, session)
    assert cpu_seconds(server.pid) - before < CROWD / 4 * cost


def test_a_long_import(start, tmp_path):
    """An import delays nothing else, neither opening a saved session nor merging saved sessions."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.folded").write_text(f"main;{name} 3\n", encoding="ascii")
    server = start.server("--import", tmp_path / "one.folded", "--import", tmp_path / "two.folded")
    wait_until(lambda: [one["state"] for one in server.get("/api/imports")["imports"]] == ["done"] * 2, 60, "the imports")
    one, two = (session["id"] for session in server.sessions())
    server.stop()

    # A sparse archive of terabytes with one file that is not part of a session. Reading it takes longer than any test.
    other = tarfile.TarInfo("other")
    other.size = 1 << 42
    long = tmp_path / "long.flamewire"
    with long.open("wb") as file:
        file.write(other.tobuf(tarfile.GNU_FORMAT))
        file.truncate(other.size)
    server = start.server("--import", long, data_dir=server.data_dir, name="again")

    def running():
        import_ = server.get("/api/imports/1")
        return import_["total_bytes"] > 0 and import_["state"] == "running"

    wait_until(running, 60, "the import to run")
    assert Tree(server.get("/api/flamegraph", session=one)).weight == 3
    assert server.get(f"/api/export/session/{two}", format="flamewire")
    merged = server.post("/api/sessions/merge", {"sessions": [one, two], "name": "both"})["session"]
    assert Tree(server.get("/api/flamegraph", session=merged)).weight == 6
    assert running()
    # Stopping the server cancels the import.
    assert server.stop() == 0
