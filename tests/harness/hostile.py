"""A simulated agent that sends whatever a test needs, written from docs/wire.md and docs/wire.proto without the agent's code. It is for limits (what
a hostile agent can use) and for load (many agents in one program)."""
import json
import os
import select
import socket
import struct
import subprocess
import time


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return (value << 1) ^ (value >> 63)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def text(field, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def column(field, values):
    return text(field, b"".join(map(varint, values))) if values else b""


def frame(flag, payload):
    return struct.pack("!IB", len(payload), flag) + payload


class Forged:
    """A made-up recording. Each call of batch() returns the next batch. Its arguments are new entries of the only epoch, whose first batch
    contains thread 1 and event 1 ("cpu-clock", ns)."""

    PERIOD = 1_000_000

    def __init__(self, target="forged", identity=None, build_id=None, address=4096):
        self.id = identity or os.urandom(16)
        self.build_id = build_id or os.urandom(20)  # the module of all addresses, …
        self.address = address  # … which start here
        self.target = target
        self.seq = 0
        self.sizes = {"string": 1, "module": 1, "location": 1, "stack": 1}
        self.samples = 0

    def string(self, extra, value):
        extra.append(value)
        return self.sizes["string"] + len(extra) - 1

    def batch(self, stacks=0, strings=(), modules=(), rows=0, count=1, end=None, notices=(), depth=1):
        """`stacks` new stacks of `depth` frames each (every frame is a new address of one module), and `rows` rows over all stacks so far, with
        `count` samples each."""
        self.seq += 1
        first = self.seq == 1
        texts = list(strings)
        tables, cells = b"", b""
        now = time.monotonic_ns()
        if first:
            program, clock, unit = (self.string(texts, word) for word in (self.target, "cpu-clock", "ns"))
            modules = [(program, self.build_id), *modules]
            tables += number(18, 1) + text(19, number(1, 4242) + number(4, 1) + number(6, program))
            tables += number(20, 1) + text(21, number(1, 1) + number(2, 4242) + number(3, program))
            tables += number(22, 1) + text(23, number(1, clock) + number(2, unit) + number(3, 1000) + number(4, self.PERIOD))
            about = text(1, self.target) + column(2, [4242]) + text(3, "nowhere") + text(4, "x86_64") + number(8, 1000) + number(14, now)
            cells += text(7, about)
        paths = [(path if isinstance(path, int) else self.string(texts, path), build_id) for path, build_id in modules]
        if texts:
            tables = number(10, self.sizes["string"]) + b"".join(text(11, value) for value in texts) + tables
        if paths:
            tables += number(12, self.sizes["module"]) + b"".join(text(13, number(2, path) + text(3, build_id)) for path, build_id in paths)
        if stacks:
            new = stacks * depth
            base = self.sizes["location"]
            addresses = [self.address + 16 * base] + [16] * (new - 1)
            tables += number(14, base) + text(15, column(1, [1] * new) + column(2, [zigzag(value) for value in addresses]))
            node = self.sizes["stack"]
            parents = [node + i if i % depth == 0 else 1 for i in range(new)]
            tables += number(16, node) + text(17, column(1, parents) + column(2, [0] * new))
            self.sizes["location"] += new
            self.sizes["stack"] += new
        self.sizes["string"] += len(texts)
        self.sizes["module"] += len(paths)
        if rows:
            keys = sorted(1 + (i * 7919) % (self.sizes["stack"] - 1) for i in range(min(rows, self.sizes["stack"] - 1)))
            deltas = [keys[0]] + [b - a for a, b in zip(keys, keys[1:])]
            self.samples += len(keys) * count
            cells += text(30, number(1, now // 10_000_000) + number(2, 10_000_000) + number(3, 1) + column(4, [1]) + column(5, [1]) + column(6, [0]) + column(7, [len(keys)])
                          + column(8, deltas) + (column(9, [count] * len(keys)) if count != 1 else b""))
        cells += b"".join(text(34, text(1, code) + text(2, message)) for code, message in notices)
        if end:
            cells += text(36, text(1, end))
        return text(1, self.id) + number(2, 1) + number(3, self.seq) + number(5, now) + number(6, time.time_ns()) + tables + cells


class Replay:
    """Batches of rows over the stacks that a Forged recording sent, encoded in advance: only numbers and times differ."""

    def __init__(self, forged, rows):
        self.forged = forged
        keys = sorted(1 + (i * 7919) % (forged.sizes["stack"] - 1) for i in range(rows))
        self.rows = len(keys)
        deltas = [keys[0]] + [b - a for a, b in zip(keys, keys[1:])]
        self.tail = number(2, 10_000_000) + number(3, 1) + column(4, [1]) + column(5, [1]) + column(6, [0]) + column(7, [len(keys)]) + column(8, deltas)

    def batch(self):
        self.forged.seq += 1
        self.forged.samples += self.rows
        now = time.monotonic_ns()
        return (text(1, self.forged.id) + number(2, 1) + number(3, self.forged.seq) + number(5, now) + number(6, time.time_ns())
                + text(30, number(1, now // 10_000_000) + self.tail))


class HostileAgent:
    """One connection to a server's agent port: unencrypted, for a server with --insecure, or through OpenSSL with a pairing code."""

    def __init__(self, port, code=None, host="127.0.0.1"):
        self.buffer = b""
        self.tls = None
        if code:
            command = ["openssl", "s_client", "-quiet", "-connect", f"{host}:{port}", "-psk_identity", code[:16], "-psk", code[17:], "-tls1_2", "-cipher", "ECDHE-PSK-CHACHA20-POLY1305"]
            self.tls = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        else:
            self.socket = socket.create_connection((host, port), timeout=30)

    def send(self, flag, payload):
        data = frame(flag, payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        if self.tls:
            self.tls.stdin.write(data)
            self.tls.stdin.flush()
        else:
            self.socket.sendall(data)

    def hello(self, agent_id="", recording=None, state="profiling", last=0):
        about = {"id": recording.hex(), "first_unacknowledged": last + 1, "last_seq": last} if recording else None
        self.send(3, {"type": "hello", "version": 1, "agent": "flamewire", "agent_version": "0", "agent_id": agent_id, "platform": {"hostname": "nowhere"}, "state": state, "recording": about})
        return self

    def received(self, seconds=10):
        """The next frame as (flag, payload), or None if the other end closes or sends nothing for this long."""
        source = self.tls.stdout if self.tls else self.socket
        end = time.monotonic() + seconds
        while True:
            if len(self.buffer) >= 5:
                size, flag = struct.unpack("!IB", self.buffer[:5])
                if len(self.buffer) >= 5 + size:
                    payload, self.buffer = self.buffer[5:5 + size], self.buffer[5 + size:]
                    return flag, payload
            if not select.select([source], [], [], max(0, end - time.monotonic()))[0]:
                return None
            try:
                data = os.read(source.fileno(), 65536)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self.buffer += data

    def await_frame(self, flag, seconds=10):
        """The payload of the next frame with this flag, or None if the connection ended before."""
        while (got := self.received(seconds)) is not None:
            if got[0] == flag:
                return json.loads(got[1]) if flag in (2, 8) else got[1].decode(errors="replace")
        return None

    def acknowledged(self, seq, seconds=20):
        """Whether the server acknowledged that this batch is on its disk."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ack = self.await_frame(8, end - time.monotonic())
            if ack is None:
                return False
            if ack["seq"] >= seq:
                return True
        return False

    def serve_module(self, content, seconds=20):
        """Answers the server's requests for a module file with `content` until all of it is sent. Returns False if the server did not ask."""
        sent = 0
        end = time.monotonic() + seconds
        while sent < len(content):
            got = self.received(end - time.monotonic())
            if got is None:
                return False
            command = json.loads(got[1]) if got[0] == 2 else {}
            if command.get("cmd") != "fetch_module":
                continue
            args = command["args"]
            part = content[args["offset"]:args["offset"] + args["bytes"]]
            head = json.dumps({"id": command["id"], "file_size": len(content), "offset": args["offset"], "total": len(content), "ranges": [0, len(content)], "encoding": "raw"}).encode()
            self.send(7, struct.pack("!I", len(head)) + head + part)
            sent = args["offset"] + len(part)
        return True

    def close(self):
        if self.tls:
            self.tls.kill()
            self.tls.wait()
            self.tls.stdin.close()
            self.tls.stdout.close()
        else:
            self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
