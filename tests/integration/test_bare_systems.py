"""The static agent where there is next to nothing: a root directory with the agent and a program, and each time one thing less. The server
on this machine draws the program's functions; what the agent misses it says in a sentence."""
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
    """A root directory, in which commands run in a mount namespace of their own. Without unshare's --fork the process is the command."""

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
        """Until it ends; (exit code, what it said)."""
        started = self.start.process(name, self.command("/agent", *arguments, **options))
        code = started.wait(60)
        return code, started.err

    def profile(self, *arguments, **options):
        """Profiles the program for a server here: (the session, what the agent said)."""
        server = self.start.server("--binary", PROGRAM)
        code, said = self.agent("--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, *arguments, "--", "/program", 2, **options)
        assert code == 0, said
        server.wait_ended()
        draws_the_functions(server)
        return server.only_session(), said


def draws_the_functions(server):
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
    """No /sys, /dev, /tmp, /etc, no shell; no environment either."""
    session, said = bare.profile(limits="unset HOME PATH TERM LANG")
    assert sorted(entry.name for entry in bare.root.iterdir()) == ["agent", "proc", "program"]
    assert session["lost"] == 0
    assert "profiling" in said


@pytest.mark.parametrize("arguments", [("--", "/program", "1"), ("--pid", "1"), ("--name", "program"), ("--listen",)])
def test_without_proc_nothing_can_be_watched(bare, arguments):
    code, said = bare.agent("--output", "/run.flw", *arguments, proc=False) if arguments != ("--listen",) else bare.agent(*arguments, proc=False)
    assert code == 1
    assert said == "flamewire-agent: /proc is not mounted, so no process can be profiled. Try: mount -t proc proc /proc\n"
    assert not (bare.root / "run.flw").exists()


@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="busybox-static is not installed; ./dev test installs it")
def test_without_names_of_the_kernel(bare):
    """A program that is in the kernel most of the time."""
    shutil.copy(BUSYBOX, bare.root / "busybox")
    server = bare.start.server()
    code, said = bare.agent("--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, "--", "/busybox", "dd", "if=/busybox", "of=/copy", "bs=1", "count=600000",
                            setup=f"mount --bind {bare.empty} {bare.root}/proc/kallsyms")
    assert code == 0, said
    server.wait_ended()
    session = server.only_session()
    assert session["samples"] > 0
    assert notice(session, "kernel-names-missing"), session["notices"]
    assert not notice(session, "kernel-names-hidden")


def test_without_tracefs(bare):
    code, said = bare.agent("--output", "/run.flw", "--events", "sched:sched_switch", "--", "/program", 1)
    assert code != 0
    assert said == "flamewire-agent: --events: tracepoint sched:sched_switch needs tracefs, which is not mounted. Try: mount -t tracefs tracefs /sys/kernel/tracing\n"


def test_a_root_directory_that_cannot_be_written(bare):
    read_only = f"mount --bind {bare.root} {bare.root}\nmount -o remount,ro,bind {bare.root}\nmount -t proc proc {bare.root}/proc"
    bare.profile(proc=False, setup=read_only)
    code, said = bare.agent("--output", "/run.flw", "--", "/program", 1, proc=False, setup=read_only, name="writing")
    assert code == 1
    assert "/run.flw" in said and "Read-only file system" in said, said


@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="busybox-static is not installed; ./dev test installs it")
def test_started_by_busybox(bare):
    """As an init script of a board does it: in the background, by a shell that ends."""
    for folder in ("bin", "dev", "var"):
        (bare.root / folder).mkdir()
    os.mknod(bare.root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    shutil.copy(BUSYBOX, bare.root / "bin" / "busybox")
    # Programs of other tests have usual names.
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
        draws_the_functions(server)
    finally:
        agent = int((bare.root / "var" / "agent.pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGTERM)
    # Nobody here is its parent.
    wait_until(lambda: not os.path.exists(f"/proc/{agent}") or "State:\tZ" in open(f"/proc/{agent}/status").read(), 30, "the end of the agent")
    assert f"waiting for another process named {name}" in (bare.root / "var" / "agent.log").read_text()


def test_without_dns(bare):
    agent = bare.start.process("agent", bare.command("/agent", "--server", "name.invalid", "--", "/program", 1))
    said = wait_until(lambda: re.search(r"^.*name\.invalid.*cannot be resolved.*$", agent.err, re.M), 60, "a sentence about the name")[0]
    assert said.endswith("; trying again until there is one") and "give its address where there is no DNS" in said, said
    agent.stop()
    bare.profile()  # by its address


def test_descriptors_that_are_closed_stay_closed(bare):
    """What is opened next takes the lowest number: log lines must not go into a socket or a perf event."""
    server = bare.start.server("--binary", PROGRAM)
    agent = bare.start.process("agent", bare.command("/agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--frequency", 999, "--", "/program", 4, limits="exec <&- >&- 2>&-"))
    wait_until(server.sessions, 30, "a session")
    assert {os.readlink(f"/proc/{agent.pid}/fd/{number}") for number in (0, 1, 2)} == {str(bare.root)}
    child = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True, check=True).stdout.split()[0]
    assert os.listdir(f"/proc/{child}/fd") == []
    assert agent.wait(60) == 0
    server.wait_ended()
    draws_the_functions(server)
    assert server.only_session()["lost"] == 0
    # A file has nothing else in it, and what was to go to a closed descriptor fails.
    code, _ = bare.agent("--output", "/run.flw", "--", "/program", 1, limits="exec <&- >&- 2>&-", name="file")
    assert code == 0
    assert (bare.root / "run.flw").read_bytes().startswith(b"FLMWIRE")
    code, said = bare.agent("--output", "-", "--", "/program", 1, limits="exec >&-", name="closed")
    assert code != 0 and said.strip(), said


def test_few_descriptors(bare):
    """Sixty-four, of which the agent leaves half for all but events: enough for a program of one thread on a board's CPUs."""
    if os.cpu_count() <= 4:
        session, _ = bare.profile(limits="ulimit -n 64")
        assert not notice(session, "threads-skipped")
    # Whichever file is the one too many.
    for limit in (9, 12, 15):
        code, said = bare.agent("--output", "/run.flw", "--", "/program", 1, limits=f"ulimit -n {limit}", name=f"too-few-{limit}")
        assert code == 1
        assert said.splitlines()[-1] == "flamewire-agent: the limit of open files is too low for this many threads and CPUs. Try: ulimit -n 65536 before starting the agent", said
