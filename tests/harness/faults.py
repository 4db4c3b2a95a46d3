"""Deliberate faults: connections that delay, stall and drop data; and the resources that a process holds, before and after."""
import collections
import contextlib
import io
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

from flamewire import Relay, wait_until


class SlowLine(Relay):
    """A relay with a delay of `delay` seconds in each direction. While `stalled` it reads from neither side, as if the other end had stopped. While
    `swallowing` it reads and drops all data, as on a half-open connection."""

    def __init__(self, target_port, delay=0.0):
        self.delay = delay
        self.stalled = False
        self.swallowing = False
        super().__init__(target_port)

    def _pump(self, client, server):
        ways = [threading.Thread(target=self._way, args=way, daemon=True) for way in ((client, server), (server, client))]
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        for sock in (client, server):
            with contextlib.suppress(OSError):
                sock.close()

    def _way(self, source, sink):
        waiting = collections.deque()
        source.settimeout(0.01)
        try:
            while True:
                while waiting and waiting[0][0] <= time.monotonic():
                    sink.sendall(waiting.popleft()[1])
                if self.stalled:
                    time.sleep(0.01)
                    continue
                try:
                    data = source.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    break
                if not self.swallowing:
                    waiting.append((time.monotonic() + self.delay, data))
        except OSError:
            pass
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            source.shutdown(socket.SHUT_RDWR)


class Wire:
    """A network of two hosts: this machine at `here`, and a network namespace in which inside() runs programs. rules() sets nft rules for packets that
    enter or leave the namespace, rate() limits its sending rate in kbit/s, and up() and down() plug and unplug it."""

    count = 0

    def __init__(self):
        Wire.count += 1
        self.name = f"fw{os.getpid() % 100000}{chr(96 + Wire.count)}"
        third = os.getpid() % 250
        self.here, self.there = f"10.{213 + Wire.count}.{third}.1", f"10.{213 + Wire.count}.{third}.2"
        self._run("ip", "netns", "add", self.name)
        self._run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "line", "netns", self.name)
        self._run("ip", "addr", "add", f"{self.here}/30", "dev", self.name)
        self._run("ip", "link", "set", self.name, "up")
        for words in (["addr", "add", f"{self.there}/30", "dev", "line"], ["link", "set", "line", "up"], ["link", "set", "lo", "up"]):
            self._run("ip", "-n", self.name, *words)
        self.inside = ["ip", "netns", "exec", self.name]
        self._run(*self.inside, "nft", "add table ip faults; add chain ip faults in { type filter hook input priority 0; }; add chain ip faults out { type filter hook output priority 0; }")

    @staticmethod
    def _run(*words):
        subprocess.run(words, check=True, capture_output=True)

    def rules(self, *rules):
        self._run(*self.inside, "nft", "; ".join(["flush chain ip faults in", "flush chain ip faults out", *(f"add rule ip faults {way} {rule}" for rule in rules for way in ("in", "out"))]))

    def rate(self, kbit):
        self._run(*self.inside, "tc", "qdisc", "replace", "dev", "line", "root", "tbf", "rate", f"{kbit}kbit", "burst", "16kb", "latency", "400ms")

    def down(self):
        self._run("ip", "-n", self.name, "link", "set", "line", "down")

    def up(self):
        self._run("ip", "-n", self.name, "link", "set", "line", "up")

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.name], check=False, capture_output=True)


@contextlib.contextmanager
def memory_group(limit):
    """A memory-limited control group of either version. Yields the words that start a program in it."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    first = next((pathlib.Path(fields[1]) for fields in mounts if fields[2] == "cgroup" and "memory" in fields[3].split(",")), None)
    second = next((pathlib.Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if first is None and second is not None:
        (second / "cgroup.subtree_control").write_text("+memory")
    folder = (first or second) / f"flamewire-memory-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
        yield ["sh", "-c", f'echo $$ >{folder}/cgroup.procs && exec "$@"', "sh"]
    finally:
        wait_until(lambda: not (folder / "cgroup.procs").read_text(encoding="utf-8").split(), 20, f"the end of {folder}")
        folder.rmdir()


Held = collections.namedtuple("Held", "files threads rss")


def is_image(descriptor):
    """Whether the descriptor is a program or library that is read for its symbols. Those are in a cache with its own limit."""
    try:
        with open(descriptor, "rb") if descriptor.is_file() else io.BytesIO() as file:
            return file.read(4) == b"\x7fELF"
    except OSError:  # closed meanwhile
        return False


def held(process):
    """The resources that a process holds. ELF files do not count."""
    root = pathlib.Path(f"/proc/{process.pid}")
    rss = int(re.search(r"^VmRSS:\s+(\d+) kB", (root / "status").read_text(), re.M)[1]) << 10
    return Held(sum(not is_image(one) for one in (root / "fd").iterdir()), len(list((root / "task").iterdir())), rss)
