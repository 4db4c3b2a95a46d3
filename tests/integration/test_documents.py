"""Every command that README and getting-started show is executed: shell blocks run unchanged, in a folder that has only the build."""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
from flamewire import BIN, ROOT, free_port, wait_until

PAGES = ["README.md", "docs/getting-started.md"]
# Daemons run until they are stopped. Other commands must exit with success.
DAEMON = re.compile(r"^(\./dev demo|build/bin/flamewire-server\b|build/bin/flamewire-agent --(server|listen)\b)")


def open_page(url):
    """Opens the page at the printed address, as a browser does. Returns a function that requests a path from its server."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert b"<script" in browser.open(url).read()
    return lambda path: browser.open(urllib.parse.urljoin(url, path)).read()


def commands(page):
    """(block number, line) of all commands in the page's shell blocks, in order."""
    found = []
    for number, block in enumerate(re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)):
        found += [(number, line) for line in block.splitlines() if line.strip() and not line.startswith("#")]
    return found


def test_pages_show_commands():
    shown = [line for page in PAGES for _, line in commands(page)]
    assert "./dev demo" in shown and "./dev test" in shown
    assert (ROOT / ".ci" / "run").read_text().count("./dev test") == 1  # that one runs this test


def test_getting_started(tmp_path):
    """Runs the page from top to bottom as one shell session, in a directory that looks like the clone after ./dev build."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bin").symlink_to(BIN)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "home")}
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE)  # for --name bash
    daemons = []
    try:
        ask = None
        for _, line in commands("docs/getting-started.md"):
            if line == "./dev build":
                continue  # already done: this is the tested build
            if DAEMON.match(line):
                words = shlex.split(line)
                if "flamewire-server" in words[0]:
                    for process, _ in daemons:  # a second server on the page starts after the first has ended
                        process.send_signal(signal.SIGTERM)
                        assert process.wait(20) == 0
                    daemons.clear()
                log = open(tmp_path / f"daemon{len(daemons)}.log", "w+b")
                process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                daemons.append((process, log))
                if "flamewire-server" in words[0]:
                    url = wait_until(lambda path=log.name: re.search(r"^page: (http://\S+)$", pathlib.Path(path).read_text(), re.M), 20, "the page's address")[1]
                    ask = open_page(url)
                time.sleep(1)
                assert process.poll() is None, (line, pathlib.Path(log.name).read_text())
            else:
                outcome = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
                assert outcome.returncode == 0, (line, outcome.stderr)
        assert b'"total":1' in ask("api/sessions")
    finally:
        for process, log in daemons:
            process.kill()
            process.wait()
            log.close()
        shell.kill()
        shell.wait()


def test_demo(tmp_path):
    """./dev demo does what README promises: it prints a URL with a live profile, and Ctrl-C ends everything."""
    environment = {**os.environ, "DEMO_HTTP_PORT": str(free_port()), "TMPDIR": str(tmp_path)}
    log = tmp_path / "demo.log"
    with open(log, "wb") as output:
        demo = subprocess.Popen(["./dev", "demo"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    try:
        url = wait_until(lambda: re.search(r"A live profile of a sample workload: (http://\S+)", log.read_text()), 300, "the URL")[1]

        ask = open_page(url)

        def profile():
            answer = ask("api/flamegraph")
            return b"stage_traffic" in answer and b"stage_weather" in answer

        wait_until(profile, 20, "the workload in the flame graph")
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(20) == 0, log.read_text()
        left = subprocess.run(["pgrep", "-g", str(demo.pid)], capture_output=True, text=True).stdout.split()
        assert not left
        assert not list(tmp_path.glob("flamewire-demo.*"))
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)


@pytest.mark.parametrize("page", ["README.md", *[str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))], "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / page).parent.joinpath(target).exists(), (page, target)
