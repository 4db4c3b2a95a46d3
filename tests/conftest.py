"""pytest: the harness on the path; programs that a test starts are ended with it."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))

import flamewire  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """start.server(...), start.agent(...), start.workload(...): all are killed at the end of the test."""
    started = []

    class Start:
        directory = tmp_path

        @staticmethod
        def _keep(process):
            started.append(process)
            return process

        def server(self, *arguments, **options):
            # What tests make, and what they were built to, may be named in requests; a test of the roots has its own.
            roots = [] if "--browse-root" in arguments else [word for root in (tmp_path, flamewire.ROOT, flamewire.TESTS_BIN) for word in ("--browse-root", root)]
            return self._keep(flamewire.Server(tmp_path, *roots, *arguments, **options))

        def agent(self, *arguments, **options):
            return self._keep(flamewire.Agent(tmp_path, *arguments, **options))

        def workload(self, name, *arguments, **options):
            return self._keep(flamewire.workload(tmp_path, name, *arguments, **options))

        def process(self, name, command, **options):
            return self._keep(flamewire.Process(name, command, tmp_path, **options))

    try:
        yield Start()
    finally:
        for process in reversed(started):
            if process.alive():
                process.process.kill()
                process.process.wait()


@pytest.fixture(scope="module")
def tracefs(tmp_path_factory):
    """Mounted at a place of our own: it is found by the list of mounts."""
    place = tmp_path_factory.mktemp("tracefs")
    subprocess.run(["mount", "-t", "tracefs", "tracefs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what the programs said."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and "tmp_path" in getattr(item, "funcargs", {}):
        for log in sorted(item.funcargs["tmp_path"].glob("*.err")):
            report.sections.append((log.name, log.read_text(errors="replace")[-4000:]))
