"""Debug info that only a debuginfod server has: Debian's server on loopback, and servers that stall, send wrong data or disappear."""
import http.client
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest
from flamewire import BIN, ROOT, TESTS_BIN, Tree, free_port, wait_until
from test_code import disassembled

PROGRAM = "shares-workload"


def build_id_of(path):
    return re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout)[1]


def stripped(folder, program=TESTS_BIN / PROGRAM):
    """Returns a stripped copy below `folder`, and its debug info, which only a debuginfod server finds."""
    (folder / "target").mkdir(parents=True)
    (folder / "served").mkdir()
    target, debug = folder / "target" / PROGRAM, folder / "served" / f"{PROGRAM}.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "-o", target, program], check=True)
    return target, debug


def answers(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def debuginfod(start, folder, build_id, port=None):
    """Debian's debuginfod over the files of a folder. Returns its port once it serves the build."""
    port = port or free_port()
    start.process(f"debuginfod-{port}", ["debuginfod", "-F", "-p", port, "-d", folder / f"index-{port}", folder / "served"])
    wait_until(lambda: answers(port, f"/buildid/{build_id}/debuginfo") == 200, 30, "debuginfod's index")
    return port


class Front:
    """A debuginfod server in front of another: it forwards requests, holds them while `go` is cleared, or sends what a test chose for a build-id."""

    def __init__(self, behind=None):
        self.behind = behind
        self.go = threading.Event()
        self.go.set()
        self.asked, self.paths = [], []
        self.contents = {}
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                build_id = self.path.split("/")[2]
                front.asked.append(build_id)
                front.paths.append(self.path)
                front.go.wait()
                status, body = 404, b"not here"
                if build_id in front.contents:
                    status, body = 200, front.contents[build_id]
                elif front.behind:
                    connection = http.client.HTTPConnection("127.0.0.1", front.behind, timeout=30)
                    connection.request("GET", self.path)
                    answer = connection.getresponse()
                    status, body = answer.status, answer.read()
                    connection.close()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # the client disconnected

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


def module_of(server, name=PROGRAM):
    return next((module for module in server.only_session()["modules"] if module["name"] == name), None) if server.sessions() else None


def fetch_state(server):
    module = module_of(server)
    return module and module["debuginfod"] and module["debuginfod"]["state"]


def names(server):
    return set(Tree(server.get("/api/flamegraph", min_share=0)).names)


def record(start, server, program):
    workload = start.process("stripped", [program, "120"])
    return start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 199)


def test_names_and_lines_arrive_in_the_running_session_without_delays(start, tmp_path):
    target, debug = stripped(tmp_path)
    build_id = build_id_of(debug)
    front = Front(debuginfod(start, tmp_path, build_id))
    front.go.clear()
    try:
        server = start.server("--fetch-modules", "off", "--debuginfod", front.url)
        agent = record(start, server, target)
        wait_until(lambda: (module_of(server) or {}).get("state") == "fetching", 30, "the fetch")
        assert build_id in wait_until(lambda: build_id in front.asked and front.asked, 10, "the request")
        # The debuginfod server does not answer. Samples still arrive, and every view answers.
        before = server.only_session()["samples"]
        for _ in range(10):
            begin = time.monotonic()
            server.get("/api/flamegraph")
            server.get("/api/functions")
            server.get("/api/modules")
            assert time.monotonic() - begin < 5, "an answer waited for debuginfod"
            time.sleep(0.2)
        wait_until(lambda: server.only_session()["samples"] > before + 100, 20, "samples meanwhile")
        module = module_of(server)
        assert module["debuginfod"] == {"state": "asked", "bytes": 0, "total_bytes": 0, "problem": ""}, module
        assert not any("burn_" in name for name in names(server))

        front.go.set()
        wait_until(lambda: any("burn_40" in name for name in names(server)), 30, "names in the running session")
        module = wait_until(lambda: (found := module_of(server))["state"] == "debug_info" and found["debuginfod"]["state"] == "arrived" and found, 20, "the report")
        kept = server.data_dir / "debuginfod" / build_id / "debuginfo"
        assert module["debug_file"] == str(kept) and module["debug_found"] == "debuginfod" and module["file"] == str(target), module
        assert module["debuginfod"]["bytes"] == module["debuginfod"]["total_bytes"] == debug.stat().st_size == kept.stat().st_size, module
        assert module["problem"] == "" and kept.parent.parent.stat().st_mode & 0o777 == 0o700
        # Lines are found too, and addr2line reports the same ones.
        file = next(file["file"] for file in server.get("/api/source-files")["files"] if file["file"].endswith("shares.cc"))
        hot = {line["line"] for line in server.get("/api/source", file=file)["lines"] if line["total"] > 0}
        assert hot, "no line of shares.cc has samples"
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", TESTS_BIN / PROGRAM], check=True, capture_output=True, text=True).stdout
        addresses = re.findall(r"^\s+([0-9a-f]+):\t", code[:code.find("_fini>:")], re.M)
        known = subprocess.run(["addr2line", "-i", "-e", TESTS_BIN / PROGRAM], input="\n".join(addresses), check=True, capture_output=True, text=True).stdout
        assert hot <= {int(line) for line in re.findall(r"shares\.cc:(\d+)", known)}, hot

        # Each build-id is requested once, even if no server has it.
        wait_until(lambda: all(not module["debuginfod"] or module["debuginfod"]["state"] in ("arrived", "refused") for module in server.only_session()["modules"]), 30, "all answers")
        refused = [module for module in server.only_session()["modules"] if module["debuginfod"] and module["debuginfod"]["state"] == "refused"]
        assert all(module["debuginfod"]["problem"] == "no debuginfod server has it" for module in refused), refused
        time.sleep(2)
        assert len(front.asked) == len(set(front.asked)), front.asked
        assert agent.stop() == 0
        server.stop()
        # Downloaded files stay usable when no server may be asked any more.
        next((server.data_dir / "sessions").glob("*/symbols.pb.zst")).unlink()
        asked = len(front.asked)
        again = start.server(name="again", data_dir=server.data_dir)
        wait_until(lambda: any("burn_40" in name for name in set(Tree(again.get("/api/flamegraph", session=again.sessions()[0]["id"], min_share=0)).names)), 30, "names in replay")
        assert len(front.asked) == asked
    finally:
        front.close()


def test_a_source_comes_from_the_server_of_the_debug_info(start, tmp_path):
    """Requested in the background when it is displayed, and cached. Only files that the profile names are requested."""
    target, debug = stripped(tmp_path)
    front = Front(debuginfod(start, tmp_path, build_id_of(debug)))
    (tmp_path / "empty").mkdir()
    options = ["--fetch-modules", "off", "--debuginfod", front.url, "--source-dir", tmp_path / "empty"]
    try:
        server = start.server(*options)
        agent = record(start, server, target)
        wait_until(lambda: server.sessions() and any("burn_40" in name for name in names(server)), 60, "names in the running session")
        file = next(file["file"] for file in server.get("/api/source-files")["files"] if file["file"].endswith("shares.cc"))
        assert not any("/source/" in path for path in front.paths), front.paths

        front.go.clear()
        for _ in range(3):
            begin = time.monotonic()
            status, _, body = server.request("GET", "/api/source", file=file)
            assert status == 404 and body["error"]["tried"][-1] == "debuginfod: it is being requested", body
            server.get("/api/flamegraph")
            assert time.monotonic() - begin < 5, "an answer waited for debuginfod"
        status, _, body = server.request("GET", "/api/source", file="/etc/hostname")
        assert status == 404 and not any("debuginfod" in place for place in body["error"]["tried"]), body
        assert agent.stop() == 0
        server.wait_ended()
        version = server.only_session()["data_version"]
        front.go.set()
        wait_until(lambda: server.only_session()["data_version"] > version, 30, "the session to change as its source came")
        source = server.get("/api/source", file=file)
        text = pathlib.Path(file).read_text().splitlines()
        assert source["line_count"] == len(text) and [line["source"] for line in source["lines"]] == text[:len(source["lines"])]
        assert source["note"].startswith("as a debuginfod server sent it") and pathlib.Path(source["resolved"]).is_relative_to(server.data_dir / "debuginfod"), source["resolved"]
        assert any(line["total"] > 0 for line in source["lines"])
        assert [path for path in front.paths if "/source/" in path] == [path for path in front.paths if path.endswith("/shares.cc")] and len([path for path in front.paths if "/source/" in path]) == 1, front.paths
        session = server.only_session()["id"]
        server.stop()
    finally:
        front.close()
    # It stays cached when the server no longer answers. A missing file is reported as missing.
    again = start.server(*options, name="again", data_dir=server.data_dir)
    wait_until(lambda: again.request("GET", "/api/source", session=session, file=file)[0] == 200, 20, "the source that came before")
    shutil.rmtree(server.data_dir / "debuginfod")
    reason = wait_until(lambda: (place := again.request("GET", "/api/source", session=session, file=file)[2].get("error", {}).get("tried", [""])[-1]).startswith("debuginfod:") and "requested" not in place.split(":")[1] and place, 30, "the reason")
    assert "does not answer" in reason, reason


@pytest.mark.parametrize("with_debug_info", [True, False])
def test_a_program_without_a_local_file(start, tmp_path, with_debug_info):
    """The agent cannot send it either: names and machine code come from a debuginfod server's copy, with and without debug info."""
    target, debug = stripped(tmp_path)
    build_id = build_id_of(debug)
    served = tmp_path / "served" / PROGRAM
    if with_debug_info:
        shutil.copy(target, served)
    else:
        debug.unlink()
        subprocess.run(["strip", "-g", "-o", served, TESTS_BIN / PROGRAM], check=True)
    port = free_port()
    start.process("debuginfod", ["debuginfod", "-F", "-p", port, "-d", tmp_path / "index", tmp_path / "served"])
    for kind in ("executable", *(["debuginfo"] if with_debug_info else [])):
        wait_until(lambda: answers(port, f"/buildid/{build_id}/{kind}") == 200, 30, "debuginfod's index")
    front = Front(port)
    try:
        workload = start.process("gone", [target, "120"])
        wait_until(lambda: pathlib.Path(f"/proc/{workload.pid}/exe").resolve() == target, 10, "the program")
        target.unlink()
        server = start.server("--debuginfod", front.url)
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 199, "--no-module-upload")
        wait_until(lambda: server.sessions() and any("burn_40" in name for name in names(server)), 60, "names in the running session")
        module = wait_until(lambda: (found := next(one for one in server.only_session()["modules"] if PROGRAM in one["name"]))["debuginfod"]["state"] == "arrived" and found, 30, "the end of the fetch")
        kept = server.data_dir / "debuginfod" / build_id / "executable"
        assert module["file"] == str(kept) and module["found"] == "debuginfod" and kept.read_bytes() == served.read_bytes(), module
        assert (module["quality"], module["state"]) == (("debug_info", "debug_info") if with_debug_info else ("symbols", module["state"])), module
        assert [path for path in front.paths if build_id in path] == [f"/buildid/{build_id}/executable", f"/buildid/{build_id}/debuginfo"], front.paths
        # objdump finds the same instructions in the served program.
        name = next(name for name in names(server) if "burn_40" in name)
        code = server.get("/api/disasm", function=name)
        copy, rows = code["copies"][code["chosen"]], code["instructions"]
        assert code["problem"] == "" and code["file"] == str(kept), code["problem"]
        assert rows["address"] and rows["address"] == disassembled(served, copy["address"], copy["address"] + copy["size"])
        assert any(file["file"].endswith("shares.cc") for file in server.get("/api/source-files")["files"]) == with_debug_info
        assert agent.stop() == 0
        session = server.only_session()["id"]
        server.stop()
    finally:
        front.close()
    # The copy stays usable when the server no longer answers.
    next((server.data_dir / "sessions").glob("*/symbols.pb.zst")).unlink()
    again = start.server(name="again", data_dir=server.data_dir)
    wait_until(lambda: any("burn_40" in name for name in set(Tree(again.get("/api/flamegraph", session=session, min_share=0)).names)), 30, "names in replay")
    assert again.get("/api/disasm", session=session, function=name)["file"] == str(kept)


def test_no_server_is_asked_unless_the_user_enables_it(start, tmp_path):
    """DEBUGINFOD_URLS alone has no effect; --debuginfod env uses it. The command line fetches what it displays."""
    target, debug = stripped(tmp_path)
    build_id = build_id_of(debug)
    front = Front(debuginfod(start, tmp_path, build_id))
    environment = {**os.environ, "DEBUGINFOD_URLS": f"{front.url} ima:ignore"}
    try:
        recording = tmp_path / "some.flw"
        workload = start.process("stripped", [target, "60"])
        subprocess.run([BIN / "flamewire-agent", "--output", recording, "--pid", str(workload.pid), "--duration", "2", "--frequency", "199"], check=True, capture_output=True)
        command = [BIN / "flamewire", "report", recording, "--data-dir", tmp_path / "home"]
        without = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert "burn_40" not in without.stdout and front.asked == []
        for name, arguments, words in (("empty", ["--debuginfod", "env"], "DEBUGINFOD_URLS names no server"), ("word", ["--debuginfod", "debuginfod.example"], "--debuginfod takes http://HOST:PORT"),
                                       ("size", ["--debuginfod", front.url, "--debuginfod-cache-size", "much"], "--debuginfod-cache-size: a size is")):
            refused = subprocess.run([*command, *arguments], env={**os.environ, "DEBUGINFOD_URLS": ""}, capture_output=True, text=True)
            assert refused.returncode != 0 and words in refused.stderr, (name, refused)
        with_it = subprocess.run([*command, "--debuginfod", "env"], env=environment, capture_output=True, text=True, check=True)
        assert "burn_40" in with_it.stdout and build_id in front.asked, with_it
        # A cache limit that is too small, or an unreachable server: one message, and the report without these names.
        shutil.rmtree(tmp_path / "home")
        small = subprocess.run([*command, "--debuginfod", front.url, "--debuginfod-cache-size", "1K"], capture_output=True, text=True, check=True)
        assert "burn_40" not in small.stdout and "more bytes than --debuginfod-cache-size allows" in small.stderr, small
        gone = subprocess.run([*command, "--debuginfod", f"http://127.0.0.1:{free_port()}"], capture_output=True, text=True, check=True)
        assert re.search(r"^no debug info for .*: the debuginfod server http://127\.0\.0\.1:\d+ does not answer: Connection refused$", gone.stderr.strip()), gone
    finally:
        front.close()


def test_wrong_or_unreachable_servers_are_reported_and_harmless(start, tmp_path):
    target, debug = stripped(tmp_path)
    build_id = build_id_of(debug)
    front = Front()
    liar = pathlib.Path(shutil.which("objcopy")).resolve()
    front.contents[build_id] = liar.read_bytes()
    try:
        server = start.server("--fetch-modules", "off", "--debuginfod", front.url, name="lied-to")
        agent = record(start, server, target)
        wait_until(lambda: fetch_state(server) == "refused", 30, "the refusal")
        problem = module_of(server)["debuginfod"]["problem"]
        other = build_id_of(liar)
        assert problem == f"build-id mismatch: the debuginfod server {front.url} sent {other[:16]} for {build_id[:16]}", problem
        assert module_of(server)["state"] == "stripped" and not (server.data_dir / "debuginfod" / build_id / "debuginfo").exists()
        assert not any("burn_" in name for name in names(server))
        assert agent.stop() == 0
        server.stop()

        # No server is reachable: one notice for all modules. When a server appears, the notice ends and the names arrive.
        port = free_port()
        late = start.server("--fetch-modules", "off", "--debuginfod", f"http://127.0.0.1:{port}", name="late", data_dir=tmp_path / "late")
        agent = record(start, late, target)
        wait_until(lambda: any(notice["code"] == "debuginfod" for notice in (late.sessions() and late.only_session()["notices"]) or []), 30, "the notice")
        notice = next(notice for notice in late.only_session()["notices"] if notice["code"] == "debuginfod")
        assert notice["text"] == f"Names come from files on this machine, because the debuginfod server http://127.0.0.1:{port} does not answer: Connection refused." and "tried again" in notice["remedy"], notice
        debuginfod(start, tmp_path, build_id, port)
        wait_until(lambda: any("burn_40" in name for name in names(late)), 40, "names after the server came")
        wait_until(lambda: not any(notice["code"] == "debuginfod" for notice in late.only_session()["notices"]), 20, "the end of the notice")
        assert agent.stop() == 0

        # A stalled debuginfod server does not delay the exit of flamewire-server.
        late.stop()
        front.go.clear()
        stalled = start.server("--fetch-modules", "off", "--debuginfod", front.url, name="stalled", data_dir=tmp_path / "stalled")
        record(start, stalled, target)
        wait_until(lambda: fetch_state(stalled) == "asked", 30, "the request")
        assert stalled.stop() == 0
    finally:
        front.close()


def test_debug_info_that_dwz_shared_between_files(start, tmp_path):
    """Distributions pack debug info like this: the common part of several files is a separate file, which must be requested too."""
    whole, other = tmp_path / "whole", tmp_path / "other"
    source = tmp_path / "inlined.c"
    source.write_text("#include <stdint.h>\nstatic inline __attribute__((always_inline)) uint64_t inlined_step(uint64_t x)\n{\n  return (x * 3 + 1) % 1000003 % 10007;\n}\n"
                      "__attribute__((noinline)) uint64_t spin(uint64_t n)\n{\n  volatile uint64_t x = 1;\n  while (n--) x = inlined_step(x);\n  return x;\n}\n"
                      "int main(void)\n{\n  for (;;) spin(1000000);\n}\n")
    for path, define in ((whole, "A"), (other, "B")):
        subprocess.run(["gcc", "-g", "-O2", f"-D{define}", "-Wl,--build-id", "-o", path, source], check=True)
    target, debug = stripped(tmp_path, whole)
    twin, common = tmp_path / "served" / "other.debug", tmp_path / "served" / "common.debug"
    subprocess.run(["objcopy", "--only-keep-debug", other, twin], check=True)
    subprocess.run(["dwz", "-m", common, debug, twin], check=True)
    assert ".gnu_debugaltlink" in subprocess.run(["readelf", "-SW", debug], check=True, capture_output=True, text=True).stdout
    moved = tmp_path / "served" / "elsewhere"
    moved.mkdir()
    common.rename(moved / "common.debug")
    port = debuginfod(start, tmp_path, build_id_of(debug))
    wait_until(lambda: answers(port, f"/buildid/{build_id_of(moved / 'common.debug')}/debuginfo") == 200, 30, "the common file")
    recording = tmp_path / "some.flw"
    workload = start.process("spins", [target])
    subprocess.run([BIN / "flamewire-agent", "--output", recording, "--pid", str(workload.pid), "--duration", "2", "--frequency", "199"], check=True, capture_output=True)
    report = subprocess.run([BIN / "flamewire", "report", recording, "--data-dir", tmp_path / "home", "--debuginfod", f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True)
    assert "spin" in report.stdout and "inlined_step" in report.stdout, report


def test_a_missing_library_is_reported(start, tmp_path):
    """libdebuginfod is loaded on demand, so the server also runs on machines without it."""
    if shutil.which("unshare") is None:
        raise AssertionError("util-linux is one of the packages of the tests")
    folder = next(line.split(" => ")[1].rsplit("/", 1)[0] for line in subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout.splitlines() if "libdebuginfod.so.1 " in line)
    script = f'mount --bind /dev/null {folder}/libdebuginfod.so.1 && exec "$@"'
    server = start.server("--debuginfod", "http://127.0.0.1:9", program=("unshare", "--mount", "sh", "-c", script, "sh", BIN / "flamewire-server"))
    assert "--debuginfod: libdebuginfod.so.1 is not on this machine: install libdebuginfod1" in server.err, server.err
    assert server.get("/api/status")["status"] == "ok" and ROOT.exists()
