"""The text of `perf script -F ...`: every combination of fields with addresses and symbols gives the stacks, weights and threads that perf prints."""

import collections
import itertools
import json
import os
import re
import shutil
import subprocess

import pytest
from flamewire import BIN

PERF = shutil.which("perf")
pytestmark = pytest.mark.skipif(PERF is None, reason="perf is not installed: nothing was recorded")

# Two threads. The name of one contains spaces and a number.
SOURCE = """
#include <pthread.h>
#include <sys/prctl.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i * sink; sink++; }
__attribute__((noinline)) void outer(int n) { leaf(n); sink++; }
static void *run(void *name) { prctl(PR_SET_NAME, name); for (int i = 0; i < 400; i++) outer(50000); return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, run, "a b 12");
    for (int i = 0; i < 400; i++) leaf(50000);
    pthread_join(thread, 0);
    return 0;
}
"""
OPTIONAL = ("comm", "pid", "tid", "cpu", "misc", "time", "period", "event")
RECORDINGS = {"chains": ["-g"], "plain": [], "blank": ["-g"]}


@pytest.fixture(scope="module", params=RECORDINGS)
def data(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("perf-script")
    source = SOURCE.replace('"a b 12"', '""') if request.param == "blank" else SOURCE
    (folder / "app.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O0", "-pthread", "-o", folder / "app", folder / "app.c"], check=True)
    subprocess.run([PERF, "record", "-q", "-e", "cpu-clock:u", "-d", "--sample-cpu", "-F", "499", *RECORDINGS[request.param], "-o", folder / "data", "--", folder / "app"],
                   check=True, capture_output=True, timeout=60)
    return request.param, folder


def script(folder, fields):
    return subprocess.run([PERF, "script", "--no-inline", "-i", folder / "data", "-F", fields], check=True, capture_output=True, text=True, timeout=60).stdout


def perf_stacks(folder, chains):
    """(stack, outermost first -> samples, stack -> periods), from fields that are unambiguous."""
    samples, periods, period, frames = collections.Counter(), collections.Counter(), 0, []
    for line in [*script(folder, "period,event,ip,sym").splitlines(), "0 cpu-clock:u:" if not chains else ""]:
        first, _, rest = line.partition("cpu-clock:u:")
        if "cpu-clock:u:" in line:
            period, frames = int(first), [rest.split(None, 1)[1]] if rest.strip() else []
        elif line.strip():
            frames.append(line.split(None, 1)[1])
        if line.strip() and chains or not frames:
            continue
        stack = ";".join(reversed(frames))
        samples[stack] += 1
        periods[stack] += period
        frames = []
    return samples, periods


def perf_threads(folder):
    """Name of a thread -> its samples."""
    return collections.Counter(line.partition("cpu-clock:u:")[0].strip() for line in script(folder, "comm,event").splitlines() if "cpu-clock:u:" in line)


def imported(path, *options):
    """(stack, with the thread's name first -> number, name of a thread -> number)"""
    found, threads = collections.Counter(), collections.Counter()
    text = subprocess.run([BIN / "flamewire", "export", path, "--format", "collapsed", *options], check=True, capture_output=True, text=True, timeout=60).stdout
    for line in text.splitlines():
        stack, number = line.rsplit(" ", 1)
        found[stack] += int(number)
        threads[stack.split(";")[0]] += int(number)
    return found, threads


def comparable(stacks, names):
    """Keeps only frames with these names, because other addresses are formatted differently."""
    found = collections.Counter()
    for stack, number in stacks.items():
        found[tuple(frame for frame in stack.split(";") if frame in names)] += number
    return found


def test_every_combination_of_fields(data, tmp_path):
    name, folder = data
    samples, periods = perf_stacks(folder, name != "plain")
    names = {frame for stack in samples for frame in stack.split(";")} - {"[unknown]"}
    assert {"leaf", "main"} <= names if name != "plain" else "leaf" in names
    expected, weights, threads = comparable(samples, names), comparable(periods, names), perf_threads(folder)
    named_threads = set(threads) - {""}
    assert named_threads and (name == "blank") == ("" in threads)
    wrong = []
    path = tmp_path / "text"
    every = [chosen for count in range(len(OPTIONAL) + 1) for chosen in itertools.combinations(OPTIONAL, count)]
    # All 256 combinations for one recording. For the others every third one, which has each field in many positions.
    for chosen in every if name == "chains" else every[::3]:
        fields = ",".join([*chosen, "ip", "sym"])
        path.write_text(script(folder, fields))
        try:
            stacks, ours = imported(path, *(["--weights"] if "period" in chosen else []))
        except subprocess.CalledProcessError as error:
            wrong.append((fields, error.stderr))
            continue
        if comparable(stacks, names) != (weights if "period" in chosen else expected):
            wrong.append((fields, stacks))
        if "comm" in chosen and "period" not in chosen and any(ours[thread] != threads[thread] for thread in named_threads):
            wrong.append((fields, ours))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.parametrize("more", ["dso", "symoff", "symoff,dso", "dso,srcline", "srccode", "dso,srcline,srccode", "addr", "addr,comm,tid,time"])
def test_fields_next_to_and_below_frames(data, tmp_path, more):
    name, folder = data
    samples, _ = perf_stacks(folder, name != "plain")
    names = {frame for stack in samples for frame in stack.split(";")} - {"[unknown]"}
    path = tmp_path / "text"
    for fields in (f"ip,sym,{more}", f"comm,ip,sym,{more}", f"time,event,ip,sym,{more}"):
        path.write_text(script(folder, fields))
        assert comparable(imported(path)[0], names) == comparable(samples, names), fields


# perf 6.1 prints them like this: a function of a kernel module, an address in another module, the kernel, a program.
KERNEL_MODULES = """app 42 [000] 1.000000:    1000000 cpu-clock:
\tffffffffc0a01234 ext4_file_read_iter+0x34 ([ext4])
\tffffffff81234567 vfs_read+0x17 ([kernel.kallsyms])
\t    55d0a1b2c3d4 main+0x14 (/usr/bin/app)

app 42 [000] 1.010000:    2000000 cpu-clock:
\tffffffffc0b01234 [unknown] ([nf_tables])
\tffffffff81234567 vfs_read+0x17 ([kernel.kallsyms])
\t    55d0a1b2c3d4 main+0x14 (/usr/bin/app)

"""


def test_kernel_modules_keep_their_identity(tmp_path):
    """Exported in each format and imported again. Other tools also get the module."""
    def export(path, kind):
        out = tmp_path / f"exported.{kind}"
        subprocess.run([BIN / "flamewire", "export", path, "--format", kind, "-o", out], check=True, timeout=60)
        return out

    def modules(path):
        functions = json.loads(subprocess.run([BIN / "flamewire", "report", path, "--json"], check=True, capture_output=True, text=True, timeout=60).stdout)["events"][0]["functions"]
        return {function["name"]: (function["module"], function["samples"]) for function in functions}

    text = tmp_path / "text"
    text.write_text(KERNEL_MODULES)
    expected = modules(text)
    assert {name: module for name, (module, _) in expected.items()} == {
        "ext4_file_read_iter": "ext4.ko", "[nf_tables.ko+0xffffffffc0b01234]": "nf_tables.ko", "vfs_read": "[kernel]", "main": "app"}
    files = {kind: export(text, kind) for kind in ("pprof", "speedscope", "firefox", "perfdata")}
    for kind, path in files.items():
        assert modules(path) == expected, kind
    printed = subprocess.run([PERF, "script", "-i", files["perfdata"], "-F", "ip,sym"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert re.findall(r"\S+$", printed, re.M) == ["ext4_file_read_iter", "vfs_read", "main", "[nf_tables.ko+0xffffffffc0b01234]", "vfs_read", "main"]
    if go := shutil.which("go"):
        traces = subprocess.run([go, "tool", "pprof", "-symbolize=none", "-traces", files["pprof"]], check=True, capture_output=True, text=True, timeout=60,
                                env={**os.environ, "HOME": str(tmp_path)}).stdout
        assert re.findall(r"\[\w+\.?\w*\]", traces) == ["[ext4]", "[nf_tables.ko]"], traces
