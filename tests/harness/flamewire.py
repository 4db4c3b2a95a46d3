"""Starts the real programs for tests: servers, agents, workloads, and a TCP relay that can cut the link. Checks every JSON answer over HTTP
against docs/openapi.yaml. Uses only Python's standard library, PyYAML and jsonschema."""

import contextlib
import ctypes
import http.client
import itertools
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", ROOT / "build" / "bin"))
TESTS_BIN = pathlib.Path(os.environ.get("FLAMEWIRE_TESTS_BIN", BIN))
# "address,undefined" or "thread" if BIN was built with these sanitizers. Such an agent is not static and needs more memory.
SANITIZED = os.environ.get("FLAMEWIRE_SANITIZED", "")
# Factor for memory limits: sanitizers have shadow memory for each byte, and keep freed memory for a while.
MEMORY = 8 if SANITIZED else 1


# Waits are for conditions, and their limits only end a test that hangs. A busy machine may be slower by this factor.
PATIENCE = 4


def wait_until(condition, seconds=20.0, what="the condition"):
    """Polls until condition() is true and returns its value, for at most PATIENCE times `seconds`."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


def own_mounts():
    """From now on, other processes do not see mounts of this process and its children."""
    clone_newns = 0x20000
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newns) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNS)")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def cpu_seconds(pid):
    """User and system time of all threads of a process, including ended ones, with a resolution of one tick."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    """The ids of a process's children, including those that ended but have not been waited for."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the process or one of its threads ends meanwhile
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
    return found


def _nullable_to_null(node):
    """OpenAPI 3.0 uses `nullable: true` where JSON Schema uses type [.., null]."""
    if isinstance(node, dict):
        node = {key: _nullable_to_null(value) for key, value in node.items()}
        if node.pop("nullable", False) and "type" in node:
            node["type"] = [node["type"], "null"]
        return node
    if isinstance(node, list):
        return [_nullable_to_null(value) for value in node]
    return node


class Contract:
    """Checks real answers against docs/openapi.yaml."""

    def __init__(self):
        self.document = _nullable_to_null(yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text()))
        self.paths = [(re.compile("^" + re.sub(r"\{[^}]+\}", "[^/]+", path) + "$"), path) for path in self.document["paths"]]
        self.checked = set()

    def schema(self, name):
        return {"$ref": f"#/components/schemas/{name}", "components": self.document["components"]}

    def check(self, method, path, status, content_type, body):
        template = next((template for pattern, template in self.paths if pattern.match(path)), None)
        if template is None:
            if status < 400:
                raise AssertionError(f"{path} returns {status} but is not described")
            template_responses = {"default": {"$ref": "#/components/responses/Error"}}
        else:
            operation = self.document["paths"][template].get(method.lower())
            template_responses = operation["responses"] if operation else {"default": {"$ref": "#/components/responses/Error"}}
        response = template_responses.get(str(status)) or template_responses.get("default")
        if response is None and status >= 400:
            response = {"$ref": "#/components/responses/Error"}
        assert response is not None, f"{method} {path}: status {status} is not described"
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        content = response.get("content", {}).get(content_type)
        assert content is not None, f"{method} {path}: content type {content_type} is not described for {status}"
        if content_type == "application/json":
            jsonschema.validate(body, {**content["schema"], "components": self.document["components"]})
        self.checked.add((method, template, status))


CONTRACT = Contract()


class HttpError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.error = body.get("error", {}) if isinstance(body, dict) else {}


class Process:
    """A child process whose output goes to files."""

    def __init__(self, name, command, directory, **options):
        self.name = name
        self.out_path = pathlib.Path(directory) / f"{name}.out"
        self.err_path = pathlib.Path(directory) / f"{name}.err"
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, **options)
        self.pid = self.process.pid

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    @property
    def err(self):
        return self.err_path.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def wait(self, seconds=30):
        return self.process.wait(PATIENCE * seconds)

    def stop(self, number=signal.SIGTERM, seconds=15):
        self.signal(number)
        seconds *= PATIENCE
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} did not end within {seconds} s of signal {number}; its log:\n{self.err[-2000:]}") from None

    # Defined after stop(), whose default argument needs the module.
    def signal(self, number):
        if self.alive():
            self.process.send_signal(number)


# Servers, and relays to them, by the port to which agents connect.
DIALED = {}


class Server(Process):
    """With `token`, the page requires the token of the data directory, as it does for users. Otherwise it requires none, or the one in `arguments`.
    `code` is the pairing code in the line that the server printed for agents."""

    def __init__(self, directory, *arguments, port=0, http_port=0, name="server", data_dir=None, token=False, program=(BIN / "flamewire-server",)):
        self.data_dir = pathlib.Path(data_dir) if data_dir else pathlib.Path(directory) / "data"
        is_open = not token and not {"--http-token-file", "--http-bind"} & set(arguments)
        command = [*program, "--port", port, "--http-port", http_port, "--data-dir", self.data_dir, *([] if "--source-dir" in arguments else ["--source-dir", ROOT]),
                   *(["--http-open"] if is_open else []), *arguments]
        before = 0
        if (pathlib.Path(directory) / f"{name}.out").exists():
            before = (pathlib.Path(directory) / f"{name}.out").stat().st_size
        super().__init__(name, command, directory, cwd=ROOT)

        def ports():
            if not self.alive():
                raise AssertionError(f"the server ended: {self.err}")
            text = self.out[before:]
            agent = re.search(r"^agent-port: (\d+)$", text, re.M)
            page = re.search(r"^page: (https?://\S+)$", text, re.M)
            code = re.search(r"^On a target: .* --pair ([0-9a-f-]{49})$", text, re.M)
            return agent and page and "\nSessions are kept in" in text and (int(agent[1]), page[1], code and code[1])

        self.port, self.page, self.code = wait_until(ports, 20, "the server's ports")
        DIALED[self.port] = self
        self.http_port = urllib.parse.urlparse(self.page).port

    def request(self, method, path, /, body=None, headers=None, check=True, timeout=60, **parameters):
        """(status, content type, decoded body). JSON answers are validated against the contract."""
        target = path
        query = {key: value for key, value in parameters.items() if value is not None}
        if query:
            target += "?" + urllib.parse.urlencode(query)
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=timeout)
        try:
            data = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
            connection.request(method, target, body=data, headers={"Content-Type": "application/json", **(headers or {})} if data is not None else headers or {})
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        content_type = (response.getheader("Content-Type") or "").split(";")[0]
        decoded = json.loads(raw) if content_type == "application/json" else raw
        if check and path.startswith("/api/"):
            CONTRACT.check(method, path, response.status, content_type, decoded)
        return response.status, content_type, decoded

    def get(self, path, /, **parameters):
        status, _, body = self.request("GET", path, **parameters)
        if status != 200:
            raise HttpError(status, body)
        return body

    def post(self, path, /, body=None, **parameters):
        status, _, answer = self.request("POST", path, body=body if body is not None else {}, **parameters)
        if status != 200:
            raise HttpError(status, answer)
        return answer

    def command(self, cmd, agent=None, **args):
        return self.post("/api/agent/command", {"cmd": cmd, "args": args}, agent=agent)

    def pair(self):
        """A pairing code for another agent."""
        return self.post("/api/pairing")["code"]

    def sessions(self):
        return self.get("/api/sessions")["sessions"]

    def session(self, session_id):
        return self.get(f"/api/sessions/{session_id}")

    def only_session(self):
        sessions = self.sessions()
        assert len(sessions) == 1, [session["id"] for session in sessions]
        return self.session(sessions[0]["id"])

    def wait_ended(self, session_id=None, seconds=30):
        """The given or only session, after it has ended and all its symbols were looked up. Before that, views show addresses."""
        def ended():
            session = self.session(session_id) if session_id else self.sessions() and self.only_session()
            return session and session["state"] == "ended" and "reading" not in session and session["pending_names"] == 0 and session

        return wait_until(ended, seconds, "the end of the session")

    def wait_named(self, session_id, seconds=30):
        """The session when no address waits for its name. New samples can bring new addresses, so pause or do not compare them."""
        return wait_until(lambda: (session := self.session(session_id))["pending_names"] == 0 and session, seconds, "the names")

    @contextlib.contextmanager
    def stream(self, **parameters):
        """Server-sent events as an iterator of (event, data); data is decoded JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=30)
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        connection.request("GET", "/api/stream" + query, headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200 and response.getheader("Content-Type").startswith("text/event-stream")

        def events():
            name, data = None, []
            for raw in response:
                line = raw.decode().rstrip("\n").rstrip("\r")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    data.append(line[6:])
                elif line == "" and name:
                    yield name, json.loads("\n".join(data))
                    name, data = None, []

        try:
            yield events()
        finally:
            connection.close()


def with_code(arguments):
    """Adds the pairing code of the server of this process to which the agent connects, unless the arguments choose otherwise."""
    words = [str(word) for word in arguments]
    chosen = any(word == "--insecure" or word.startswith("--pair") for word in words)
    if chosen or "--server" not in words or "--port" not in words:
        return words
    there = DIALED.get(int(words[words.index("--port") + 1]))
    return ["--pair", there.code, *words] if there and there.code else words


class Agent(Process):
    """Without `paired`, the agent has only the pairing code in `arguments`."""

    def __init__(self, directory, *arguments, name="agent", paired=True, **options):
        super().__init__(name, [BIN / "flamewire-agent", *(with_code(arguments) if paired else arguments)], directory, **options)
        if "--listen" in arguments:
            wait_until(lambda: "listening on" in self.err or not self.alive(), 20, "the agent to listen")

    @property
    def code(self):
        """The pairing code that a listening agent generated and printed."""
        return wait_until(lambda: re.search(r"[0-9a-f]{16}-[0-9a-f]{32}", self.out), 10, "a pairing code")[0]


def workload(directory, name, *arguments, **options):
    return Process(f"{name}-workload", [TESTS_BIN / f"{name}-workload", *arguments], directory, **options)


def free_port(_ports=itertools.count(os.getpid() * 16)):
    """A port below the range of ephemeral ports, so no connection of another test uses it while nothing listens there.
    Each process starts at a different place in the range, so concurrent tests get different ports."""
    low, high = 10_000, int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    for number in itertools.islice(_ports, 1000):
        port = low + number % (high - low) if high > low else 0
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return probe.getsockname()[1]
    raise AssertionError("no port is free")


class Relay:
    """A TCP relay on loopback between agent and server. cut() ends all connections at once; while `blocked`, new ones are refused. `rate` (bytes per
    second from the agent) makes it slow enough to cut a transfer in progress. `watch` is called with "up" (from the agent) or "down", and the data."""

    def __init__(self, target_port, rate=None, watch=None):
        self.rate = rate
        self.watch = watch
        self.target_port = target_port
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        DIALED[self.port] = self
        self.pairs = []
        self.blocked = False
        self.closed = False
        self.bytes_up = 0
        self.cuts = 0
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def code(self):
        """The pairing code of the server behind the relay."""
        there = DIALED.get(self.target_port)
        return there and there.code

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.blocked:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self.lock:
                self.pairs.append((client, server))
            threading.Thread(target=self._pump, args=(client, server), daemon=True).start()

    def _pump(self, client, server):
        sockets = [client, server]
        try:
            while True:
                for source in select.select(sockets, [], [], 1.0)[0]:
                    slow = source is client and self.rate
                    data = source.recv(max(1, min(65536, self.rate // 20)) if slow else 65536)
                    if not data:
                        return
                    if slow:
                        time.sleep(len(data) / self.rate)
                    if self.watch:
                        self.watch("up" if source is client else "down", data)
                    if source is client:
                        self.bytes_up += len(data)
                    (server if source is client else client).sendall(data)
        except (OSError, ValueError):
            return
        finally:
            for sock in sockets:
                with contextlib.suppress(OSError):
                    sock.close()

    def cut(self):
        self.cuts += 1
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closed = True
        self.cut()
        self.listener.close()


class Tree:
    """/api/flamegraph with names instead of indexes."""

    def __init__(self, answer):
        nodes = answer["nodes"]
        self.answer = answer
        self.parent = nodes["parent"]
        self.names = [answer["names"][index] for index in nodes["name"]]
        self.modules = [answer["modules"][index] for index in nodes["module"]]
        self.kind = nodes["kind"]
        self.total = nodes["total"]
        self.self_weight = nodes["self"]
        self.samples = nodes["samples"]
        self.weight = answer["total"]["weight"]

    def shares(self):
        """Name -> share of the total with the name on the stack (only the outermost occurrence, so recursion counts once)."""
        shares = {}
        for node in range(1, len(self.names)):
            up, seen = self.parent[node], False
            while up:
                if self.names[up] == self.names[node]:
                    seen = True
                    break
                up = self.parent[up]
            if not seen:
                shares[self.names[node]] = shares.get(self.names[node], 0) + self.total[node] / self.weight
        return shares

    def self_shares(self):
        shares = {}
        for node in range(1, len(self.names)):
            shares[self.names[node]] = shares.get(self.names[node], 0) + self.self_weight[node] / self.weight
        return shares


def share_of(shares, part):
    """Sum of the shares whose name contains `part`."""
    return sum(share for name, share in shares.items() if part in name)


def open_files(pid):
    """The targets of a process's open descriptors. One that is closed meanwhile is omitted."""
    files = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(link))
    return files


def lost(session):
    return sum(loss["count"] for loss in session.get("losses", []) if loss["lost"])


NOT_SAMPLED = "[not sampled: short-lived threads]"


def reports_of_unsampled(server, session):
    """The number of the session's samples that are reports of unsampled time."""
    trees = [Tree(server.get("/api/flamegraph", session=session["id"], event=event["name"], min_share=0)) for event in session["events"]]
    return sum(samples for tree in trees for name, samples in zip(tree.names, tree.samples) if name == NOT_SAMPLED)


@contextlib.contextmanager
def ended(*processes):
    """Ends these processes on every exit from the block."""
    try:
        yield
    finally:
        for process in processes:
            if process is not None and process.alive():
                process.process.kill()
                process.process.wait()
