"""Scenes that need more than a command line. make.py calls each with `agent`, a function that starts the agent with more arguments, and a scratch
folder. Each returns the agent's process, which has ended, and the known facts of the run."""
import os
import pathlib
import signal
import subprocess
import time

from bpf_loader import Loader
from control_groups import cgroup, enter
from flamewire import BIN, TESTS_BIN, cpu_seconds, wait_until
from looks import Looks

CONTAINER = "facade" + 58 * "7"


def two_programs(agent, _):
    """Two programs with two threads each, each program on its own CPU, one of them in a container's control group."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    programs = []
    with cgroup(f"docker-{CONTAINER}.scope") as folder:
        try:
            for cpu in cpus:
                programs.append(subprocess.Popen([TESTS_BIN / "shares-workload", "60", "2"], stdout=subprocess.DEVNULL, preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu})))
            inside, outside = (program.pid for program in programs)
            enter(folder, inside)
            wait_until(lambda: all(len(threads(program.pid)) == 2 for program in programs), 10, "the threads")
            ended = agent("--pid", f"{inside},{outside}", "--duration", 1).wait_ended()
            return ended, {"container": CONTAINER, "inside": {"pid": inside, "cpu": cpus[0], "tids": threads(inside)},
                           "outside": {"pid": outside, "cpu": cpus[1], "tids": threads(outside)}}
        finally:
            for program in programs:
                program.kill()
                program.wait()


def threads(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))


def phases(agent, scratch):
    """The program prints when each phase begins. /proc has the CPU time that it used until then."""
    with open(scratch / "phases", "w", encoding="ascii") as output:
        program = subprocess.Popen([TESTS_BIN / "phases-workload", "1.2", "3"], stdout=output)
    with Looks(program.pid) as looks:
        running = agent("--pid", program.pid)
        program.wait()
    ended = running.wait_ended()
    lines = (scratch / "phases").read_text(encoding="ascii").splitlines()
    return ended, {"output": lines, "threads": looks.threads, "looks": [" ".join(map(str, look)) for look in looks.looks if look[-1]]}


def stopped_agent(agent, _):
    """The agent is stopped meanwhile. One page per thread is too small for the kernel's samples."""
    running = agent("--", TESTS_BIN / "shares-workload", 5, 2)
    wait_until(lambda: "profiling" in running.err, 20, "the recording")
    (pid,) = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii").split()
    wait_until(lambda: cpu_seconds(pid) > 0.4, 20, "CPU time")
    stopped_ns = time.monotonic_ns()
    os.kill(running.pid, signal.SIGSTOP)
    before = cpu_seconds(pid)
    wait_until(lambda: cpu_seconds(pid) > before + 1, 20, "1 s of CPU time")
    going_ns = time.monotonic_ns()
    os.kill(running.pid, signal.SIGCONT)
    ended = running.wait_ended()
    return ended, {"stopped_ns": stopped_ns, "going_ns": going_ns, "cpu_ns": int(ended.stdout.split()[1])}


def kernel_programs(agent, scratch):
    """One BPF program exists before the recording and is unloaded, others are loaded and unloaded. Another profiler runs too."""
    loader = Loader()
    lives = []

    def command(*words):
        lives.append({"begin_ns": time.monotonic_ns(), **loader.command(*words), "end_ns": time.monotonic_ns()})

    try:
        command("load", "flw_early")
        with open(scratch / "kallsyms", "a", encoding="ascii") as names, open("/proc/kallsyms", encoding="ascii") as all_names:
            names.writelines(line for line in all_names if "_flw_early\t" in line)
        running = agent("--pid", loader.pid)
        wait_until(lambda: "profiling pid" in running.err, 20, "the recording")
        # Linux writes larger records if an older recording exists.
        other = subprocess.Popen([BIN / "flamewire-agent", "--pid", str(loader.pid), "--output", scratch / "other.flw"], stderr=subprocess.PIPE, text=True)
        while "profiling pid" not in other.stderr.readline():
            pass
        for name in ("flw_early", "flw_second", "flw_third"):
            if name != "flw_early":
                command("load", name)
            command("spin", name, 0.4)
            command("drop", name)
    finally:
        loader.close()
    other.communicate(timeout=60)
    return running.wait_ended(), {"lives": lives}
