"""Threads that exit before their first sample."""
import os
import shutil
import signal
import subprocess
import time

import bounds
import pytest
from flamewire import BIN, NOT_SAMPLED, TESTS_BIN, Tree, share_of, wait_until
from sysctls import sysctl

CHURN = bounds.Check("samples of threads that live for a few milliseconds, of all samples of all CPUs", times=2)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="whole CPUs and other users need root; CI runs as root")


class Churn:
    """A recording of `threads-workload churn`: its tree, the program's own CPU time and duration, and the agent's messages."""

    def __init__(self, start, tmp_path, frequency, count, milliseconds, prefix=(), programs=TESTS_BIN, agents=BIN):
        program, path = programs / "threads-workload", tmp_path / "churn.flw"
        with open(path, "wb") as output, open(tmp_path / "agent.err", "w+", encoding="utf-8") as errors:
            target = subprocess.Popen([*prefix, program, "churn", str(count), str(milliseconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
            agent = None
            try:
                wait_until(lambda: os.readlink(f"/proc/{target.pid}/exe") == str(program), 20, "the program")
                agent = subprocess.Popen([*prefix, agents / "flamewire-agent", "--output", "-", "--pid", str(target.pid), "--frequency", str(frequency), "--events", "cpu-clock",
                                          "--stat", "none", "--duration", "600"], stdout=output, stderr=errors, cwd="/")

                def messages():
                    return (tmp_path / "agent.err").read_text(encoding="utf-8")

                wait_until(lambda: "profiling" in messages() or agent.poll() is not None, 20, "the recording")
                begin = time.monotonic()
                target.stdin.write("\n")
                target.stdin.flush()
                self.user_s, self.cpu_s = (int(word) / 1e9 for word in target.stdout.readline().split())
                self.elapsed_s = time.monotonic() - begin
                agent.send_signal(signal.SIGTERM)
                assert agent.wait(60) == 0, messages()
                self.messages = messages()
            finally:
                for process in (target, agent):
                    if process:
                        process.kill()
                        process.wait()
        server = start.server("--import", path)
        self.session = server.wait_ended()
        self.tree = Tree(server.get("/api/flamegraph", min_share=0))
        self.missing_s = self.tree.self_shares().get(NOT_SAMPLED, 0) * self.tree.weight / 1e9
        self.sampled_s = self.tree.weight / 1e9 - self.missing_s


@as_root
@pytest.mark.recording(lost=0)
@pytest.mark.parametrize("frequency, milliseconds", [(999, 3), (99, 3)])
def test_whole_cpus_sample_threads_however_short_they_live(start, tmp_path, frequency, milliseconds):
    run = Churn(start, tmp_path, frequency, 6_000 // milliseconds, milliseconds)
    assert "threads that exit before their next sample. From now on, whole CPUs are sampled" in run.messages, run.messages
    # A timer on each CPU samples every thread there. The time without samples before that is known exactly.
    ticks = os.cpu_count() * run.elapsed_s * frequency
    CHURN.share(round(run.sampled_s * frequency), round(ticks), (run.cpu_s - run.missing_s) / (os.cpu_count() * run.elapsed_s), bias=bounds.STOLEN,
                detail=f"{run.cpu_s:.2f} s of CPU time, {run.missing_s:.2f} s not sampled")
    # At 99 Hz this is all the time before the change. At 999 Hz nine tenths of it are sampled.
    assert 0 < run.missing_s < (0.1 if frequency == 999 else 0.25) * run.cpu_s, (run.missing_s, run.cpu_s)
    shares = run.tree.shares()
    assert share_of(shares, "churned") > 0.5 and shares.get("[incomplete]", 0) < 0.05, shares


@as_root
@pytest.mark.recording(lost=0)
def test_unsampled_time_is_shown_without_permission_for_whole_cpus(start, tmp_path):
    """Another user samples user space only. Samples and unsampled time add up to the user CPU time that the kernel reports to the program."""
    os.chmod(tmp_path, 0o755)
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/") and parent.stat().st_uid == os.geteuid():
            os.chmod(parent, 0o755)
    programs = tmp_path / "programs"
    programs.mkdir()
    for file in (BIN / "flamewire-agent", TESTS_BIN / "threads-workload"):
        shutil.copy(file, programs)
    with sysctl(perf_event_paranoid=2):
        run = Churn(start, tmp_path, 99, 1_000, 3, prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], programs=programs, agents=programs)
    assert "is in threads that exit before their next sample. Try: run the agent as root, or setcap cap_perfmon" in run.messages, run.messages
    # Threads of at most 4.5 ms end before the first sample at 10 ms. Events end before their thread has left the kernel, so they count less.
    assert run.missing_s > 0.9 * run.user_s, (run.missing_s, run.user_s)
    messages = subprocess.run([BIN / "flamewire", "report", tmp_path / "churn.flw"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "was not sampled ([not sampled]): threads exited before their next sample\n#   run the agent as root" in messages, messages
    assert run.sampled_s + run.missing_s == pytest.approx(run.user_s, abs=3 / os.sysconf("SC_CLK_TCK"), rel=0.05), (run.sampled_s, run.missing_s, run.user_s)
