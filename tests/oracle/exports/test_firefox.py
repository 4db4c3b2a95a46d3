"""Our export for the Firefox Profiler, checked against the published format and with the Firefox Profiler's own code (its command line)."""
import collections
import contextlib
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import firefox_profile
import pytest
from recording import PACKAGES, Recording, functions

VIEWER = PACKAGES / "node_modules" / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recording(tmp_path_factory.mktemp("firefox"), "demo-workload", "3", options=["--tag", "build=b 17"])


@pytest.fixture(scope="module")
def profile(recorded):
    return json.loads(recorded.export("firefox"))


def test_the_format_as_published(recorded, profile):
    firefox_profile.check(profile)
    firefox_profile.check(json.loads(recorded.export("firefox", "-e", "page-faults")))
    assert profile["meta"]["interval"] == pytest.approx(1000 / 999, rel=1e-4)
    # The profile has enough to check: threads of two events, functions inlined into inlined ones, the kernel and libraries.
    assert len(profile["threads"]) >= 6
    assert max(depth for thread in profile["threads"] for depth in thread["frameTable"]["inlineDepth"]) >= 2
    assert len({category for thread in profile["threads"] for category in thread["stackTable"]["category"]}) >= 3
    assert len(profile["libs"]) >= 4


def set_row(table, column, row, value):
    def change(profile):
        profile["threads"][1][table][column][row] = value

    return change


CHANGES = {
    "a column too short": lambda profile: profile["threads"][1]["frameTable"]["line"].pop(),
    "a missing column": lambda profile: profile["threads"][1]["funcTable"].pop("relevantForJS"),
    "a function that is not there": set_row("frameTable", "func", 3, 10**6),
    "a string that is not there": set_row("funcTable", "name", 3, -1),
    "a caller after its callee": set_row("stackTable", "prefix", 2, 5),
    "the wrong category": lambda profile: profile["threads"][1]["stackTable"]["category"].reverse(),
    "time that goes back": set_row("samples", "time", 0, 10**9),
    "no version": lambda profile: profile["meta"].pop("preprocessedProfileVersion"),
    "no default category": lambda profile: profile["meta"]["categories"].pop(),
    "a string twice": lambda profile: profile["threads"][1]["stringArray"].append(profile["threads"][1]["stringArray"][0]),
    "inlined into nothing": lambda profile: profile["threads"][1]["frameTable"].update(inlineDepth=[1] * profile["threads"][1]["frameTable"]["length"]),
    "an unused library": lambda profile: profile["libs"].append(profile["libs"][0]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_checker_detects(profile, what):
    damaged = copy.deepcopy(profile)
    CHANGES[what](damaged)
    with pytest.raises(firefox_profile.Wrong):
        firefox_profile.check(damaged)


class Viewer:
    """The Firefox Profiler's command line. It loads a profile in a process that runs until it is stopped."""

    def __init__(self, path):
        self.folder = tempfile.mkdtemp(prefix="fx.")  # short, because it is part of a socket's path
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": self.folder, "HOME": self.folder}
        self.load(path)

    def load(self, path):
        """The tool waits half a second for its own process. On a busy machine the process starts later, and the tool asks to try again."""
        end = time.monotonic() + 120
        while True:
            done = subprocess.run(["node", VIEWER, "load", path, "--session", "one"], capture_output=True, text=True, env=self.environment, timeout=120)
            late = re.search(r"did not become ready(?s:.*)may still be running as pid (\d+)", done.stderr + done.stdout)
            if not late or time.monotonic() > end:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(late[1]), signal.SIGKILL)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *words):
        done = subprocess.run(["node", VIEWER, *words], capture_output=True, text=True, env=self.environment, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, *words):
        return json.loads(self.run(*words, "--session", "one", "--json"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("stop", "one")
        shutil.rmtree(self.folder)


def as_folded(name):
    return name.replace(";", ":")


@pytest.mark.skipif(not VIEWER.is_file(), reason="the packages of the browser tests are not installed (target flamewire_e2e_packages): nothing was compared")
def test_the_firefox_profiler_reads_it(recorded, profile):
    path = recorded.file("firefox")
    with Viewer(path) as viewer:
        threads = viewer.ask("thread", "list")["threads"]
        wanted = {}
        for event, about in recorded.events.items():
            # Milliseconds if the unit is a time, otherwise samples.
            for (comm, names), number in recorded.stacks(event, weights=about["unit"] == "ns").items():
                wanted.setdefault(f"{comm} {event}", collections.Counter())[comm, names] += number
        assert {one["name"] for one in threads} == set(wanted)
        for thread in threads:
            expected = functions(wanted[thread["name"]])
            answer = viewer.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0", "--include-idle")
            scale = 10**6 if answer["weightType"] == "tracing-ms" else 1
            assert (scale > 1) == thread["name"].endswith(" cpu-clock")
            own, rows = collections.Counter(), collections.Counter(as_folded(one["name"]) for one in answer["functions"])
            for one in answer["functions"]:
                own[as_folded(one["name"])] += round(one["selfSamples"] * scale)
                # Functions of two modules or files may have the same name, and both may be in one stack.
                if rows[as_folded(one["name"])] == 1:
                    assert round(one["totalSamples"] * scale) == expected[as_folded(one["name"])][1], one
            assert own == {name: number for name, (number, _) in expected.items()}, thread
            assert sum(number == 1 for number in rows.values()) > len(rows) * 0.8
        # The initially selected thread, and the displayed metadata.
        first = next(iter(recorded.events))
        busiest = max((name for name in wanted if name.endswith(f" {first}")), key=lambda name: sum(wanted[name].values()))
        assert [one["name"] for one in viewer.ask("status")["selectedThreads"]] == [busiest]
        meta = viewer.run("profile", "meta", "--session", "one")
        assert "Symbolicated: yes" in meta and "Sampling interval: 1.0ms" in meta and str(recorded.program) in meta and "Flamewire" in meta, meta
