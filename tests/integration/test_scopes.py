"""The whole system, CPUs, control groups and containers as targets: the samples of each, changes from one to another, and the messages of refusals."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from control_groups import cgroup, enter, remove
from flamewire import BIN, ROOT, TESTS_BIN, children, cpu_seconds, open_files, wait_until
from sysctls import sysctl
from test_system_wide import connected, family, processes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: events of whole CPUs and control groups need root; CI runs as root")


def recorded(start, tmp_path, *options, name="recorded", seconds=2):
    """Records into a file."""
    path = tmp_path / f"{name}.flw"
    agent = start.agent("--output", path, "--duration", seconds, "--frequency", 999, "--events", "cpu-clock", "--verbose", *options, name=name)
    assert agent.wait(60) == 0, agent.err
    assert "DIFFER" not in agent.err and "samples read" in agent.err, agent.err
    return agent, path


def test_kernel_threads_and_the_words_for_the_target(start, tmp_path):
    # Writing back the page cache keeps kernel threads busy. A synchronous write makes sure that they run.
    agent, path = recorded(start, tmp_path, "-a", seconds=1)
    assert "profiling system-wide: cpu-clock" in agent.err
    shown = subprocess.run([BIN / "flamewire", "report", path], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "system-wide" in shown


def test_one_cpu(start, tmp_path):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("NOT tested: two CPUs are needed")
    here = family(start, "here", 1, 0, preexec_fn=lambda: os.sched_setaffinity(0, {cpus[-1]}))
    there = family(start, "there", 1, 0, preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--cpus", cpus[-1], "--frequency", 999, "--events", "cpu-clock")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 30, "samples")
    # The family's processes have a low priority and may have to wait for others.
    wait_until(lambda: all(processes(server)[pid][0] > 50 for pid in children(here.pid)), 60, "samples of the processes on that CPU")
    detail = server.only_session()
    assert detail["target"] == f"system-wide on CPU {cpus[-1]}" and detail["pids"] == []
    assert not set(children(there.pid)) & set(processes(server))

    # CPUs that do not exist, and words that are not numbers.
    assert "CPU 4000 is not online" in server_refusal(server, cpus="0,4000")
    assert server_refusal(server, cpus="many") == "cpus must be a list of CPUs such as 0-3,6, not 'many'"


def newest_pid():
    return int(pathlib.Path("/proc/loadavg").read_text().split()[-1])


def server_refusal(server, **args):
    answer = server.command("configure", **args)
    assert not answer["ok"], answer
    return answer["error"]


def test_control_group_and_container(start, tmp_path):
    digits = "fe" * 32
    with cgroup(f"docker-{digits}.scope") as folder:
        inside, outside = family(start, "inside", 0, 20), family(start, "outside", 1, 0)
        enter(folder, inside.pid)
        server = start.server()
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--verbose")
        connected(server)
        before = time.monotonic()
        started = server.command("start", cgroups=[folder.name], frequency=999, events=["cpu-clock"])
        # A process that started before the kernel reported new processes, and ended at once, may have no name.
        early = range(inside.pid, newest_pid() + 1)
        assert started["ok"] and started["cgroups"] == [str(folder)] and not started["all"], started
        assert started["target"] == f"cgroup {folder.name}"
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 60, "samples")
        elapsed = time.monotonic() - before
        found = processes(server)
        members = {pid for pid, (_, names) in found.items() if pid == inside.pid or f"y{pid}" in names or names & {"python3", pathlib.Path(sys.executable).name}
                   or (pid in early and names == {"[unknown]"})}
        assert set(found) == members and outside.pid not in found, {pid: found[pid] for pid in set(found) - members}
        assert len(found) > 5
        # Short-lived children belong to the group because the kernel reports their group.
        detail = server.only_session()
        assert detail["samples"] <= 1.1 * 999 * elapsed * os.cpu_count()

        # Select the same group by a prefix of its id, in the same session. Then select the whole system, which includes the other process.
        assert server.command("configure", pid=outside.pid)["target"].startswith(f"pid {outside.pid}")
        by_id = server.command("configure", container="fefefe")
        assert by_id["target"] == "container fefefefefefe" and by_id["cgroups"] == [str(folder)], by_id
        everything = server.command("configure", all=True)
        assert everything["ok"] and everything["recording"] == started["recording"] and everything["target"] == "system-wide"
        others = set(children(outside.pid))
        wait_until(lambda: others <= set(processes(server)), 30, "the process outside")
        assert f"o{min(others)}" in processes(server)[min(others)][1]

        # Back to the group: when it ends, the recording ends.
        assert server.command("configure", cgroups=[str(folder)])["ok"]
        inside.stop(9)
        remove(folder)
        server.wait_ended()
        assert server.only_session()["end_reason"] == "target exited"
        line = wait_until(lambda: next((line for line in agent.err.splitlines() if "samples read" in line), None), 30, "the account")
        assert "DIFFER" not in line

        gone = server.command("start", cgroup=str(folder))
        assert not gone["ok"] and "there is no control group" in gone["error"], gone
        none = server.command("start", container="abcdef")
        assert not none["ok"] and "no container 'abcdef'" in none["error"], none


def test_from_a_process_to_the_whole_system_and_back(start):
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--verbose")
    connected(server)
    first, second = start.workload("shares", 600), start.workload("demo", "600") if (TESTS_BIN / "demo-workload").exists() else start.workload("shares", 599)
    started = server.command("start", pid=first.pid, frequency=199, events=["cpu-clock"])
    assert started["ok"] and not started["all"], started
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 20, 30, "samples")
    assert set(processes(server)) == {first.pid}
    wide = server.command("configure", all=True, cpus="0")
    assert wide["ok"] and wide["all"] and wide["cpus"] == [0] and wide["recording"] == started["recording"] and wide["pids"] == [], wide
    assert wide["target"] == "system-wide on CPU 0"
    wide = server.command("configure", all=True)
    assert wide["ok"] and wide["cpus"] == [] and wide["target"] == "system-wide"
    wait_until(lambda: processes(server)[second.pid][0] > 20, 30, "samples of the other")
    # Counters by thread need processes. The whole system has totals, and counters by CPU.
    refused = server.command("counters", by="thread")
    assert not refused["ok"] and "need processes" in refused["error"], refused
    assert server.command("counters", by="cpu")["ok"]
    assert server.command("pause")["ok"] and server.command("resume")["ok"]
    back = server.command("configure", pid=second.pid)
    assert back["ok"] and not back["all"] and back["pids"] == [second.pid], back
    for args in ({"all": True, "pid": 1}, {"all": True, "cgroups": ["x"]}, {"cgroups": "x"}, {"all": 1}):
        assert server_refusal(server, **args)
    assert server.command("stop")["ok"]
    server.wait_ended()
    marks = [mark["name"] for mark in server.get("/api/timeline", slices=200)["marks"] if mark["kind"] == "change"]
    assert any("became system-wide" in mark for mark in marks) and any(f"became pid {second.pid}" in mark for mark in marks), marks
    line = wait_until(lambda: next((line for line in agent.err.splitlines() if "samples read" in line), None), 30, "the account")
    assert "DIFFER" not in line


def test_an_agent_with_allowed_targets_does_not_record_all(start):
    server = start.server()
    program = start.workload("shares", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--allow-pid", program.pid)
    connected(server)
    for args in ({"all": True}, {"cpus": [0]}, {"cgroups": ["/"]}, {"container": "a"}):
        refused = server.command("start", **args)
        assert not refused["ok"] and "--allow-pid" in refused["error"], refused
    assert server.command("start", pid=program.pid)["ok"]


def test_without_the_privilege(start, tmp_path):
    """The message is one sentence with the remedies, and the remedy works."""
    with tempfile.TemporaryDirectory(prefix="flamewire-agent-") as place:
        os.chmod(place, 0o777)
        copy = pathlib.Path(place) / "flamewire-agent"
        shutil.copy(BIN / "flamewire-agent", copy)
        copy.chmod(0o755)
        other = start.workload("shares", 600)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "--events", "cpu-clock", "--stat", "none", "--frequency", "999", "--duration", "1"]

        def run(name, *options):
            return subprocess.run([*user, "--output", pathlib.Path(place) / name, *options], capture_output=True, text=True, timeout=60, cwd="/")

        with sysctl(perf_event_paranoid=2):
            refused = run("none.flw", "-a")
            assert refused.returncode == 1
            sentence = refused.stderr.splitlines()[-1]
            assert sentence.startswith("flamewire-agent: this user may not sample the whole system: kernel.perf_event_paranoid is 2"), sentence
            assert "setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent" in sentence and "sysctl -w kernel.perf_event_paranoid=0" in sentence
            assert not (pathlib.Path(place) / "none.flw").exists()
            process = run("none.flw", "--pid", str(other.pid))
            assert process.returncode == 1 and "this user may not profile process" in process.stderr, process.stderr
        with sysctl(perf_event_paranoid=0):
            works = run("all.flw", "-a")
            assert works.returncode == 0 and "profiling system-wide" in works.stderr, works.stderr
            # For another user's process, its own events are refused, but events of the CPUs are allowed.
            used = cpu_seconds(other.pid)
            process = run("process.flw", "--pid", str(other.pid))
            used = cpu_seconds(other.pid) - used
            assert process.returncode == 0, process.stderr
            samples = int(re.search(r"(\d+) samples", process.stderr)[1])
            assert 0 < samples <= 1.1 * 999 * (used + 0.02), (samples, used)


CROWD = """
import sys, threading
threading.stack_size(64 * 1024)
idle = threading.Event()
for number in range(int(sys.argv[1])):
    threading.Thread(target=idle.wait, daemon=True).start()
print(f"ready {threading.get_native_id()}", flush=True)
while True:
    sum(range(1000))
"""


def test_more_threads_than_descriptors(start):
    """A process with few threads has one event per thread and CPU. One with many is sampled by events of whole CPUs, and no other process is shown.
    This test uses frame pointers, because otherwise the stacks of all processes would be copied."""
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--stat", "none")
    connected(server)
    burning = start.workload("shares", 600)
    events = {}
    for threads in (40, 1500):
        crowd = start.process(f"crowd-{threads}", [sys.executable, "-c", CROWD, str(threads)])
        wait_until(lambda crowd=crowd: "ready" in crowd.out, 60, "the threads")
        assert server.command("start", pid=crowd.pid, frequency=499, events=["cpu-clock"], unwind="fp")["ok"]
        session = wait_until(lambda: next((one["id"] for one in server.sessions() if one["state"] != "ended"), None), 30, "the session")
        before = cpu_seconds(crowd.pid)
        seen = server.session(session)["samples"]
        wait_until(lambda session=session, seen=seen: server.session(session)["samples"] > seen + 100, 60, "samples")
        used, taken = cpu_seconds(crowd.pid) - before, server.session(session)["samples"] - seen
        # The samples match the CPU time, allowing for samples in flight.
        assert taken <= 1.2 * 499 * (used + 1), (taken, used)
        events[threads] = sum("perf_event" in path for path in open_files(agent.pid))
        shown = {(thread["pid"], thread["tid"]) for thread in server.get("/api/thread-summary", session=session)["threads"] if thread["samples"]}
        busy = int(crowd.out.split()[1])
        assert (crowd.pid, busy) in shown and {pid for pid, _ in shown} == {crowd.pid}, shown
        # A child process belongs to the target in both cases.
        assert server.command("stop")["ok"]
        server.wait_ended(session)
        crowd.stop(9)
    assert burning.alive()
    cpus = os.cpu_count()
    assert events[40] >= 41 * cpus, events
    assert events[1500] <= 8 * cpus, events


def test_refused_for_processes_or_for_cpus_alone(start, tmp_path):
    """A sandbox can deny events of CPUs: a process can still be sampled. The other refusals are reported in one sentence."""
    program = start.workload("shares", 600)
    without = ROOT / "tests" / "harness" / "without_perf_events.py"

    def run(refused, *target):
        path = tmp_path / f"{refused}.flw"
        path.unlink(missing_ok=True)
        done = subprocess.run([sys.executable, without, "--only", refused, BIN / "flamewire-agent", "--output", path, "--events", "cpu-clock", "--stat", "none", "--frequency", "499", "--duration", "1", *target],
                              capture_output=True, text=True, timeout=60)
        assert path.exists() == (done.returncode == 0), done.stderr
        return done.returncode, done.stderr.splitlines()[-1]

    code, output = run("cpus", "-a")
    assert code == 1 and output.startswith("flamewire-agent: this user may not sample the whole system") and "setcap" in output, output
    code, output = run("cpus", "--pid", str(program.pid))
    assert code == 0 and int(re.search(r"(\d+) samples", output)[1]) > 0, output
    for target in (["-a"], ["--pid", str(program.pid)]):
        code, output = run("processes", *target)
        assert code == 1 and output.startswith("flamewire-agent: the kernel denies perf events to this user") and "seccomp profile" in output and "PERFMON" in output, output


def test_a_control_group_that_the_kernel_does_not_sample(tmp_path):
    """A hierarchy of version 1 without the perf_event controller, which only one of them has."""
    folder = tmp_path / "version1"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "cgroup", "-o", "none,name=flamewire-test", "none", folder], capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT tested: not root, or a kernel without version 1 control groups")
    try:
        for options in ([], ["--events", "none"]):
            done = subprocess.run([BIN / "flamewire-agent", "--output", tmp_path / "x.flw", *options, "--cgroup", folder, "--duration", "1"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1, done.stderr
            assert re.search(r"does not accept (event \S+|perf events) for this control group: it samples those of cgroup2, and of version 1 those of the controller perf_event,.*\. Try: ", done.stderr), done.stderr
    finally:
        subprocess.run(["umount", folder], check=True)


def test_the_command_line_records_the_whole_system(tmp_path):
    path = tmp_path / "all.flw"
    run = subprocess.run([BIN / "flamewire", "record", "-a", "-q", "-d", "1", "-e", "cpu-clock", "-o", path], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and path.exists() and "profiling system-wide" in run.stderr, run.stderr
    both = subprocess.run([BIN / "flamewire", "record", "-a", "-p", "1", "-o", path], capture_output=True, text=True, timeout=60)
    assert both.returncode != 0 and "give one target" in both.stderr
    wrong = subprocess.run([BIN / "flamewire-agent", "--output", path, "--all", "--cgroup", "x"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2 and "--all means the whole system" in wrong.stderr, wrong.stderr
