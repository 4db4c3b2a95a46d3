"""The table of --stat sched, as the agent prints it. Tests on captures check its values and the other views (tests/captures/test_scheduling.py)."""
import json
import os
import pty
import select
import subprocess

from flamewire import BIN, PATIENCE, TESTS_BIN
from switches import table

AGENT = BIN / "flamewire-agent"


def test_agent_prints_the_table():
    outcome = subprocess.run([AGENT, "--output", "-", "--stat", "sched", "--", TESTS_BIN / "waits-workload", "2"], capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome
    found = table(outcome.stdout)
    joined_ns = next(int(line.split()[1]) for line in outcome.stdout.splitlines() if line.startswith("joined "))
    for life in (json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")):
        numbers = found[life["thread"]]
        assert len(numbers) == 4 + 3 + 5 + 5, outcome.stdout
        wall = life["wall_ns"] / 1e6
        # The time from the start of its creation until it was joined. A busy machine delays both.
        longest = (joined_ns - life["born_ns"] + life["late_ns"]) / 1e6
        assert 0.99 * wall <= sum(numbers[:4]) <= longest + 0.1, (numbers, longest, life)
        assert abs(numbers[4] - life["preempted"]) <= 5 + 0.01 * life["preempted"]
        assert abs(numbers[5] + numbers[6] - life["slept"]) <= 5 + 0.01 * life["slept"]


def test_agent_prints_the_table_each_second_on_a_terminal(start):
    program = start.workload("waits", 600)
    ours, theirs = pty.openpty()
    agent = subprocess.Popen([AGENT, "--output", "-", "--stat", "sched", "--pid", str(program.pid)], stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    clear, text = b"\x1b[H\x1b[J", b""
    try:
        # The third screen is complete when the fourth begins, or when the agent has exited.
        while text.count(clear) < 3 and select.select([ours], [], [], 10 * PATIENCE)[0]:
            text += os.read(ours, 65536)
        agent.terminate()
        while True:
            try:
                text += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
        assert agent.wait(20 * PATIENCE) == 0, agent.stderr.read()
    finally:
        agent.kill()
        agent.wait()
        os.close(ours)
    screens = text.decode().replace("\r", "").split(clear.decode())[1:]
    assert len(screens) >= 3, screens
    busy = [table(screen).get("burner-1", [0])[0] for screen in screens]
    assert busy == sorted(busy) and busy[-1] > busy[0], busy


def test_options_that_do_not_fit():
    for arguments in (["--stat", "sched", "--output", "x.flw", "--pid", "1"], ["--stat", "sched", "--output", "-", "--events", "cycles", "--pid", "1"]):
        outcome = subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=20)
        assert outcome.returncode == 2 and "--stat sched" in outcome.stderr, outcome
