"""Names for modules that this machine does not have at the path on the target."""
import json
import random
import re
import shutil
import socket
import subprocess

from flamewire import BIN, TESTS_BIN, Relay, Tree, free_port, lost, open_files, share_of, wait_until
from hostile import Forged, HostileAgent


def names(server, **parameters):
    if not server.sessions():
        return set()
    return set(Tree(server.get("/api/flamegraph", min_share=0, **parameters)).names)


def module_of(server, name):
    return next(module for module in server.only_session()["modules"] if module["name"] == name)


def stripped_copy(folder, name="shares-workload", *options):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", *options, "-o", folder / name, TESTS_BIN / name], check=True)
    return folder / name


def test_the_sysroot_of_a_toolchain_live_and_in_replay(start, tmp_path):
    """The prefix of a cross compiler, given during the recording: its sysroot has the names for the live session and for its replay."""
    program = stripped_copy(tmp_path / "target")
    sysroot = tmp_path / "sdk" / "root"
    (sysroot / program.relative_to("/")).parent.mkdir(parents=True)
    shutil.copy(TESTS_BIN / "shares-workload", sysroot / program.relative_to("/"))
    compiler = tmp_path / "sdk" / "bin" / "arm-sdk-gcc"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\n[ "$*" = -print-sysroot ] && echo {sysroot}\n')
    compiler.chmod(0o700)
    server = start.server()
    workload = start.process("stripped", [program, "60"])
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 30, "samples")
    assert not any("burn_" in name for name in names(server))

    refused = server.request("POST", "/api/config/toolchain", body={"toolchain_prefix": str(tmp_path / "none-")})
    assert refused[0] == 400 and "none-gcc cannot be started" in refused[2]["error"]["message"], refused
    prefix = str(tmp_path / "sdk" / "bin" / "arm-sdk-")
    status, _, config = server.request("POST", "/api/config/toolchain", body={"toolchain_prefix": prefix})
    assert status == 200 and config["sysroot"] == str(sysroot) and config["toolchain_prefix"] == prefix, config
    assert server.get("/api/config/toolchain")["sysroot"] == str(sysroot)
    wait_until(lambda: any("burn_40" in name for name in names(server)), 30, "names")
    assert module_of(server, "shares-workload")["file"] == str(sysroot / program.relative_to("/"))

    assert agent.stop() == 0
    server.stop()
    # test_travel.py covers stored names. Here the names must be looked up again.
    next((server.data_dir / "sessions").glob("*/symbols.pb.zst")).unlink()
    again = start.server(name="again", data_dir=server.data_dir)
    session = again.sessions()[0]["id"]
    assert not any("burn_" in name for name in names(again, session=session))
    assert again.request("POST", "/api/config/toolchain", body={"toolchain_prefix": prefix})[0] == 200
    wait_until(lambda: any("burn_40" in name for name in names(again, session=session)), 30, "names in replay")
    again.stop()
    configured = start.server("--toolchain-prefix", prefix, name="configured", data_dir=server.data_dir)
    assert f"its sysroot {sysroot} is used" in configured.err
    wait_until(lambda: any("burn_40" in name for name in names(configured, session=session)), 30, "names from the start")
    configured.stop()
    silent = start.server("--toolchain-prefix", tmp_path / "none-", name="silent", data_dir=server.data_dir)
    assert "none-gcc cannot be started" in silent.err and "--sysroot" in silent.err


def test_a_linker_map_names_a_program_without_symbols(start, tmp_path):
    """A map given during the recording, for the module that its file name or MODULE= selects. An unused map is reported."""
    source = tmp_path / "spin.c"
    source.write_text("""
static __attribute__((noinline)) void hidden(unsigned long n) { for (volatile unsigned long i = 0; i < n; ++i) {} }
__attribute__((noinline)) void shown(unsigned long n) { for (volatile unsigned long i = 0; i < n; ++i) {} }
int main(void) { for (;;) { hidden(1000000); shown(1000000); } }
""")
    program = tmp_path / "spin"
    subprocess.run(["cc", "-O1", "-ffunction-sections", "-fno-omit-frame-pointer", "-s", source, "-o", program, f"-Wl,-Map={tmp_path / 'other.map'}"], check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    server = start.server()
    workload = start.process("spin", [program])
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 30, "samples")
    text = (tmp_path / "other.map").read_text()
    (tmp_path / "other.map").write_text(text.replace(f"OUTPUT({program} ", "OUTPUT(elsewhere "))

    def give(**change):
        status, _, answer = server.request("PATCH", "/api/config", body=change)
        assert status == 200, answer
        return answer

    assert server.request("PATCH", "/api/config", body={"map": str(source)})[0] == 400
    answer = give(map=str(tmp_path / "other.map"))
    assert answer["maps"] == [str(tmp_path / "other.map")] and any("matches no module" in note for note in answer["notes"]), answer
    assert not {"hidden", "shown"} & names(server)
    answer = give(maps=[f"spin={tmp_path / 'other.map'}"])
    assert answer["notes"] == [f"{tmp_path / 'other.map'} is used for {program}"]
    wait_until(lambda: {"hidden", "shown", "main"} <= names(server), 30, "names of the map")
    module = module_of(server, "spin")
    assert module["quality"] == "linker_map" and "no lines" in module["problem"] and "--binary" in module["remedy"], module
    give(map="")
    wait_until(lambda: not {"hidden", "shown"} & names(server), 30, "no names")
    (tmp_path / "other.map").rename(tmp_path / "spin.map")  # next to the program, so the server finds it without an option
    give(map="")
    wait_until(lambda: {"hidden", "shown", "main"} <= names(server), 30, "names of the map next to the program")


class Vanished:
    """A program that runs from a deleted file. Only the agent still has the file, because it opened it while the program ran."""

    def __init__(self, start, folder, *agent_arguments, port, add=0, name="shares-workload"):
        self.path = folder / "board" / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if add:
            padding = folder / "padding"
            padding.write_bytes(random.Random(7).randbytes(add))
            subprocess.run(["objcopy", "--add-section", f".debug_padding={padding}", TESTS_BIN / name, self.path], check=True)
        else:
            shutil.copy(TESTS_BIN / name, self.path)
        self.process = start.process("vanished", [self.path, "120"])
        self.agent = start.agent("--server", "127.0.0.1", "--port", port, "--pid", self.process.pid, "--frequency", 199, *agent_arguments)
        wait_until(lambda: str(self.path) in open_files(self.agent.pid), 30, "the agent to open the file")
        self.path.unlink()


def code_before(folder):
    """A pairing code of the server that will start later with this folder's data directory."""
    return subprocess.run([BIN / "flamewire-server", "--data-dir", folder / "data", "--new-key"], check=True, capture_output=True, text=True).stdout.split()[-1]


def fetch_of(server, name="shares-workload"):
    module = next((module for module in server.only_session()["modules"] if module["name"].split(" ")[0] == name), None) if server.sessions() else None
    return module and module["fetch"]


def test_names_from_the_agents_copy(start, tmp_path):
    port, code = free_port(), code_before(tmp_path)
    vanished = Vanished(start, tmp_path, "--pair", code, port=port)
    server = start.server(port=port)
    wait_until(lambda: any("burn_40" in name for name in names(server)), 60, "names from the agent")
    # A module's report is updated a moment after its first names.
    def named():
        modules = [module for module in server.only_session()["modules"] if module["name"].startswith("shares-workload")]
        return server.only_session()["samples"] > 500 and modules and modules[0]["quality"] == "debug_info" and modules[0]

    module = wait_until(named, 60, "the report")
    wait_until(lambda: abs(share_of(Tree(server.get("/api/flamegraph", min_share=0)).shares(), "burn_40") - 0.4) < 0.08, 30, "the share of burn_40")
    kept = server.data_dir / "modules" / f"of-{code[:16]}" / module["build_id"]
    assert module["quality"] == "debug_info" and module["file"] == str(kept) and module["problem"] == "", module
    fetch = module["fetch"]
    assert fetch["state"] == "arrived" and 0 < fetch["bytes"] == fetch["total_bytes"] < (TESTS_BIN / "shares-workload").stat().st_size, fetch
    assert {"session": server.only_session()["id"], "module": module["name"], "fetch": fetch} in server.get("/api/status")["module_fetches"]
    assert kept.stat().st_mode & 0o777 == 0o600 and not list(kept.parent.glob("*.part"))
    assert server.get("/api/source-files")["files"], "there are no lines"
    # The session's stream does not contain the file.
    stream = next((server.data_dir / "sessions").glob("*/stream.flw"))
    assert stream.stat().st_size < 200_000
    # A file that was sent once also serves the replay, and the next server on this folder.
    assert vanished.agent.stop() == 0
    server.stop()
    again = start.server(name="again", data_dir=server.data_dir)
    assert any("burn_40" in name for name in names(again, session=again.sessions()[0]["id"]))


def test_boards_of_one_kind_send_a_file_once(start, tmp_path):
    padding = 4 << 20
    port, code = free_port(), code_before(tmp_path)
    relays = [Relay(port, rate=6_000_000) for _ in range(2)]
    for number, relay in enumerate(relays):
        folder = tmp_path / str(number)
        folder.mkdir()
        Vanished(start, folder, "--pair", code, port=relay.port, add=padding)
    server = start.server(port=port)
    wait_until(lambda: len(server.sessions()) == 2, 60, "two sessions")
    for session in server.sessions():
        wait_until(lambda: any("burn_40" in name for name in names(server, session=session["id"])), 90, "names in both")
    # Only one of the boards sent the file, plus its samples.
    sent = sum(relay.bytes_up for relay in relays)
    assert padding < sent < 1.5 * padding, sent
    for relay in relays:
        relay.close()


def test_an_interrupted_transfer_resumes(start, tmp_path):
    padding = 24 << 20
    port, code = free_port(), code_before(tmp_path)
    relay = Relay(port, rate=6_000_000)
    Vanished(start, tmp_path, "--pair", code, port=relay.port, add=padding)
    server = start.server(port=port)
    modules = server.data_dir / "modules" / f"of-{code[:16]}"

    def arrived():
        parts = list(modules.glob("*.part"))
        return parts[0].stat().st_size if parts else 0

    for share in (0.2, 0.6):
        wait_until(lambda: arrived() > share * padding, 60, f"{share} of the file")
        relay.cut()
    wait_until(lambda: any("burn_40" in name for name in names(server)), 90, "names")
    total = fetch_of(server)["total_bytes"]
    assert total > padding
    # Each cut costs only the parts in flight. The samples are small in comparison.
    assert total * 0.9 < relay.bytes_up < total + (2 << 20), (total, relay.bytes_up)
    assert lost(server.only_session()) == 0
    relay.close()


def test_refusals_of_the_agent_are_reported(start, tmp_path):
    """The agent's size limit, its off switch and the server's size limit, each with its remedy; and a server that does not ask."""
    for name, agent_arguments, server_arguments, words in (
            ("cap", ["--module-cap", "100K"], [], ["the agent sends at most 102400", "--module-cap"]),
            ("off", ["--no-module-upload"], [], ["sends no files", "--no-module-upload"]),
            ("server-cap", [], ["--fetch-cap", "1"], ["this server accepts at most 1048576", "--fetch-cap"]),
            ("silent", [], ["--fetch-modules", "off"], None)):
        port = free_port()
        folder = tmp_path / name
        folder.mkdir()
        vanished = Vanished(start, folder, *agent_arguments, "--pair", code_before(folder), port=port, add=2 << 20)
        server = start.server(*server_arguments, port=port, name=name, data_dir=folder / "data")
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 200, 60, "samples")
        if words:
            fetch = wait_until(lambda: (fetch_of(server) or {}).get("state") == "refused" and fetch_of(server), 60, "a refusal")
            assert all(word in fetch["problem"] for word in words), fetch
        else:
            module = module_of(server, "shares-workload") if any(m["name"] == "shares-workload" for m in server.only_session()["modules"]) else None
            assert module is None or module["fetch"] is None
        assert not any("burn_" in name_ for name_ in names(server))
        assert not list((folder / "data").glob("modules/*"))
        vanished.agent.stop()
        vanished.process.stop()
        server.stop()


def test_a_server_cannot_read_other_files(start, tmp_path):
    """Only ELF files that the recording mapped can be read. No path opens anything else, whether it exists or not."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    program = start.workload("shares", 600)
    with Peer() as peer:
        agent = start.agent("--server", "127.0.0.1", "--port", peer.port, "--insecure", "--pid", program.pid, "--frequency", 199)
        peer.accept()
        status = secret.stat()
        for path in ("/etc/shadow", "/etc/passwd", str(secret), "/proc/self/mem", "../../etc/shadow", "/bin/ls", "/dev/zero", ""):
            for build_id in ("", "00" * 20, "ab"):
                for size, mtime in ((0, 0), (status.st_size, status.st_mtime_ns)):
                    flag, payload = peer.ask("fetch_module", build_id=build_id, path=path, size=size, mtime_ns=mtime, offset=0)
                    reply = json.loads(payload)
                    assert flag == 3 and reply["ok"] is False and reply["error"], (path, build_id, reply)
        for wrong in ({"build_id": "zz"}, {"build_id": 7}, {"build_id": "00", "bytes": 0}, {"build_id": "00", "bytes": 1 << 30}, {"build_id": "00", "offset": -1}, {}):
            flag, payload = peer.ask("fetch_module", **wrong)
            assert flag == 3 and json.loads(payload)["ok"] is False
        # A mapped file is sent, but never beyond its end.
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", TESTS_BIN / "shares-workload"], capture_output=True, text=True).stdout)[1]
        flag, payload = peer.ask("fetch_module", build_id=build_id, offset=0, bytes=1000)
        assert flag == 7
        head = json.loads(payload[4:4 + int.from_bytes(payload[:4], "big")])
        assert head["offset"] == 0 and head["file_size"] == (TESTS_BIN / "shares-workload").stat().st_size
        flag, payload = peer.ask("fetch_module", build_id=build_id, offset=head["total"] + 1)
        assert flag == 3 and json.loads(payload)["code"] == "changed"
        assert agent.alive()


class Peer:
    """A minimal server: sends arbitrary requests on a plain socket."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.socket = None
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in (self.socket, self.listener):
            if sock:
                sock.close()

    def accept(self):
        self.listener.settimeout(30)
        self.socket, _ = self.listener.accept()
        self.socket.settimeout(30)
        hello = json.loads(self.frame()[1])
        self.recording = hello["recording"] and hello["recording"]["id"]
        self.send(8, {"recording": self.recording, "seq": 0})
        # A batch arrived, so the recording runs and has found its modules.
        while self.frame()[0] not in (5, 6):
            pass

    def frame(self):
        while len(self.buffer) < 5 or len(self.buffer) < 5 + int.from_bytes(self.buffer[:4], "big"):
            data = self.socket.recv(65536)
            assert data, "the agent closed the connection"
            self.buffer += data
        end = 5 + int.from_bytes(self.buffer[:4], "big")
        frame, self.buffer = (self.buffer[4], self.buffer[5:end]), self.buffer[end:]
        return frame

    def send(self, flag, message):
        payload = json.dumps(message).encode()
        self.socket.sendall(len(payload).to_bytes(4, "big") + bytes([flag]) + payload)

    def ask(self, command, **args):
        self.count = getattr(self, "count", 0) + 1
        self.send(2, {"id": str(self.count), "cmd": command, "args": args})
        while True:
            flag, payload = self.frame()
            if flag == 7 or flag == 3 and json.loads(payload).get("id") == str(self.count):
                return flag, payload


def modules_of(server, session):
    return {row["module"]["name"]: row for row in server.get("/api/modules", session=session)["modules"]}


def send(server, identifier, content, begin, end, size, step=1 << 20):
    """Sends slices of an upload. Returns the last answer."""
    for offset in range(begin, end, step):
        status, _, answer = server.request("PUT", f"/api/uploads/{identifier}", body=content[offset:min(end, offset + step)], offset=offset, size=size)
        assert status == 200, answer
    return answer


def test_a_file_is_given_for_a_module_by_its_path_and_by_an_upload(start, tmp_path):
    """The modules panel: a state with its remedy, refusals that name both builds, and a resumed upload, which the next run also uses."""
    program = stripped_copy(tmp_path / "target")
    whole, other = TESTS_BIN / "shares-workload", TESTS_BIN / "threads-workload"
    server = start.server("--fetch-modules", "off")
    workload = start.process("stripped", [program, "60"])
    # Count user code only: the kernel's share grows with the number of other programs.
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 499, "--events", "cpu-clock:u")
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 200, 30, "samples")
    session = server.only_session()["id"]
    row = wait_until(lambda: (found := modules_of(server, session).get("shares-workload")) and found["module"]["state"] != "pending" and found, 30, "the module")
    module = row["module"]
    assert module["state"] == "stripped" and module["found"] == "target_path" and module["file"] == str(program), module
    assert module["problem"] and "--binary" in module["remedy"] and str(program) in module["tried"], module
    assert row["self_percent"] > 90 and row["total_percent"] >= row["self_percent"], row
    one = {"path": module["path"], "build_id": module["build_id"]}

    # A file of another build and an incomplete upload are refused, and nothing changes.
    status, _, answer = server.request("POST", "/api/modules", body={**one, "file": str(other)}, session=session)
    assert status == 400 and "build-id mismatch" in answer["error"]["message"] and module["build_id"][:16] in answer["error"]["message"], answer
    content, size = whole.read_bytes(), whole.stat().st_size
    assert server.request("GET", "/api/uploads/page-0001")[0] == 404
    half = size // 2
    assert send(server, "page-0001", content, 0, half, size)["offset"] == half
    assert server.request("POST", "/api/modules", body={**one, "upload": "page-0001"}, session=session)[0] == 409
    status, _, answer = server.request("PUT", "/api/uploads/page-0001", body=content[:10], offset=0, size=size)
    assert status == 409 and f"offset {half}" in answer["error"]["message"], answer
    for headers in ({"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for method, path, body in (("PUT", f"/api/uploads/page-0001?offset={half}&size={size}", content[half:half + 10]), ("POST", "/api/modules", {**one, "file": str(whole)}),
                                   ("DELETE", "/api/uploads/page-0001", None)):
            assert server.request(method, path, body=body, headers=headers)[0] == 403, (method, headers)
    assert server.request("PUT", "/api/uploads/page-0001", body=b"x" * ((1 << 20) + 1), offset=half, size=size)[0] == 413
    assert server.get("/api/uploads/page-0001")["offset"] == half

    assert send(server, "page-0001", content, half, size, size)["whole"]
    status, _, answer = server.request("POST", "/api/modules", body={**one, "upload": "page-0001"}, session=session)
    assert status == 200 and answer["module"]["state"] == "debug_info" and answer["module"]["found"] == "uploaded", answer
    wait_until(lambda: any("burn_40" in name for name in names(server)), 30, "names")
    assert server.request("GET", "/api/uploads/page-0001")[0] == 404
    wait_until(lambda: modules_of(server, session)["shares-workload"]["module"]["state"] == "debug_info", 30, "the state of the session's module")
    # A given path on the server becomes one of its binaries.
    status, _, answer = server.request("POST", "/api/modules", body={**one, "file": str(whole)}, session=session)
    assert status == 200 and str(whole) in server.get("/api/config")["binaries"], answer
    assert agent.stop() == 0
    server.stop()
    again = start.server(name="again", data_dir=server.data_dir)
    wait_until(lambda: any("burn_40" in name for name in names(again, session=session)), 30, "names in the next run")
    assert modules_of(again, session)["shares-workload"]["module"]["found"] == "uploaded"
    again.stop()


def test_the_server_asks_for_the_module_that_it_lacks(start):
    server = start.server("--insecure")
    forged = Forged(target="/board/program")
    with HostileAgent(server.port).hello("board", forged.id) as agent:
        agent.send(5, forged.batch(stacks=4, rows=4))
        command = wait_until(lambda: agent.await_frame(2), 20, "a command")
        assert command["cmd"] == "fetch_module"
        args = command["args"]
        assert args["build_id"] == forged.build_id.hex() and args["path"] == "/board/program" and args["offset"] == 0
        assert 0 < args["bytes"] <= 256 << 10 and args["size"] == 0 and args["mtime_ns"] == 0


def test_a_file_from_an_agent_is_not_used_for_other_keys(start, tmp_path):
    """A sender can claim any build-id: a wrong file is used only for recordings of its own sender."""
    server = start.server()
    thief_code = server.pair()
    build_id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", TESTS_BIN / "shares-workload"], check=True, capture_output=True, text=True).stdout)[1]
    false = tmp_path / "false"
    subprocess.run(["objcopy", "--strip-debug", "--prefix-symbols=false_", TESTS_BIN / "shares-workload", false], check=True)
    text = int(re.search(r"^([0-9a-f]+) T false_main$", subprocess.run(["nm", false], check=True, capture_output=True, text=True).stdout, re.M)[1], 16)
    forged = Forged(target="/board/shares-workload", build_id=bytes.fromhex(build_id), address=text)
    with HostileAgent(server.port, thief_code).hello("thief", forged.id) as thief:
        thief.send(5, forged.batch(stacks=4, rows=4))
        assert thief.serve_module(false.read_bytes()), "the server did not ask"
        theirs = wait_until(lambda: (server.sessions() and server.sessions()[0]["id"]), 20, "the session of the false file")
        named = lambda session: set(Tree(server.get("/api/flamegraph", session=session, min_share=0)).names)
        wait_until(lambda: "false_main" in named(theirs), 20, "its sender's own names")
    assert (server.data_dir / "modules" / f"of-{thief_code[:16]}" / build_id).exists()

    code = server.pair()
    assert code != thief_code
    pair = tmp_path / "pair"
    pair.write_text(code + "\n")
    pair.chmod(0o600)
    Vanished(start, tmp_path, "--pair-file", pair, port=server.port)
    ours = wait_until(lambda: next((one["id"] for one in server.sessions() if one["id"] != theirs), None), 30, "the other session")
    wait_until(lambda: any("burn_40" in name for name in named(ours)), 60, "names from its own agent")
    assert not any(name.startswith("false_") for name in named(ours)) and "false_main" in named(theirs)
    own = server.data_dir / "modules" / f"of-{code[:16]}" / build_id
    assert own.exists() and any(module["file"] == str(own) for module in server.session(ours)["modules"])
