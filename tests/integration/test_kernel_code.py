"""Kernel code that comes and goes: BPF programs, loaded and unloaded during a recording, have their names from /proc/kallsyms of that time."""
import re

import bounds
import pytest
from bpf_loader import Loader
from flamewire import Tree, wait_until

IN_PROGRAM = bounds.Check("samples of a thread that are in the BPF program that it runs", times=6)


@pytest.fixture
def loader():
    one = Loader()
    yield one
    one.close()


def samples_in_programs(server, session, runs):
    """Thread -> (all its samples, full name of each BPF program -> samples in it, including interrupts and its callees)."""
    answers = {}
    for run in runs.values():
        tree = Tree(server.get("/api/flamegraph", session=session, min_share=0, tid=run["tid"]))
        found = {}
        for name, module, samples in zip(tree.names, tree.modules, tree.samples):
            if re.match(r"bpf_prog_[0-9a-f]{16}_", name):
                assert module == "[bpf]", (name, module)
                found[name] = found.get(name, 0) + samples
        answers[run["tid"]] = (tree.answer["total"]["samples"], found)
    return answers


def life(loader, names, seconds):
    """Runs and unloads a program that was loaded before the recording, then loads, runs and unloads others. Returns name -> the loader's measurements."""
    runs = {}
    for name in ("flw_early", "flw_second", "flw_third"):
        if name not in names:
            [names[name]] = loader.command("load", name)["kallsyms"]
        runs[name] = loader.command("spin", name, seconds)
        loader.command("drop", name)
    return runs


@pytest.mark.recording
# With other load, a busy machine has too many samples at 999 Hz.
@pytest.mark.parametrize("scope, frequency, seconds", [("pid", 999, 0.5), ("system", 99, 3)])
def test_programs_that_come_and_go_are_named(start, loader, scope, frequency, seconds):
    server = start.server()
    names = {}
    [names["flw_early"]] = loader.command("load", "flw_early")["kallsyms"]
    assert re.fullmatch(r"bpf_prog_[0-9a-f]{16}_flw_early", names["flw_early"])
    target = ("--pid", loader.pid) if scope == "pid" else ("-a",)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, *target, "--frequency", frequency)
    wait_until(lambda: server.sessions() and server.only_session()["state"] == "live", 20, "the recording")
    # Programs loaded by other processes are reported too: in this case, the loader is not sampled while it loads.
    runs = life(loader, names, seconds)
    assert agent.stop() == 0
    session = server.wait_ended()["id"]
    found = samples_in_programs(server, session, runs)
    for name, run in runs.items():
        samples, programs = found[run["tid"]]
        assert list(programs) == [names[name]]
        # The system call takes time around the program: at least none, and about as much as around an empty program.
        IN_PROGRAM.share(programs[names[name]], samples, 1 - run["overhead"], bias=run["overhead"], detail=name)
    server.stop()
    # At this point, /proc/kallsyms has none of these names.
    again = start.server(name="again", data_dir=server.data_dir)
    assert samples_in_programs(again, session, runs) == found
