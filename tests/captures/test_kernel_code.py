"""Kernel code that comes and goes: BPF programs, loaded and unloaded during a recording, have their names from /proc/kallsyms of that time."""
import collections
import subprocess

from flamewire import BIN


def test_programs_that_come_and_go_at_one_address_are_named(replayed, tmp_path):
    """Each program has the time that its loader measured, minus the overhead of the system call."""
    replay = replayed("kernel-programs")
    names = {life["name"]: life["kallsyms"][0] for life in replay.truth["lives"] if life["did"] == "load"}
    seconds = {life["name"]: life["cpu_s"] for life in replay.truth["lives"] if life["did"] == "spin"}
    text = subprocess.run([BIN / "flamewire", "export", replay.session, "--format", "collapsed", "--weights", "--data-dir", tmp_path], check=True, capture_output=True, text=True).stdout
    found = collections.Counter()
    for stack, weight in (line.rsplit(" ", 1) for line in text.splitlines()):
        found[stack.rsplit(";", 1)[1]] += int(weight)
    for short, full in names.items():
        assert 0.7 * seconds[short] < found[full] / 1e9 < 1.15 * seconds[short], (short, found[full] / 1e9, seconds[short])
