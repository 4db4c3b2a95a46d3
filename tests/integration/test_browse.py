"""The file picker over real HTTP: what the server shows of its machine, and what it never shows."""
import http.client
import json
import os
import pathlib
import subprocess
import urllib.parse

import pytest
from flamewire import BIN, TESTS_BIN, HttpError, Server, ended


@pytest.fixture
def desk(tmp_path, start):
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "deep" / "er").mkdir(parents=True)
    other.mkdir()
    (other / "secret.txt").write_text("nobody may know my size")
    (root / "notes.txt").write_text("hello")
    (root / "program").write_bytes((TESTS_BIN / "demo-workload").read_bytes())
    (root / "out").symlink_to(other)
    (root / "etc").symlink_to("/etc")
    (root / "proc").symlink_to(f"/proc/{os.getpid()}/root")
    return start.server("--browse-root", root), root, other


def test_a_folder_with_a_program(desk):
    server, root, _ = desk
    answer = server.get("/api/browse", path=root)
    assert answer["path"] == str(root.resolve()) and answer["parent"] == "" and answer["roots"] == [str(root.resolve())] and answer["left_out"] == 0
    entries = {entry["name"]: entry for entry in answer["entries"]}
    assert [entry["name"] for entry in answer["entries"]] == ["deep", "etc", "notes.txt", "out", "proc", "program"]
    assert entries["notes.txt"]["kind"] == "file" and entries["notes.txt"]["size_bytes"] == 5 and "elf" not in entries["notes.txt"]
    # readelf prints the expected build-id.
    notes = subprocess.run(["readelf", "-n", root / "program"], capture_output=True, text=True, check=True).stdout
    build_id = next((line.split(":")[1].strip() for line in notes.splitlines() if "Build ID:" in line), "")
    assert entries["program"]["elf"]["build_id"] == build_id
    assert entries["program"]["elf"]["arch"] == {"x86_64": "x86_64", "aarch64": "aarch64", "armv7l": "arm"}.get(os.uname().machine, os.uname().machine)
    assert entries["program"]["elf"]["symbols"] and entries["program"]["elf"]["debug_info"]
    assert [entry["name"] for entry in server.get("/api/browse")["entries"]] == [str(root.resolve())]
    assert server.get("/api/browse", path=root / "deep" / "er")["parent"] == str((root / "deep").resolve())


def test_nothing_outside_the_roots_is_shown(desk):
    server, root, other = desk
    for name in ("out", "etc", "proc"):
        entry = next(entry for entry in server.get("/api/browse", path=root)["entries"] if entry["name"] == name)
        assert entry == {"name": name, "kind": "other", "size_bytes": 0, "link": True, "outside": True}
    for path in (other, "/", "/etc", root.parent, root / ".." / "other", f"{root}/deep/../../other", root / "out", f"{root}/out/secret.txt", f"{root}/etc/passwd", f"{root}/proc/etc", f"{root}2",
                 "/proc/self/root", f"/proc/self/cwd/../..{other}", "/no/such/folder", f"//{root}/../other"):
        with pytest.raises(HttpError) as refused:
            server.get("/api/browse", path=path)
        assert refused.value.status == 403, path
        assert "--browse-root" in refused.value.error["message"] and "nobody" not in str(refused.value)
    for path, status in (("deep", 400), (root / "missing", 404), (f"{root}/" + "x" * 5000, 400)):
        with pytest.raises(HttpError) as refused:
            server.get("/api/browse", path=path)
        assert refused.value.status == status, path
    # Escapes are decoded once. A NUL is refused before the path is used.
    for raw, status in ((urllib.parse.quote(str(root)) + "%2F..%2Fother", 403), (urllib.parse.quote(str(root)) + "%252e%252e", 403), (urllib.parse.quote(str(root)) + "%00", 400)):
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
        connection.request("GET", "/api/browse?path=" + raw)
        response = connection.getresponse()
        assert response.status == status, raw
        json.loads(response.read())
        connection.close()
    assert server.request("POST", "/api/browse", body={}, check=False)[0] == 405


def test_a_folder_that_is_replaced_by_a_link_while_it_is_listed(desk):
    """At any moment, the server sees the folder or refuses the request. The content of the other folder never appears."""
    import threading
    server, root, other = desk
    over = threading.Event()
    swap, link = root / "swap", root / "swap-link"
    swap.mkdir()
    link.symlink_to(other)

    def turn():
        while not over.is_set():
            os.rename(swap, root / "kept")
            os.rename(link, swap)
            os.rename(swap, link)
            os.rename(root / "kept", swap)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(200):
            status, _, body = server.request("GET", "/api/browse", path=root / "swap")
            assert status in (200, 403, 404)
            assert "secret" not in json.dumps(body)
    finally:
        over.set()
        thread.join()


def test_default_roots_and_none(tmp_path):
    home, sysroot = tmp_path / "home", tmp_path / "sysroot"
    home.mkdir()
    sysroot.mkdir()
    with_home = Server(tmp_path, "--sysroot", sysroot, program=("env", f"HOME={home}", BIN / "flamewire-server"))
    with ended(with_home):
        roots = with_home.get("/api/browse")["roots"]
        assert str(home) in roots and str(sysroot) in roots and str(pathlib.Path(__file__).resolve().parents[2]) in roots
    closed = Server(tmp_path, "--browse-root", "none", name="closed", data_dir=tmp_path / "closed")
    with ended(closed):
        assert closed.get("/api/browse")["roots"] == [] and closed.get("/api/browse")["entries"] == []
        with pytest.raises(HttpError) as refused:
            closed.get("/api/browse", path=home)
        assert refused.value.status == 403
    wrong = subprocess.run([BIN / "flamewire-server", "--browse-root", "/no/such"], capture_output=True, text=True, timeout=30)
    assert wrong.returncode == 2 and "/no/such" in wrong.stderr and wrong.stderr.count("\n") == 1


def test_settings_stay_inside_of_the_roots(desk):
    """A request can set only paths that the page may browse."""
    server, root, other = desk
    for change in ({"source_dir": "/etc"}, {"source_dir": str(root / "etc")}, {"sysroot": "/"}, {"path_map": [f"/build={other}"]}, {"binary": "/bin/true"}, {"binaries": [str(root / "out" / "secret.txt")]}, {"map": "/etc/passwd"}):
        status, _, answer = server.request("PATCH", "/api/config", body=change)
        assert status == 403 and "is outside of the folders that this server shows" in answer["error"]["message"], (change, status, answer)
    status, _, config = server.request("PATCH", "/api/config", body={"source_dir": str(root / "deep"), "binary": str(root / "program")})
    assert status == 200 and config["source_dir"] == str(root / "deep") and config["binaries"] == [str(root / "program")], config


def test_a_request_cannot_start_a_program_of_another_user(desk):
    server, root, _ = desk
    tools = root / "tools"
    tools.mkdir()
    compiler = tools / "x-gcc"
    compiler.write_text(f"#!/bin/sh\ntouch {root}/started\necho {root}/deep\n")
    compiler.chmod(0o755)
    tools.chmod(0o777)
    for path in ("/api/config/toolchain", "/api/config"):
        status, _, answer = server.request("POST" if path.endswith("toolchain") else "PATCH", path, body={"toolchain_prefix": str(tools / "x-")})
        assert status == 403 and "others than root and the server's user can change it" in answer["error"]["message"], answer
    assert not (root / "started").exists()
    tools.chmod(0o755)
    assert server.request("POST", "/api/config/toolchain", body={"toolchain_prefix": str(tools / "x-")})[2]["sysroot"] == str(root / "deep")


def test_hidden_files_and_the_servers_files_are_not_sources(start, tmp_path):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id.c").write_text("secret\n")
    (home / "shown.c").write_text("int main;\n")
    (home / ".hidden.c").write_text("secret\n")
    (home / "link.c").symlink_to(home / ".ssh" / "id.c")
    (tmp_path / "some.folded").write_text("main;burn 10\n")
    server = start.server("--source-dir", home, "--import", tmp_path / "some.folded", data_dir=home / "data")
    server.wait_ended()
    (home / "data" / "own.c").write_text("secret\n")
    assert server.get("/api/source", file="shown.c")["lines"][0]["source"] == "int main;"
    for name in (".ssh/id.c", "id.c", ".hidden.c", "link.c", "data/own.c", "own.c", str(home / ".ssh" / "id.c"), str(home / "data" / "own.c"), "../home/.hidden.c"):
        assert server.request("GET", "/api/source", file=name)[0] == 404, name
