"""The static agent in a root directory with only the agent and a program. Each test removes one thing. A server on this machine
shows the program's functions, and the agent reports what it lacks in one sentence."""
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess

import bounds
import pytest
from flamewire import BIN, TESTS_BIN, Tree, share_of, wait_until
from known_shares import check_known_shares
from sanitized import plain_build_only

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=24)
CALLED = bounds.Check("samples below the function that does everything", times=6)

PROGRAM = TESTS_BIN / "shares-static-workload"
BUSYBOX = "/bin/busybox"

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces and chroot need root; CI runs as root"),
              plain_build_only("the agent of a sanitized build needs libraries")]


class Bare:
    """A root directory where commands run in their own mount namespace. Without --fork, the process of unshare becomes the command."""

    def __init__(self, start):
        self.start = start
        self.root = start.directory / "root"
        (self.root / "proc").mkdir(parents=True)
        shutil.copy(BIN / "flamewire-agent", self.root / "agent")
        shutil.copy(PROGRAM, self.root / "program")
        self.empty = start.directory / "empty"
        self.empty.touch()

    def command(self, *words, proc=True, setup="", limits=""):
        script = "set -e\n"
        if proc:
            script += f"mount -t proc proc {self.root}/proc\n"
        script += f'{setup}\n{limits}\nexec {shutil.which("chroot")} {self.root} "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *[str(word) for word in words]]

    def agent(self, *arguments, name="agent", **options):
        """Runs the agent until it exits. Returns (exit code, its messages)."""
        started = self.start.process(name, self.command("/agent", *arguments, **options))
        code = started.wait(60)
        return code, started.err

    def profile(self, *arguments, **options):
        """Profiles the program for a server on this machine. Returns (session, the agent's messages)."""
        server = self.start.server("--binary", PROGRAM)
        code, output = self.agent("--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, *arguments, "--", "/program", 2, **options)
        assert code == 0, output
        server.wait_ended()
        check_functions(server)
        return server.only_session(), output


def check_functions(server):
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_known_shares(KNOWN, tree)
    samples = tree.answer["total"]["samples"]
    CALLED.at_least(share_of(tree.shares(), "round_of_work") * samples, samples, 0.95)


@pytest.fixture
def bare(start):
    return Bare(start)


def notice(session, code):
    return next((one for one in session["notices"] if one["code"] == code), None)


def test_an_empty_root_directory(bare):
    """The directory has no /sys, /dev, /tmp, /etc or shell, and HOME, PATH, TERM and LANG are unset."""
    session, output = bare.profile(limits="unset HOME PATH TERM LANG")
    assert sorted(entry.name for entry in bare.root.iterdir()) == ["agent", "proc", "program"]
    assert session["lost"] == 0
    assert "profiling" in output


@pytest.mark.parametrize("arguments", [("--", "/program", "1"), ("--pid", "1"), ("--name", "program"), ("--listen",)])
def test_without_proc_nothing_can_be_profiled(bare, arguments):
    code, output = bare.agent("--output", "/run.flw", *arguments, proc=False) if arguments != ("--listen",) else bare.agent(*arguments, proc=False)
    assert code == 1
    assert output == "flamewire-agent: /proc is not mounted, so no process can be profiled. Try: mount -t proc proc /proc\n"
    assert not (bare.root / "run.flw").exists()


@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="busybox-static is not installed; ./dev test installs it")
def test_without_names_of_the_kernel(bare):
    """The program spends most of its time in the kernel."""
    shutil.copy(BUSYBOX, bare.root / "busybox")
    server = bare.start.server()
    code, output = bare.agent("--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, "--", "/busybox", "dd", "if=/busybox", "of=/copy", "bs=1", "count=600000",
                            setup=f"mount --bind {bare.empty} {bare.root}/proc/kallsyms")
    assert code == 0, output
    server.wait_ended()
    session = server.only_session()
    assert session["samples"] > 0
    assert notice(session, "kernel-names-missing"), session["notices"]
    assert not notice(session, "kernel-names-hidden")


def test_without_tracefs(bare):
    code, output = bare.agent("--output", "/run.flw", "--events", "sched:sched_switch", "--", "/program", 1)
    assert code != 0
    assert output == "flamewire-agent: --events: tracepoint sched:sched_switch needs tracefs, which is not mounted. Try: mount -t tracefs tracefs /sys/kernel/tracing\n"


def test_a_root_directory_that_cannot_be_written(bare):
    read_only = f"mount --bind {bare.root} {bare.root}\nmount -o remount,ro,bind {bare.root}\nmount -t proc proc {bare.root}/proc"
    bare.profile(proc=False, setup=read_only)
    code, output = bare.agent("--output", "/run.flw", "--", "/program", 1, proc=False, setup=read_only, name="writing")
    assert code == 1
    assert "/run.flw" in output and "Read-only file system" in output, output


@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="busybox-static is not installed; ./dev test installs it")
def test_started_by_busybox(bare):
    """A board's init script starts the agent like this: in the background, from a shell that exits."""
    for folder in ("bin", "dev", "var"):
        (bare.root / folder).mkdir()
    os.mknod(bare.root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    shutil.copy(BUSYBOX, bare.root / "bin" / "busybox")
    # Programs of other tests have the usual names, so this one has its own.
    name = f"started-{os.getpid()}"
    shutil.copy(PROGRAM, bare.root / name)
    server = bare.start.server("--binary", PROGRAM)
    script = f"/bin/busybox --install -s /bin; export PATH=/bin; setsid /agent --server 127.0.0.1 --pair {server.code} --port {server.port} --frequency 999 --name {name} >/var/agent.log 2>&1 & echo $! >/var/agent.pid; exec /{name} 4"
    program = bare.start.process("program", bare.command("/bin/busybox", "sh", "-c", script))
    try:
        assert program.wait(60) == 0, program.err
        wait_until(lambda: server.command("status").get("waiting_for") == name, 30, "the agent to wait for another process")
        assert server.command("stop")["ok"]
        server.wait_ended()
        check_functions(server)
    finally:
        agent = int((bare.root / "var" / "agent.pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGTERM)
    # Its parent is not in this test, so it can remain a zombie.
    wait_until(lambda: not os.path.exists(f"/proc/{agent}") or "State:\tZ" in open(f"/proc/{agent}/status").read(), 30, "the end of the agent")
    assert f"waiting for another process named {name}" in (bare.root / "var" / "agent.log").read_text()


def test_without_dns(bare):
    agent = bare.start.process("agent", bare.command("/agent", "--server", "name.invalid", "--", "/program", 1))
    output = wait_until(lambda: re.search(r"^.*name\.invalid.*cannot be resolved.*$", agent.err, re.M), 60, "a message about the name")[0]
    assert output.endswith("; trying again until there is one") and "give its address where there is no DNS" in output, output
    agent.stop()
    bare.profile()  # by its address


def test_descriptors_that_are_closed_stay_closed(bare):
    """The next opened file gets the lowest free number. Log lines must not reach a socket or a perf event."""
    server = bare.start.server("--binary", PROGRAM)
    agent = bare.start.process("agent", bare.command("/agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, "--", "/program", 4, limits="exec <&- >&- 2>&-"))
    wait_until(server.sessions, 30, "a session")
    assert {os.readlink(f"/proc/{agent.pid}/fd/{number}") for number in (0, 1, 2)} == {str(bare.root)}
    child = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True, check=True).stdout.split()[0]
    assert os.listdir(f"/proc/{child}/fd") == []
    assert agent.wait(60) == 0
    server.wait_ended()
    check_functions(server)
    assert server.only_session()["lost"] == 0
    # A session file contains nothing else, and writes to a closed descriptor fail.
    code, _ = bare.agent("--output", "/run.flw", "--", "/program", 1, limits="exec <&- >&- 2>&-", name="file")
    assert code == 0
    assert (bare.root / "run.flw").read_bytes().startswith(b"FLMWIRE")
    code, output = bare.agent("--output", "-", "--", "/program", 1, limits="exec >&-", name="closed")
    assert code != 0 and output.strip(), output


def test_few_descriptors(bare):
    """The agent reserves half of the 64 descriptors for everything except events. The rest suffices for one thread on a board's CPUs."""
    if os.cpu_count() <= 4:
        session, _ = bare.profile(limits="ulimit -n 64")
        assert not notice(session, "threads-skipped")
    # The message is the same whichever descriptor exceeds the limit.
    for limit in (9, 12, 15):
        code, output = bare.agent("--output", "/run.flw", "--", "/program", 1, limits=f"ulimit -n {limit}", name=f"too-few-{limit}")
        assert code == 1
        assert output.splitlines()[-1] == "flamewire-agent: the limit of open files is too low for this many threads and CPUs. Try: ulimit -n 65536 before starting the agent", output
