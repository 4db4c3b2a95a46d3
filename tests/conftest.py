"""pytest configuration: adds the harness to the path, and ends the programs that a test started."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))

import bounds  # noqa: E402
import disturbance  # noqa: E402
import flamewire  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """start.server(...), start.agent(...), start.workload(...): all of them and their children are killed at the end of the test.

    A workload whose end is not tested runs for 600 s. No test takes as long, even on a busy machine."""
    started = []

    class Start:
        directory = tmp_path

        @staticmethod
        def _keep(process):
            started.append(process)
            return process

        @staticmethod
        def end():
            for process in reversed(started):
                if process.alive():
                    children = flamewire.children(process.pid)
                    process.process.kill()
                    process.process.wait()
                    for child in children:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(child, signal.SIGKILL)
            started.clear()

        def renew(self, directory):
            """For the next attempt: ends everything and uses another folder."""
            self.end()
            self.directory = directory

        @staticmethod
        def losses():
            """Lost samples of all sessions whose server still runs, and of agents that wrote files."""
            for process in started:
                if isinstance(process, flamewire.Server) and process.alive():
                    with contextlib.suppress(OSError, flamewire.HttpError):
                        for session in process.sessions():
                            yield flamewire.lost(process.session(session["id"])), session["samples"]
                elif isinstance(process, flamewire.Agent):
                    for samples, lost in re.findall(r": (\d+) samples, (\d+) lost, ", process.err):
                        yield int(lost), int(samples)

        def server(self, *arguments, **options):
            # Requests may name files of tests and of the build. A test of the roots has its own.
            roots = [] if "--browse-root" in arguments else [word for root in (self.directory, flamewire.ROOT, flamewire.TESTS_BIN) for word in ("--browse-root", root)]
            return self._keep(flamewire.Server(self.directory, *roots, *arguments, **options))

        def agent(self, *arguments, **options):
            # On a busy machine, the agent may wait for a CPU for longer than the usual rings last. A test of losses sets their size.
            room = () if "--ring-pages" in arguments else ("--ring-pages", "1024")
            return self._keep(flamewire.Agent(self.directory, *room, *arguments, **options))

        def workload(self, name, *arguments, **options):
            return self._keep(flamewire.workload(self.directory, name, *arguments, **options))

        def process(self, name, command, **options):
            return self._keep(flamewire.Process(name, command, self.directory, **options))

    result = Start()
    try:
        yield result
    finally:
        result.end()


def pytest_configure(config):
    config.addinivalue_line("markers", "recording(lost): a recording; it is repeated if the machine disturbed it")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test that is marked `recording` runs under disturbance.undisturbed(). Each attempt has its own programs and folder."""
    marker = pyfuncitem.get_closest_marker("recording")
    if marker is None:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    start, folder = arguments.get("start"), arguments.get("tmp_path")

    def take(attempt):
        if attempt > 1:
            again = pyfuncitem.funcargs["tmp_path"] / f"attempt-{attempt}" if "tmp_path" in pyfuncitem.funcargs else None
            if again:
                again.mkdir()
            if start:
                start.renew(again)
            if folder:
                arguments["tmp_path"] = again
            bounds.forget(done)
        pyfuncitem.obj(**arguments)

    def losses():
        share = marker.kwargs.get("lost", disturbance.LOST)
        return [reason for lost, samples in start.losses() for reason in disturbance.loss_reasons(lost, samples, share)] if start else []

    done = bounds.progress()
    try:
        disturbance.undisturbed(pyfuncitem.nodeid, take, losses, (Exception, pytest.fail.Exception))
    except disturbance.NotMeasured as reason:
        pytest.skip(str(reason))
    return True


@pytest.fixture(scope="module")
def tracefs(tmp_path_factory):
    """Mounts tracefs at a separate place, where it is found through the list of mounts. Concurrent tests have other mounts and do not see it."""
    flamewire.own_mounts()
    place = tmp_path_factory.mktemp("tracefs")
    subprocess.run(["mount", "-t", "tracefs", "tracefs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the output of the programs."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and "tmp_path" in getattr(item, "funcargs", {}):
        for log in sorted(item.funcargs["tmp_path"].rglob("*.err")):
            report.sections.append((log.name, log.read_text(errors="replace")[-4000:]))
