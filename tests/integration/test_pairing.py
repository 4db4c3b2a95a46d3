"""The link between agent and server: encrypted with a pairing key or refused, on loopback as on a network. This machine's own
address stands for a network address: connections from it are not loopback."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from flamewire import BIN, TESTS_BIN, HttpError, Relay, Server, children, free_port, wait_until

CODE = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}")
WRONG = "0123456789abcdef-00112233445566778899aabbccddeeff"


def own_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


OWN = own_address()


def printed_code(process):
    wait_until(lambda: "waiting for commands" in process.err, 10, "its start")
    return CODE.search(wait_until(lambda: CODE.search(process.out) and process.out, 10, "a pairing code"))[0]


def agents(server):
    return [agent for agent in server.get("/api/agents")["agents"] if agent["connected"]]


def connected(server, seconds=20):
    return wait_until(lambda: agents(server), seconds, "an agent")[0]


def turned_away(server, text, seconds=20):
    return wait_until(lambda: next((one for one in server.get("/api/status")["turned_away"] if text in one["reason"]), None), seconds, f"a refusal that contains {text!r}")


def pair_file(directory, code, name="pair"):
    path = directory / name
    path.write_text(code + "\n")
    path.chmod(0o600)
    return path


def key(server, identity):
    return next((one for one in server.get("/api/pairing")["keys"] if one["id"] == identity), None)


def manage(server, *arguments, code=0, text=None):
    done = subprocess.run([BIN / "flamewire-server", "--data-dir", server.data_dir, *arguments], input=text, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def test_the_printed_line_pairs_an_agent_of_another_machine(start):
    server = start.server()
    line = re.search(r"^On a target: (flamewire-agent --server (\S+) --port \d+ --pair (\S+))$", server.out, re.M)
    assert line and line[2] == OWN, server.out
    assert server.post("/api/pairing") == {"id": line[3][:16], "code": line[3], "command": line[1]}
    agent = start.agent(*line[1].split()[1:], "--frequency", 199, "--", TESTS_BIN / "shares-workload", 600)
    info = connected(server)
    assert info["link"] == "encrypted" and info["key"] == line[3][:16] and info["address"].startswith(OWN)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    assert agent.stop() == 128 + signal.SIGTERM, agent.err  # the exit code of its command
    session = wait_until(lambda: server.sessions() and server.sessions()[0]["end_reason"] and server.only_session(), 20, "the end")
    assert session["lost"] == 0
    used = wait_until(lambda: (one := key(server, line[3][:16])) and one["used"] and one, 10, "the use of the key")
    assert used["used_from"] == OWN
    # Each agent has its own key.
    assert server.post("/api/pairing")["code"] != line[3]
    # Secrets are only in the owner's file.
    assert os.stat(server.data_dir / "pairing-keys").st_mode & 0o777 == 0o600
    secret = line[3][17:]
    for text in (server.err, agent.err, agent.out, str(server.get("/api/status")), str(server.get("/api/pairing")), str(server.get("/api/agents"))):
        assert secret not in text


def test_the_code_is_not_visible_in_the_process(start):
    server = start.server()
    code = server.pair()
    for name, arguments, environment in (("argument", ["--pair", code], {}), ("joined", [f"--pair={code}"], {}), ("variable", [], {"FLAMEWIRE_PAIR": code})):
        agent = start.agent("--server", OWN, "--port", server.port, *arguments, "--", "sleep", 30, name=name, env={**os.environ, **environment})
        wait_until(lambda: "connected to" in agent.err, 20, "the connection")
        for pid in (agent.pid, children(agent.pid)[0]):
            for file in ("cmdline", "environ"):
                assert code[17:].encode() not in pathlib.Path(f"/proc/{pid}/{file}").read_bytes(), (name, pid, file)
        agent.stop()


@pytest.mark.parametrize("host", [OWN, "127.0.0.1"])
def test_without_a_code_nothing_is_sent(start, host):
    """Both ends refuse, also on loopback, where every user of the machine can connect and listen."""
    server = start.server()
    agent = start.agent("--server", host, "--port", server.port, name="plain", paired=False)
    wait_until(lambda: "a pairing code is needed" in agent.err and "--pair" in agent.err, 20, "the refusal")
    assert agent.alive() and not agents(server)
    agent.stop()
    # The server refuses an agent with --insecure, with a message at both ends.
    bold = start.agent("--server", host, "--port", server.port, "--insecure", name="bold")
    wait_until(lambda: "this server accepts only encrypted connections" in bold.err, 20, "the refusal")
    turned_away(server, "without encryption")
    assert not agents(server)
    bold.stop()
    server.stop()
    open_server = start.server("--insecure", name="open")
    assert "INSECURE" in open_server.out
    bold = start.agent("--server", host, "--port", open_server.port, "--insecure", name="bold-again")
    assert connected(open_server)["link"] == "insecure"
    assert "NOT ENCRYPTED" in open_server.err
    wait_until(lambda: ", NOT ENCRYPTED" in bold.err, 10, "the agent's message")
    # An agent with a code is encrypted there too.
    start.agent("--server", host, "--port", open_server.port, name="paired")
    wait_until(lambda: sorted(one["link"] for one in agents(open_server)) == ["encrypted", "insecure"], 20, "both")


def conversation(connection, greeting):
    """The other end's answer to `greeting`, until it closes the connection or has sent an unencrypted frame."""
    connection.settimeout(20)
    connection.sendall(greeting)
    output = b""
    with contextlib.suppress(ConnectionResetError):
        while (output[:1] != b"\0" or len(output) < 5 + int.from_bytes(output[:4], "big")) and (part := connection.recv(4096)):
            output += part
    return output


def frame(flag, payload):
    return len(payload).to_bytes(4, "big") + bytes([flag]) + payload


HELLO = frame(3, json.dumps({"type": "hello", "version": 1, "agent": "flamewire", "agent_version": "0", "platform": {"hostname": "forged"}}).encode())


def test_a_local_program_without_the_code_is_not_accepted_as_an_agent(start):
    """A server on loopback sends it a refusal, but no acknowledgement and no command. It is in no list."""
    server = start.server("--bind", "127.0.0.1")
    with socket.create_connection(("127.0.0.1", server.port)) as here:
        output = conversation(here, HELLO)
    assert output[4:5] == b"\x09" and b"only encrypted connections" in output and len(output) == 5 + int.from_bytes(output[:4], "big"), output
    turned_away(server, "without encryption")
    assert server.get("/api/agents")["agents"] == [] and server.sessions() == []


def test_a_local_program_without_the_code_is_not_accepted_as_a_server(start):
    """An agent with a code sends it only a handshake. An agent without a code sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        port = listener.getsockname()[1]
        for name, options in (("coded", ["--pair", WRONG]), ("uncoded", [])):
            agent = start.agent("--server", "127.0.0.1", "--port", port, *options, name=name)
            connection, _ = listener.accept()
            with connection:
                command = frame(8, b'{"recording":null,"seq":0}') + frame(2, b'{"id":"1","cmd":"list_processes","args":{}}')
                output = conversation(connection, command)
            assert b"hello" not in output and b"hostname" not in output and (output[:1] == b"\x16" if options else not output), (name, output)
            wait_until(lambda: "no server at" in agent.err, 20, "its message")
            assert "connected to" not in agent.err
            agent.stop()


def test_a_server_sends_nothing_to_a_local_program_without_the_code(start):
    server = start.server("--bind", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        port = listener.getsockname()[1]
        server.post("/api/agent/dials", {"host": "127.0.0.1", "port": port})
        connection, _ = listener.accept()
        with connection:
            assert conversation(connection, HELLO) == b""
    wait_until(lambda: any("a pairing code is needed" in one["problem"] for one in server.get("/api/agent/dials")["dials"]), 20, "the reason")
    assert server.get("/api/agents")["agents"] == []


def test_both_ends_report_a_wrong_code(start):
    server = start.server()
    code = server.pair()
    agent = start.agent("--server", OWN, "--port", server.port, "--pair-file", pair_file(start.directory, WRONG))
    wait_until(lambda: "pairing keys of the two ends are not the same" in agent.err, 20, "a clear message")
    refused = turned_away(server, "its pairing code is not from this server")
    assert refused["address"].startswith(OWN)
    agent.stop()
    # A valid id with a wrong secret is refused too.
    forged = start.agent("--server", OWN, "--port", server.port, "--pair-file", pair_file(start.directory, code[:17] + "00" * 16, "forged"), name="forged")
    wait_until(lambda: "pairing keys of the two ends are not the same" in forged.err, 20, "a clear message")
    forged.stop()


def first_handshake_message():
    """The first message of an agent with a wrong code."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        with subprocess.Popen([BIN / "flamewire-agent", "--server", "127.0.0.1", "--port", str(listener.getsockname()[1]), "--pair", WRONG], stderr=subprocess.DEVNULL) as agent:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    return connection.recv(4096)
            finally:
                agent.kill()


@contextlib.contextmanager
def wrong_handshakes(port, programs=8):
    """Inside the block, this many programs on this address start one handshake after another, as fast as the other end answers. Yields the list
    of answered handshakes. Each program has only one at a time, so the other end keeps up even on a slow machine."""
    greeting, answered, over = first_handshake_message(), [], threading.Event()

    def shake():
        while not over.is_set():
            with contextlib.suppress(OSError), socket.create_connection((OWN, port), timeout=10) as one:
                one.sendall(greeting)
                if one.recv(4096)[:1] == b"\x16":
                    answered.append(1)

    threads = [threading.Thread(target=shake) for _ in range(programs)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def unfinished_handshakes(port, count=60):
    """Inside the block, this many handshakes of this address have started and do not continue, as far as the other end allows."""
    greeting = first_handshake_message()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.create_connection((OWN, port), timeout=10))
            with contextlib.suppress(OSError):
                one.sendall(greeting)
                one.recv(1)
        yield


def test_wrong_codes_do_not_block_the_right_one(start):
    """While an address tries wrong codes, an agent on the same address with the right code connects at its first attempt."""
    server = start.server()
    code = pair_file(start.directory, server.pair())
    for name, hindrance in (("flood", wrong_handshakes), ("stalled", unfinished_handshakes)):
        with hindrance(server.port) as answered:
            if answered is not None:
                wait_until(lambda count=answered: len(count) > 60, 60, "more wrong codes than an address may try at once")
            agent = start.agent("--server", OWN, "--port", server.port, "--pair-file", code, name=name)
            wait_until(lambda one=agent: "connected to" in one.err, 60, "the connection")
            assert "no server" not in agent.err and connected(server)["link"] == "encrypted"
        agent.stop()
        wait_until(lambda: not agents(server), 20, "it to disconnect")


def test_wrong_codes_do_not_block_the_server_of_a_listening_agent(start):
    server, port = start.server(), free_port()
    agent = start.agent("--listen", "--port", port)
    code = printed_code(agent)
    for hindrance in (wrong_handshakes, unfinished_handshakes):
        with hindrance(port) as answered:
            if answered is not None:
                wait_until(lambda count=answered: len(count) > 60, 60, "more wrong codes than an address may try at once")
            assert server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": code})["ok"]
            assert connected(server)["link"] == "encrypted"
        assert server.request("DELETE", "/api/agent/dials", host=OWN, port=port)[0] == 200
        wait_until(lambda: not agents(server), 20, "it to disconnect")


def test_keys_are_created_and_withdrawn_while_the_server_runs(start):
    server = start.server()
    code = CODE.search(manage(server, "--new-key"))[0]
    agent = start.agent("--server", OWN, "--port", server.port, "--pair-file", pair_file(start.directory, code))
    connected(server)
    wait_until(lambda: key(server, code[:16])["used"], 10, "the use of the key")
    assert code[:16] in manage(server, "--list-keys") and code[17:] not in manage(server, "--list-keys")
    assert "is withdrawn" in manage(server, "--withdraw-key", code[:16])
    wait_until(lambda: not agents(server), 10, "the end of its connection")
    wait_until(lambda: "pairing keys of the two ends are not the same" in agent.err, 30, "the refusal")
    agent.stop()
    assert "there is no pairing key" in manage(server, "--withdraw-key", code[:16], code=1)
    # The same through the page.
    other = server.pair()
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pair-file", pair_file(start.directory, other, "other"), name="other")
    connected(server)
    status, _, rest = server.request("DELETE", "/api/pairing", id=other[:16])
    assert status == 200 and other[:16] not in str(rest)
    wait_until(lambda: not agents(server), 10, "the end of its connection")
    assert server.request("DELETE", "/api/pairing", id=other[:16])[0] == 404
    # Other sites can neither read nor change the keys.
    for method in ("POST", "DELETE"):
        assert server.request(method, "/api/pairing", headers={"Origin": "http://evil.example"}, check=False)[0] == 403
    # A file that others can read is refused, and the keys stay valid.
    (server.data_dir / "pairing-keys").chmod(0o644)
    os.utime(server.data_dir / "pairing-keys")
    wait_until(lambda: "chmod 600" in server.err, 10, "the warning")
    server.stop()
    with pytest.raises(AssertionError, match="chmod 600"):
        Server(start.directory, name="again", data_dir=server.data_dir)


def test_a_listening_agent_asks_for_its_code(start):
    server = start.server()
    port, begin = free_port(), time.monotonic()
    agent = start.agent("--listen", "--port", port)
    code = printed_code(agent)
    assert code[17:] not in agent.err
    with pytest.raises(HttpError) as refused:
        server.post("/api/agent/connect", {"host": OWN, "port": port})
    assert "a pairing code is needed" in str(refused.value)
    with pytest.raises(HttpError) as refused:
        server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": "nonsense"})
    assert refused.value.status == 400 and "16 digits" in str(refused.value)
    with pytest.raises(HttpError) as refused:
        server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": WRONG})
    assert "does not take this pairing code" in str(refused.value)
    wait_until(lambda: "was turned away" in agent.err, 10, "the agent's message")
    # Such lines cannot fill the disk: there are at most 20 per minute, and one line with the number of others.
    for _ in range(30):
        with pytest.raises(HttpError):
            server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": WRONG})
    assert agent.err.count("was turned away") <= 20 * (1 + (time.monotonic() - begin) // 60), agent.err
    assert server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": code})["ok"]
    assert connected(server)["link"] == "encrypted"
    # The code is stored, so a restarted server connects without the user.
    server.stop()
    again = start.server("--agent", f"{OWN}:{port}", name="again", data_dir=server.data_dir)
    assert connected(again, 60)["link"] == "encrypted"
    again.stop()
    # The same without the page.
    third = start.server(name="third", data_dir=start.directory / "third")
    assert "tried at the next connection" in manage(third, "--pair-agent", f"{OWN}:{port}", text=code + "\n")
    third.post("/api/agent/dials", {"host": OWN, "port": port})
    assert connected(third, 60)["link"] == "encrypted"


def test_a_new_code_takes_the_place_of_the_old_one_once_it_has_worked(start):
    """A wrong or invented code must not disconnect a known agent."""
    server, port = start.server(), free_port()
    agent = start.agent("--listen", "--port", port)
    code = printed_code(agent)

    def kept():
        lines = (server.data_dir / "pairing-keys").read_text().splitlines()
        return [one["secret"] for one in map(json.loads, lines) if one.get("address") == f"{OWN}:{port}"]

    assert server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": code})["ok"]
    before = kept()
    assert len(before) == 1
    for wrong in (code[:17] + "0" * 32, WRONG):
        server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": wrong})  # the agent is already connected
        assert kept() == before
    agent.stop()
    wait_until(lambda: not any(one["connected"] for one in server.get("/api/agents")["agents"]), 20, "it to disconnect")
    file = start.directory / "code"
    file.write_text(code)
    file.chmod(0o600)
    start.agent("--listen", "--port", port, "--pair-file", file, name="again")
    assert connected(server, 90)["link"] == "encrypted"
    assert kept() == before


def test_the_code_is_asked_for_on_this_machine_too(start):
    """Every user of a machine can connect on loopback, so the code is required, whether it was generated or chosen."""
    server = start.server()
    for name, options in (("made", ()), ("chosen", ("--pair-file", start.directory / "code"))):
        port = free_port()
        agent = start.agent("--listen", "--port", port, *options, name=name)
        for greeting in (b"", b"\0\0\0\2\2{}"):
            with socket.create_connection(("127.0.0.1", port)) as here:
                here.settimeout(10)
                here.sendall(greeting)
                answer = b""
                with contextlib.suppress(ConnectionResetError):
                    while part := here.recv(4096):
                        answer += part
            assert b"hello" not in answer and b"hostname" not in answer and (greeting or b"only encrypted connections" in answer)
        with pytest.raises(HttpError) as refused:
            server.post("/api/agent/connect", {"host": "127.0.0.1", "port": port})
        assert "give the code that the agent printed when it started" in str(refused.value)
        code = options[1].read_text().strip() if options else printed_code(agent)
        assert server.post("/api/agent/connect", {"host": "127.0.0.1", "port": port, "pair": code})["ok"] and agent.alive()


def test_a_listening_agent_without_a_code_on_request(start):
    port = free_port()
    agent = start.agent("--listen", "--port", port, "--insecure")
    with socket.create_connection(("127.0.0.1", port)) as here:
        here.settimeout(10)
        assert b'"type":"hello"' in here.recv(4096)
    server = start.server("--insecure")
    assert server.post("/api/agent/connect", {"host": "127.0.0.1", "port": port})["ok"] and connected(server)["link"] == "insecure"
    assert agent.alive()


def test_a_listening_agent_refuses_what_is_not_encrypted(start):
    port = free_port()
    agent = start.agent("--listen", "--port", port)
    printed_code(agent)
    for greeting in (b"", b"\0\0\0\2\2{}", b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection((OWN, port)) as plain:
            plain.settimeout(10)
            plain.sendall(greeting)
            answer = b""
            try:
                while part := plain.recv(4096):
                    answer += part
            except ConnectionResetError:
                pass
            assert b"hello" not in answer and b"hostname" not in answer, answer
            if not greeting:
                assert b"this agent accepts only encrypted connections" in answer
    assert agent.alive()


def test_a_file_keeps_a_listening_agents_code(start):
    file = start.directory / "pairing"
    first = start.agent("--listen", "--port", free_port(), "--pair-file", file)
    wait_until(lambda: f"is in {file}" in first.err, 10, "the file")
    assert os.stat(file).st_mode & 0o777 == 0o600
    code = CODE.fullmatch(file.read_text().strip())[0]
    assert not CODE.search(first.out + first.err)
    first.stop()
    second = start.agent("--listen", "--port", free_port(), "--pair-file", file, name="second")
    wait_until(lambda: "waiting for commands" in second.err, 10, "its start")
    assert file.read_text().strip() == code
    file.chmod(0o644)
    third = start.agent("--listen", "--port", free_port(), "--pair-file", file, name="third")
    assert third.wait(10) == 1 and f"chmod 600 {file}" in third.err
    fourth = start.agent("--server", OWN, "--pair-file", start.directory / "none", name="fourth")
    assert fourth.wait(10) == 1 and "No such file" in fourth.err
    wrong = start.agent("--server", OWN, "--pair", "nonsense", name="wrong")
    assert wrong.wait(10) == 2 and "16 digits" in wrong.err


def test_a_file_with_another_code_takes_effect_without_a_restart(start):
    server, port, file = start.server(), free_port(), start.directory / "pairing"
    program = start.workload("shares", 600)
    agent = start.agent("--listen", "--port", port, "--pair-file", file, "--pid", program.pid, "--frequency", 199)
    wait_until(lambda: "listening on" in agent.err, 10, "its start")
    code = file.read_text().strip()
    server.post("/api/agent/dials", {"host": OWN, "port": port, "pair": code})
    assert connected(server)["link"] == "encrypted"
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 30, 20, "samples")
    # An unusable code changes nothing and is reported once.
    file.write_text("nonsense\n")
    wait_until(lambda: "the pairing code was not changed" in agent.err and "16 digits" in agent.err, 20, "the message")
    assert agents(server) and agent.err.count("code was not changed") == 1
    other = "fedcba9876543210-" + "5a" * 16
    pair_file(start.directory, other, "next").rename(file)
    wait_until(lambda: "has another pairing code now" in agent.err and not agents(server), 20, "the end of the old code")
    wait_until(lambda: any("does not take this pairing code" in one["problem"] for one in server.get("/api/agent/dials")["dials"]), 30, "the server's message")
    assert not CODE.search(agent.err)
    server.request("DELETE", "/api/agent/dials", host=OWN, port=port)
    # The server's attempts with a wrong code do not block the new one.
    assert server.post("/api/agent/connect", {"host": OWN, "port": port, "pair": other})["ok"]
    assert connected(server)["link"] == "encrypted"
    # It is the same agent, and its recording continues.
    samples = server.only_session()["samples"]
    wait_until(lambda: server.only_session()["samples"] > samples + 30, 20, "more samples")
    assert server.only_session()["lost"] == 0


def test_a_key_takes_the_place_of_another_one(start):
    """While both run, the recording continues and the old code becomes invalid."""
    server = start.server()
    old = server.pair()
    file = pair_file(start.directory, old)
    program = start.workload("shares", 600)
    line = Relay(server.port)
    agent = start.agent("--server", "127.0.0.1", "--port", line.port, "--pair-file", file, "--pid", program.pid, "--frequency", 199)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 30, 20, "samples")
    new = CODE.search(manage(server, "--renew-key", old[:16]))[0]
    assert "there is no pairing key" in manage(server, "--renew-key", "0" * 16, code=1)
    assert server.pair() not in (old, new)
    pair_file(start.directory, new, "following").rename(file)
    assert connected(server)["link"] == "encrypted" and "another pairing code" not in agent.err  # the connection is not affected
    line.cut()
    wait_until(lambda: "has another pairing code now" in agent.err and connected(server), 30, "its return")
    wait_until(lambda: key(server, old[:16]) is None and key(server, new[:16])["used"], 20, "the end of the old key")
    samples = wait_until(lambda: server.only_session()["samples"], 10, "the session")
    wait_until(lambda: server.only_session()["samples"] > samples + 30, 20, "more samples")
    assert server.only_session()["lost"] == 0 and "security:" not in server.err
    late = start.agent("--server", OWN, "--port", server.port, "--pair-file", pair_file(start.directory, old, "old"), name="late")
    wait_until(lambda: "keys of the two ends are not the same" in late.err, 20, "the refusal")
    line.close()


def test_a_key_works_at_once(start):
    """The first attempt with a key that another process has just created succeeds."""
    server = start.server()
    for number in range(3):
        code = CODE.search(manage(server, "--new-key"))[0]
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pair-file", pair_file(start.directory, code, f"pair-{number}"), name=f"agent-{number}")
        wait_until(lambda: "connected to" in agent.err, 20, "the connection")
        assert "keys of the two ends" not in agent.err, agent.err


def test_a_wrong_port_is_reported(start):
    """The port of the page, which is not for agents, and a peer with another version."""
    server = start.server("--insecure")
    agent = start.agent("--server", "127.0.0.1", "--port", server.http_port, "--pair-file", pair_file(start.directory, WRONG))
    wait_until(lambda: "its page has another port" in agent.err, 20, "a clear message")
    with pytest.raises(HttpError, match="it may not be flamewire-agent"):
        server.post("/api/agent/connect", {"host": "127.0.0.1", "port": server.http_port, "pair": WRONG})
    with pytest.raises(HttpError, match="pair must be the pairing code"):
        server.post("/api/agent/connect", {"host": "127.0.0.1", "port": server.http_port, "pair": 5})
    hello = json.dumps({"type": "hello", "version": 2, "agent": "flamewire", "agent_version": "9", "platform": {}}).encode()
    for data, word in ((hello, b"update the server"), (b" " * (300 << 10), b"")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as strange:
            with contextlib.suppress(ConnectionError):
                strange.sendall(len(data).to_bytes(4, "big") + b"\x03" + data)
                assert word in strange.recv(1000)
    turned_away(server, "speaks version 2 of the wire protocol")
    turned_away(server, "its hello has 307200 bytes")


def records(stream):
    """(type, length) of each TLS record. The stream contains nothing else."""
    at = 0
    while at < len(stream):
        kind, version, length = stream[at], stream[at + 1:at + 3], int.from_bytes(stream[at + 3:at + 5], "big")
        assert kind in (20, 21, 22, 23) and version in (b"\x03\x01", b"\x03\x03") and length <= 16384 + 2048, (at, stream[at:at + 16])
        yield kind, length
        at += 5 + length


def test_no_byte_of_the_connection_is_readable(start):
    server = start.server()
    code = server.pair()
    seen = {"up": bytearray(), "down": bytearray()}
    relay = Relay(server.port, watch=lambda direction, data: seen[direction].extend(data))
    agent = start.agent("--server", "127.0.0.1", "--port", relay.port, "--pair-file", pair_file(start.directory, code), "--frequency", 199, "--", TESTS_BIN / "shares-workload", 600)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    assert agent.stop() == 128 + signal.SIGTERM, agent.err
    wait_until(lambda: server.sessions()[0]["end_reason"], 20, "the end")
    for stream in seen.values():
        kinds = [kind for kind, _ in records(bytes(stream))]
        assert kinds[0] == 22 and 23 in kinds and set(kinds[kinds.index(20) + 2:]) <= {23, 21}, kinds
        for word in (b"hello", b"shares", b"workload", b"flamewire", b"boot_id", b"recording", code[17:].encode(), bytes.fromhex(code[17:]), b"\x28\xb5\x2f\xfd"):
            assert word not in stream, word
    assert code[:16].encode() in seen["up"]  # the id is not a secret
    relay.close()


SUITE = ["-tls1_2", "-cipher", "ECDHE-PSK-CHACHA20-POLY1305"]


def openssl_client(port, code, *options):
    """OpenSSL's output for a connection to `port` with `code`, including whether the handshake succeeded."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-psk_identity", code[:16], "-psk", code[17:], *(options or SUITE)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=30, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


def test_openssl_negotiates_the_expected_protocol(start):
    server = start.server()
    code = server.pair()
    output = openssl_client(server.port, code)
    assert "Cipher is ECDHE-PSK-CHACHA20-POLY1305" in output and "Protocol  : TLSv1.2" in output, output
    assert "Server Temp Key: X25519" in output and "Extended master secret: yes" in output and "Secure Renegotiation IS NOT supported" not in output, output
    assert "Cipher is ECDHE-PSK" not in openssl_client(server.port, code[:17] + "00" * 16) or "alert bad record mac" in openssl_client(server.port, code[:17] + "00" * 16)
    # Weaker ciphers, and ciphers without forward secrecy, are refused.
    for options in (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2", "-cipher", "PSK-AES128-CBC-SHA:@SECLEVEL=0"], ["-tls1_2", "-cipher", "DHE-PSK-CHACHA20-POLY1305"],
                    ["-tls1_2", "-cipher", "ECDHE-PSK-AES128-CBC-SHA256:@SECLEVEL=0"], ["-tls1_3"]):
        output = openssl_client(server.port, code, *options)
        assert "alert" in output and "Cipher is (NONE)" in output, (options, output)


def test_openssl_decrypts_what_the_agent_sends(start):
    port = free_port()
    code = "00112233445566aa-0123456789abcdef0123456789abcdef"
    # openssl exits at the end of its standard input.
    with subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-nocert", "-psk_identity", code[:16], "-psk", code[17:], *SUITE], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as theirs:
        assert any(b"ACCEPT" in line for line in iter(theirs.stdout.readline, b""))
        agent = start.agent("--server", "127.0.0.1", "--port", port, "--pair-file", pair_file(start.directory, code))
        output = b""
        while b'"type":"hello"' not in output:
            part = os.read(theirs.stdout.fileno(), 65536)
            assert part, output
            output += part
        assert b"CIPHER is ECDHE-PSK-CHACHA20-POLY1305" in output
        agent.stop()
        theirs.kill()


def test_tshark_sees_tls_and_nothing_else(start):
    server = start.server()
    capture = start.directory / "link.pcapng"
    shark = start.process("tshark", ["tshark", "-q", "-i", "lo", "-f", f"tcp port {server.port}", "-w", capture])
    wait_until(lambda: "Capturing on" in shark.err and capture.exists() and capture.stat().st_size, 20, "tshark")
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pair-file", pair_file(start.directory, server.pair()), "--frequency", 199, "--", TESTS_BIN / "shares-workload", 2)
    assert agent.wait(60) == 0, agent.err
    wait_until(lambda: server.sessions() and server.sessions()[0]["end_reason"], 20, "the end")

    def read(*arguments):
        done = subprocess.run(["tshark", "-r", capture, "-d", f"tcp.port=={server.port},tls", *arguments], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.split()

    sent = lambda: sum(map(int, read("-T", "fields", "-e", "tcp.len")))  # noqa: E731
    wait_until(lambda: read("-Y", "tcp.flags.fin == 1", "-T", "fields", "-e", "frame.number"), 20, "the last packet")
    shark.stop()
    assert sent() > 2000
    assert set(read("-T", "fields", "-e", "tls.handshake.ciphersuite", "-Y", "tls.handshake.type == 2")) == {"0xccac"}
    lengths = [int(length) for packet in read("-T", "fields", "-e", "tls.record.length", "-Y", "tls.record.length") for length in packet.split(",")]
    # Each byte of both directions is in a record: a header of 5 bytes and its payload.
    assert sum(lengths) + 5 * len(lengths) == sent()
    assert read("-Y", "_ws.malformed or data", "-T", "fields", "-e", "frame.number") == []


def test_a_journal_gets_no_code(start):
    """systemd sets JOURNAL_STREAM when it reads the output. More people read a journal than a terminal."""
    server = start.process("server", [BIN / "flamewire-server", "--port", 0, "--http-port", 0, "--data-dir", start.directory / "data"], env={**os.environ, "JOURNAL_STREAM": "8:1234"})
    wait_until(lambda: "Sessions are kept" in server.out, 20, "the server's start")
    assert " --pair CODE\n" in server.out and "--new-key" in server.out and not CODE.search(server.out + server.err), server.out
    token = (start.directory / "data" / "http-token").read_text(encoding="ascii").strip()
    assert f"The page asks for the token in {start.directory}/data/http-token\n" in server.out and token not in server.out + server.err, server.out
    agent = start.process("agent", [BIN / "flamewire-agent", "--listen", "--port", free_port()], env={**os.environ, "JOURNAL_STREAM": "8:1234"})
    assert agent.wait(10) == 2 and "--pair-file" in agent.err and not CODE.search(agent.out + agent.err), agent.err
