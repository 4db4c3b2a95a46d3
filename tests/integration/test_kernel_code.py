"""Code of the kernel that comes and goes: BPF programs, loaded and unloaded while a recording runs, under the names that /proc/kallsyms had for them."""
import re

import pytest
from bpf_loader import Loader
from flamewire import Tree, wait_until

@pytest.fixture
def loader():
    one = Loader()
    yield one
    one.close()


def programs_in(tree):
    """Full name of each BPF program -> its own weight, ns."""
    found = {}
    for name, module, weight in zip(tree.names, tree.modules, tree.self_weight):
        if re.match(r"bpf_prog_[0-9a-f]{16}_", name):
            assert module == "[bpf]", (name, module)
            found[name] = found.get(name, 0) + weight
    return found


def checked(found, names, seconds):
    """Each program has the time that its loader measured, less what the system call around it takes."""
    assert set(names.values()) <= set(found), (names, found)
    for short, full in names.items():
        assert 0.7 * seconds[short] < found[full] / 1e9 < 1.15 * seconds[short], (short, found[full] / 1e9, seconds[short])


def life(loader, names, seconds):
    """One that was there before is used and goes; then others take its place, one after the other."""
    for name in ("flw_early", "flw_second", "flw_third"):
        if name not in names:
            [names[name]] = loader.command("load", name)["kallsyms"]
        seconds[name] = loader.command("spin", name, 0.5)["cpu_s"]
        loader.command("drop", name)


@pytest.mark.parametrize("scope", ["pid", "system"])
def test_programs_that_come_and_go_are_named(start, loader, scope):
    server = start.server()
    names, seconds = {}, {}
    [names["flw_early"]] = loader.command("load", "flw_early")["kallsyms"]
    assert re.fullmatch(r"bpf_prog_[0-9a-f]{16}_flw_early", names["flw_early"])
    target = ("--pid", loader.pid) if scope == "pid" else ("-a",)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, *target, "--frequency", 999)
    wait_until(lambda: server.sessions() and server.only_session()["state"] == "live", 20, "the recording")
    # Other programs than the target's own are told, too: this one loads without being sampled.
    life(loader, names, seconds)
    assert agent.stop() == 0
    session = server.wait_ended()["id"]
    pids = {} if scope == "pid" else {"pid": loader.pid}
    checked(programs_in(Tree(server.get("/api/flamegraph", session=session, min_share=0, **pids))), names, seconds)
    server.stop()
    # Where nothing of this is in /proc/kallsyms any more.
    again = start.server(name="again", data_dir=server.data_dir)
    checked(programs_in(Tree(again.get("/api/flamegraph", session=session, min_share=0, **pids))), names, seconds)
