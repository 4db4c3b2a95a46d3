"""Access to the page: tokens, cookies, host names, a path prefix and HTTPS; and the metrics for a monitoring system."""

import http.client
import os
import pathlib
import re
import ssl
import stat
import subprocess
import tempfile
import urllib.parse

import prometheus_client.parser
import pytest
from flamewire import BIN, wait_until

TOKEN = "0123456789abcdef-a-token"


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n", encoding="ascii")
    path.chmod(0o600)
    return path


def ask(server, path, method="GET", body=None, tls=None, **headers):
    """(status, headers, text), without following redirects."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.http_port, timeout=30, context=tls) if tls else http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    try:
        connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


def cookie_of(headers):
    return headers["Set-Cookie"].split(";")[0]


def test_token(start, token_file):
    server = start.server("--http-token-file", token_file)
    assert server.page.endswith(f"/?token={TOKEN}")
    for path in ("/api/status", "/api/stream", "/metrics"):
        status, headers, text = ask(server, path)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer") and "login_required" in text
        assert TOKEN not in text
    # The page's files are refused too; the answer is the login form.
    for path in ("/", "/app.js", "/index.html"):
        status, headers, text = ask(server, path)
        assert status == 401 and headers["Content-Type"].startswith("text/html") and 'action="login"' in text
        assert "form-action 'self'" in headers["Content-Security-Policy"] and "script-src" not in headers["Content-Security-Policy"]
    assert ask(server, "/api/status", Authorization=f"Bearer {TOKEN}")[0] == 200
    status, headers, _ = ask(server, f"/?token={TOKEN}")
    assert status == 303 and headers["Location"] == "/"
    attributes = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={30 * 86400}"} <= set(attributes) and "Secure" not in attributes
    assert TOKEN not in headers["Set-Cookie"]
    cookie = cookie_of(headers)
    assert str(server.http_port) in cookie.split("=")[0], "two servers on one host have different cookie names"
    assert ask(server, "/api/status", Cookie=f"other=1; {cookie}")[0] == 200
    assert ask(server, "/app.js", Cookie=cookie)[0] == 200
    assert ask(server, "/api/status", Cookie=cookie[:-1] + ("0" if cookie[-1] != "0" else "1"))[0] == 401
    status, headers, _ = ask(server, "/login", "POST", urllib.parse.urlencode({"token": TOKEN}), Content_Type="application/x-www-form-urlencoded")
    assert status == 303 and ask(server, "/api/status", Cookie=cookie_of(headers))[0] == 200
    # The address with the token also works as a bookmark after logging in.
    assert ask(server, f"/?token={TOKEN}", Cookie=cookie)[0] == 303
    # A form from another site is refused before the token is checked.
    assert ask(server, "/login", "POST", f"token={TOKEN}", Origin="http://elsewhere.example")[0] == 403
    # A new token invalidates the cookie.
    server.stop()
    token_file.write_text("another-token-for-the-page", encoding="ascii")
    again = start.server("--http-token-file", token_file, http_port=server.http_port, name="again", data_dir=server.data_dir)
    assert ask(again, "/api/status", Cookie=cookie)[0] == 401


PRIVATE = [("GET", "/api/status"), ("GET", "/api/browse"), ("GET", "/api/pairing"), ("POST", "/api/pairing"), ("GET", "/api/stream"), ("GET", "/api/export/flamegraph"),
           ("POST", "/api/agent/command"), ("GET", "/metrics")]


def test_loopback_asks_for_the_token(start):
    """Every user of the machine can connect to loopback, so it requires the token too."""
    server = start.server(token=True)
    for method, path in PRIVATE:
        status, headers, text = ask(server, path, method)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer") and "login_required" in text, path
    printed = urllib.parse.urlparse(server.page)
    token = printed.query.removeprefix("token=")
    assert re.fullmatch("[0-9a-f]{32}", token) and printed.hostname == "127.0.0.1"
    # One click is enough: the printed address sets the cookie and leads to the page.
    status, headers, _ = ask(server, f"{printed.path}?{printed.query}")
    assert status == 303 and headers["Location"] == "/"
    cookie = cookie_of(headers)
    for path in ("/", "/app.js", "/api/status", "/api/browse"):
        assert ask(server, path, Cookie=cookie)[0] == 200, path
    for name in ("127.0.0.1", "localhost"):
        assert ask(server, "/api/status", Authorization=f"Bearer {token}", Host=f"{name}:{server.http_port}")[0] == 200
    assert '"token_required":true' in ask(server, "/api/status", Cookie=cookie)[2]
    assert token not in server.err
    # The next run has the same token, so bookmarks keep working.
    server.stop()
    assert start.server(token=True, name="again", data_dir=server.data_dir).page.endswith(f"?token={token}")


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: switching to another user needs root; CI runs as root")
def test_another_user_of_this_machine(start):
    """Another user can list this data directory, but cannot read its token, and requests without the token are refused."""
    with tempfile.TemporaryDirectory(prefix="flamewire-data-") as folder:
        os.chmod(folder, 0o755)
        server = start.server(token=True, data_dir=folder)
        path = pathlib.Path(folder, "http-token")
        assert f"?token={path.read_text(encoding='ascii').strip()}" in server.page

        def other(*command):
            return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command], capture_output=True, text=True, timeout=30, check=False, cwd="/")

        assert "http-token" in other("ls", folder).stdout
        assert "Permission denied" in other("cat", path).stderr
        script = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{server.http_port}/api/status')"
        assert "HTTP Error 401" in other("/usr/bin/python3", "-I", "-c", script).stderr


def test_open_on_request(start):
    server = start.server("--http-open", token=True)
    assert "token" not in server.page and "--http-open: every user of this machine can use the page" in server.out
    assert not (server.data_dir / "http-token").exists()
    assert server.get("/api/status")["token_required"] is False
    assert ask(server, "/")[0] == 200


@pytest.mark.parametrize("arguments", [("--http-bind", "0.0.0.0"), ("--http-token-file", "/dev/null")])
def test_open_is_refused(tmp_path, arguments):
    run = subprocess.run([BIN / "flamewire-server", "--port", "0", "--http-port", "0", "--data-dir", tmp_path / "data", "--http-open", *arguments], capture_output=True, text=True, timeout=20, check=False)
    assert run.returncode == 2 and "--http-open" in run.stderr and arguments[0] in run.stderr and run.stderr.count("\n") == 1, run.stderr


def test_log_out(start):
    server = start.server(token=True)
    cookie = cookie_of(ask(server, f"/?{urllib.parse.urlparse(server.page).query}")[1])
    status, headers, _ = ask(server, "/logout", "POST", Cookie=cookie)
    assert status == 303 and headers["Location"] == "/"
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert name == cookie.split("=")[0] + "=" and {"Max-Age=0", "Path=/", "HttpOnly"} <= set(attributes)
    assert ask(server, "/", Cookie=name)[0] == 401
    # A request from another site cannot log the user out.
    assert ask(server, "/logout", "POST", Cookie=cookie, Origin="http://elsewhere.example")[0] == 403
    assert "Set-Cookie" not in ask(server, "/logout", Cookie=cookie)[1]


def test_wrong_tokens_are_logged(start, token_file):
    """The log and /metrics report wrong tokens to the administrator. The number of log lines is limited, so nobody can fill the disk."""
    token_file.chmod(0o644)
    server = start.server("--http-token-file", token_file)
    assert f"security: {token_file} can be read by other users, who could log in: chmod 600" in server.err
    cookie = cookie_of(ask(server, f"/?token={TOKEN}")[1])
    for _ in range(15):
        ask(server, "/api/status", Authorization="Bearer a-wrong-token-to-try")
    wait_until(lambda: server.err.count("security: a wrong token of the page came from 127.0.0.1") == 10, 10, "the warnings")
    assert TOKEN not in server.err and "a-wrong-token-to-try" not in server.err
    # A browser that is already logged in is not affected.
    assert 'flamewire_limit_reached_total{limit="wrong_tokens"} 5\n' in ask(server, "/metrics", Cookie=cookie)[2]


def test_stored_files_are_private(start, tmp_path):
    """Profiles contain program names, command lines and sources, so other users have no access to the files."""
    before = os.umask(0o022)
    try:
        server = start.server(data_dir=tmp_path / "new" / "data")
        program = start.workload("shares", 600)
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid)
        wait_until(lambda: server.sessions() and server.only_session()["samples"], 20, "samples")
        assert agent.stop() == 0
        server.wait_ended()
        server.get("/api/flamegraph")
        recorded = subprocess.run([BIN / "flamewire", "record", "-q", "--data-dir", tmp_path / "recorded" / "data", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], capture_output=True, text=True, timeout=60)
        assert recorded.returncode == 0, recorded.stderr
        # The input files are readable by everyone: a session, an archive and a file of another tool.
        files = [tmp_path / "own.flw", tmp_path / "archive.tar.zst", tmp_path / "stacks.folded"]
        session = next((tmp_path / "recorded" / "data" / "sessions").glob("**/*.flw"))
        files[0].write_bytes(session.read_bytes())
        for words in (["export", session, "--format", "flamewire", "-o", files[1]], ["export", session, "--format", "collapsed", "-o", files[2]],
                      ["import", "--data-dir", tmp_path / "imported" / "data", *files]):
            done = subprocess.run([BIN / "flamewire", *words], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in files)
    finally:
        os.umask(before)
    for folder in ("new", "recorded", "imported"):
        paths = [tmp_path / folder, *(tmp_path / folder).rglob("*")]
        assert len(paths) > 3
        modes = {str(path): stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths}
        assert not any(modes.values()), modes


def test_wrong_tokens_do_not_block_the_right_one(start, token_file):
    """Behind a proxy, all browsers share one address."""
    server = start.server("--http-token-file", token_file)
    for _ in range(30):
        status, headers, text = ask(server, "/?token=a-wrong-token-to-try")
        assert status == 401 and "not the token" in text and "Set-Cookie" not in headers
    assert ask(server, "/api/status")[0] == 401
    assert ask(server, "/api/status", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask(server, f"/?token={TOKEN}")[0] == 303


def test_access_from_other_machines(start):
    server = start.server("--http-bind", "0.0.0.0")
    path = server.data_dir / "http-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text(encoding="ascii").strip()
    assert re.fullmatch("[0-9a-f]{32}", token) and server.page.endswith(f"?token={token}")
    assert "not encrypted" in server.out
    assert token not in server.err
    assert ask(server, "/api/status")[0] == 401
    status, _, text = ask(server, "/api/status", Authorization=f"Bearer {token}")
    assert status == 200 and token not in text
    server.stop()
    # The next run has the same token, so bookmarks keep working.
    assert start.server("--http-bind", "0.0.0.0", name="again", data_dir=server.data_dir).page.endswith(token)


@pytest.mark.parametrize(("content", "words"), [("short", "at least 16 characters"), ("two words that are long", "one word"), (None, "No such file")])
def test_unusable_token_file(tmp_path, content, words):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content, encoding="ascii")
    run = subprocess.run([BIN / "flamewire-server", "--port", "0", "--http-port", "0", "--data-dir", tmp_path / "data", "--http-token-file", path], capture_output=True, text=True, timeout=20, check=False)
    assert run.returncode == 1 and words in run.stderr and str(path) in run.stderr and run.stderr.count("\n") == 1


@pytest.fixture(name="certificate")
def fixture_certificate(tmp_path):
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", chain, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return key, chain


def test_https(start, certificate, token_file):
    key, chain = certificate
    server = start.server("--http-cert", chain, "--http-key", key, "--http-token-file", token_file)
    assert server.page.startswith("https://127.0.0.1:")
    tls = ssl.create_default_context(cafile=chain)
    assert ask(server, "/api/status", tls=tls)[0] == 401
    status, headers, _ = ask(server, f"/?token={TOKEN}", tls=tls)
    assert status == 303 and "Secure" in headers["Set-Cookie"].split("; ")
    status, _, text = ask(server, "/app.js", tls=tls, Cookie=cookie_of(headers))
    assert status == 200 and len(text) > 100_000
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(server, "/api/status", Authorization=f"Bearer {TOKEN}")
    run = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.http_port}", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    assert "Cipher is (NONE)" in run.stdout


def test_unusable_certificate(tmp_path, certificate):
    key, chain = certificate

    def refused(*arguments):
        run = subprocess.run([BIN / "flamewire-server", "--port", "0", "--http-port", "0", "--data-dir", tmp_path / "data", *arguments], capture_output=True, text=True, timeout=20, check=False)
        assert run.returncode != 0 and run.stderr.count("\n") == 1
        return run.stderr

    assert "belong together" in refused("--http-cert", chain)
    assert "--http-cert" in refused("--http-cert", key, "--http-key", key)
    assert "--http-key" in refused("--http-cert", chain, "--http-key", chain)
    assert "--http-cert" in refused("--http-cert", tmp_path / "none", "--http-key", key)


def test_prefix_and_names(start, token_file):
    server = start.server("--http-prefix", "tools/profiler", "--http-name", "desk.example", "--http-token-file", token_file)
    assert urllib.parse.urlparse(server.page).path == "/tools/profiler/"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    status, headers, _ = ask(server, "/tools/profiler")
    assert status == 308 and headers["Location"] == "/tools/profiler/"
    # A proxy may forward paths with or without the prefix.
    for path in ("/tools/profiler/api/status", "/api/status"):
        assert ask(server, path, **bearer)[0] == 200
    assert ask(server, "/tools/profilers/api/status", **bearer)[0] == 404
    status, headers, _ = ask(server, f"/tools/profiler/?token={TOKEN}")
    assert status == 303 and headers["Location"] == "/tools/profiler/" and "Path=/tools/profiler/" in headers["Set-Cookie"]
    assert ask(server, "/api/status", Host="desk.example", **bearer)[0] == 200
    status, _, text = ask(server, "/api/status", Host="other.example", **bearer)
    assert status == 403 and "--http-name" in text
    # The page contains no absolute paths.
    page = ask(server, "/tools/profiler/", **bearer)[2]
    assert not re.search(r'(?:src|href)="/', page)
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    connection.request("GET", "/tools/profiler/api/stream", headers=bearer)
    assert connection.getresponse().headers["X-Accel-Buffering"] == "no"
    connection.close()


def test_metrics(start):
    server = start.server()
    program = start.workload("demo", 600)
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 1000, 20, "samples")
    status, headers, text = ask(server, "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(text)}

    def one(name):
        (sample,) = [sample for family in families.values() for sample in family.samples if sample.name == name]
        return sample

    assert all(family.documentation and family.type in ("counter", "gauge") for family in families.values())
    session = server.only_session()
    samples = one("flamewire_session_samples_total")
    assert samples.labels == {"session": session["id"], "target": session["target"]}
    assert 1000 < samples.value <= session["samples"]
    assert one("flamewire_session_lost_samples_total").value == session["lost"]
    agent = server.get("/api/agents")["agents"][0]
    assert one("flamewire_agents_connected").value == 1
    assert one("flamewire_agent_resident_memory_bytes").labels == {"agent": agent["id"], "host": agent["hello"]["platform"]["hostname"]}
    assert 0 < one("flamewire_agent_resident_memory_bytes").value < 64 << 20
    assert one("flamewire_agent_samples_read_total").value >= 1000
    # Compare with the server's own files in /proc.
    resident = int(pathlib.Path(f"/proc/{server.pid}/statm").read_text(encoding="ascii").split()[1]) * 4096
    assert one("process_resident_memory_bytes").value == pytest.approx(resident, rel=0.2)
    assert one("process_open_fds").value == pytest.approx(len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir())), abs=4)
    # The log records every command with its sender and target.
    server.command("pause")
    assert re.search(rf"command of 127\.0\.0\.1: pause {{}} to agent {agent['id']}", server.err)
