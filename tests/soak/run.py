"""Long runs: ./dev soak [MINUTES] [--load]. test_soak.py contains a short run of each as a test.

soak: one recording at 999 Hz over a link that is cut repeatedly. Every sample is present at the end, and neither side grows.
load: 200 agents with 1,000 samples per second each, simulated by one program, and 100 browsers that request what the page requests.
hostile: 20 such agents and another client's status requests, next to 1,000 hostile requests per second of each kind in turn (flood.py)."""
import argparse
import asyncio
import contextlib
import itertools
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "harness"))

import flamewire  # noqa: E402
from faults import held  # noqa: E402
from flamewire import Relay, wait_until  # noqa: E402
from hostile import Forged, Replay, frame  # noqa: E402

MIB = 1 << 20
# For limited memory: the variation of the allocator itself.
ROOM = {"agent": 4 * MIB, "server": 24 * MIB}


def growth(sizes):
    """The growth from the middle of the second quarter to the middle of the last one. Caches are filled by then."""
    quarter = max(1, len(sizes) // 4)
    return statistics.median(sizes[-quarter:]) - statistics.median(sizes[quarter:2 * quarter])


def soak(directory, seconds, every=30.0, say=print):
    """Raises AssertionError if a condition does not hold."""
    # Few rows in memory, so that their limit is reached at once and other growth is visible.
    server = flamewire.Server(directory, "--max-samples", 5000)
    line = Relay(server.port)
    program = flamewire.workload(directory, "shares", 10**6, 2)
    agent = flamewire.Agent(directory, "--server", "127.0.0.1", "--port", line.port, "--pid", program.pid, "--frequency", 999)
    with flamewire.ended(agent, program, server):
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 30, "samples")
        sizes, files = {"agent": [], "server": []}, {}
        begun, cut_at = time.monotonic(), time.monotonic() + every
        while time.monotonic() < begun + seconds:
            time.sleep(min(1.0, seconds / 20))
            for name, process in (("agent", agent), ("server", server)):
                now = held(process)
                sizes[name].append(now.rss)
                files.setdefault(name, []).append(now.files)
            if time.monotonic() >= cut_at:
                line.cut()
                cut_at = time.monotonic() + every
        wait_until(lambda: server.get("/api/status")["agent_connected"], 45, "the agent's return")
        program.stop()
        server.wait_ended(seconds=60)
        session = server.only_session()
        stats = server.get("/api/agents")["agents"][0]["stats"]
        kernel = stats["samples_read"] - stats["samples_duplicate"] + stats["samples_lost"]
        grown = {name: growth(of) for name, of in sizes.items()}
        say(f"soak: {seconds:.0f} s, {line.cuts} cuts: {kernel} samples taken by the kernel = {session['samples']} in memory + {flamewire.lost(session)} reported as lost; "
            + ", ".join(f"{name} {sizes[name][-1] / MIB:.1f} MiB ({grown[name] / MIB:+.1f})" for name in grown))
        assert session["samples"] + flamewire.lost(session) == kernel, (session["samples"], session["losses"], stats)
        assert {loss["reason"] for loss in session["losses"] if loss["lost"]} <= {"memory_limit"}, session["losses"]
        for name, of in grown.items():
            assert of < ROOM[name], (name, sizes[name])
            assert max(files[name]) <= min(files[name]) + 4, (name, files[name])
        assert agent.stop() == 0 and server.stop() == 0
        line.close()


class Generator:
    """Agents that each send a batch every quarter of a second."""

    interval, rows = 0.25, 250

    def __init__(self, port, agents, stacks=2000):
        self.port, self.stopping = port, False
        self.recordings = [Forged(f"load-{n}") for n in range(agents)]
        self.first = [each.batch(stacks=stacks, rows=1, depth=1) for each in self.recordings]
        self.late = 0

    async def agent(self, number):
        # A server refuses more than 48 connections at once from one address that have not sent a hello.
        await asyncio.sleep(number * 0.02)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        forged = self.recordings[number]
        hello = (f'{{"type":"hello","version":1,"agent":"flamewire","agent_version":"0","agent_id":"load-{number}","platform":{{"hostname":"load"}},'
                 f'"state":"profiling","recording":{{"id":"{forged.id.hex()}","first_unacknowledged":1,"last_seq":1}}}}')
        writer.write(frame(3, hello.encode()) + frame(5, self.first[number]))
        acknowledged = 0

        async def read():
            nonlocal acknowledged
            while True:
                head = await reader.readexactly(5)
                body = await reader.readexactly(int.from_bytes(head[:4], "big"))
                if head[4] == 8:
                    acknowledged = int(re.search(rb'"seq":(\d+)', body)[1])

        reading = asyncio.create_task(read())
        replay = Replay(forged, self.rows)
        due = time.monotonic() + self.interval * number / len(self.recordings)
        while not self.stopping:
            due += self.interval
            wait = due - time.monotonic()
            self.late += wait < -1
            await asyncio.sleep(max(0, wait))
            writer.write(frame(5, replay.batch()))
            await writer.drain()
        writer.write(frame(5, forged.batch(end="stopped")))
        await writer.drain()
        until = time.monotonic() + 60
        while acknowledged < forged.seq and time.monotonic() < until and not reading.done():
            await asyncio.sleep(0.05)
        assert acknowledged == forged.seq, (number, acknowledged, forged.seq)
        reading.cancel()
        writer.close()


class Browsers:
    """Open pages: each has the event stream and requests its session's views after a notification, as the page does."""

    def __init__(self, server, count):
        self.server, self.count, self.stopping = server, count, False
        self.times, self.streamed = {}, 0

    async def fetch(self, target, session=None):
        begun = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.http_port)
        path = f"/api/{target}" + (f"?{urllib.parse.urlencode({'session': session})}" if session else "")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.read(-1)
        writer.close()
        assert b" 200 " in head[:20], (path, head[:200])
        self.times.setdefault(target, []).append(time.monotonic() - begun)

    async def page(self, session):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.http_port)
        # The page also subscribes to all sessions and agents.
        writer.write(b"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
        news, rest, seen = f'event: data_version\ndata: {{"session":"{session}"'.encode(), b"", 0.0
        while not self.stopping:
            read = await reader.read(1 << 16)
            assert read, "the stream ended"
            self.streamed += len(read)
            # An event may be cut between two reads.
            text, rest = rest + read, read[-len(news):]
            # While a session is live, the page updates at most every two seconds.
            if news in text and time.monotonic() - seen > 2:
                seen = time.monotonic()
                for target in ("flamegraph", "timeline", "functions"):
                    await self.fetch(target, session)
        writer.close()

    async def status(self):
        while not self.stopping:
            await self.fetch("status")
            await asyncio.sleep(0.05)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def play(server, generator, browsers, seconds, sizes):
    agents = [asyncio.create_task(generator.agent(n)) for n in range(len(generator.recordings))]
    loop = asyncio.get_running_loop()
    sessions = []
    while len(sessions) < len(agents):
        for one in agents:
            if one.done():
                one.result()
        await asyncio.sleep(0.5)
        sessions = [one["id"] for one in (await loop.run_in_executor(None, lambda: server.get("/api/sessions", limit=1000)))["sessions"]]
    pages = [asyncio.create_task(browsers.page(id_)) for id_, _ in zip(itertools.cycle(sessions), range(browsers.count))]
    pages.append(asyncio.create_task(browsers.status()))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(min(1.0, seconds / 20))
        sizes.append(held(server).rss)
        for one in (*agents, *pages):
            if one.done():
                one.result()
    browsers.stopping = True
    await asyncio.sleep(0.5)
    for one in pages:
        one.cancel()
    await asyncio.gather(*pages, return_exceptions=True)
    generator.stopping = True
    await asyncio.gather(*agents)


def load(directory, seconds, agents=200, clients=100, bound_ms=None, say=print):
    """The same for many agents at once. `bound_ms`: limit of the 99th percentile of /api/status; None: only printed."""
    # New recordings from one address are limited, and here all of them come from one.
    server = flamewire.Server(directory, "--insecure", "--max-samples", 5000)
    with flamewire.ended(server):
        generator, browsers, sizes = Generator(server.port, agents), Browsers(server, clients), []
        before, begun = time.process_time(), time.monotonic()
        asyncio.run(play(server, generator, browsers, seconds, sizes))
        took = time.monotonic() - begun
        sessions = {one["target"]: one for one in server.get("/api/sessions", limit=1000)["sessions"]}
        sent = sum(each.samples for each in generator.recordings)
        p99 = percentile(browsers.times["status"], 0.99) * 1000
        grown = growth(sizes)
        say(f"load: {agents} agents, {clients} browsers, {took:.0f} s: {sent / took:.0f} samples/s; /api/status p50 {percentile(browsers.times['status'], 0.5) * 1000:.1f} ms, p99 {p99:.1f} ms; "
            + ", ".join(f"{name} p99 {percentile(of, 0.99) * 1000:.0f} ms ({len(of)})" for name, of in browsers.times.items() if name != "status")
            + f"; event streams {browsers.streamed / took / 1e6:.1f} MB/s; server {flamewire.cpu_seconds(server.pid) / took * 100:.0f} % CPU, {sizes[-1] / MIB:.0f} MiB ({grown / MIB:+.1f}); generator and browsers "
            f"{(time.process_time() - before) / took * 100:.0f} % CPU, {generator.late} batches late by over 1 s")
        for forged in generator.recordings:
            one = sessions[forged.target]
            assert one["samples"] + one["lost"] == forged.samples, (forged.target, one["samples"], one["lost"], forged.samples)
        assert grown < ROOM["server"] + agents * MIB // 4, sizes
        assert bound_ms is None or p99 <= bound_ms, p99
        assert server.stop(seconds=60) == 0


def many_stacks(path, lines=40_000):
    """A profile whose whole flame graph is expensive."""
    generator = random.Random(11)
    with path.open("w", encoding="ascii") as file:
        for _ in range(lines):
            file.write(";".join(f"f{generator.randrange(3000)}" for _ in range(20)) + " 1\n")


HOSTILE = ("quick", "query", "gone", "half", "foreign", "garbage")
# Requests per second of each kind, for which the limit of /api/status applies.
HOSTILE_RATE = 900


class NotMeasured(Exception):
    """This machine did not generate the load for which the limits are defined, so meeting them proves nothing."""


async def beside(server, generator, browsers, seconds, kind, session):
    agents = [asyncio.create_task(generator.agent(n)) for n in range(len(generator.recordings))]
    flood = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("flood.py"), str(server.http_port), kind, session],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    begun = time.monotonic()
    await asyncio.sleep(1)
    status = asyncio.create_task(browsers.status())
    await asyncio.sleep(seconds)
    browsers.stopping = True
    await status
    # Meanwhile, queries from another host.
    for _ in range(5):
        await browsers.fetch("flamegraph", session)
    rate = int(flood.communicate()[0]) / (time.monotonic() - begun)
    generator.stopping = True
    await asyncio.gather(*agents)
    return rate


def hostile(directory, seconds, agents=20, bound_ms=None, least_rate=0, say=print, kinds=HOSTILE):
    """`bound_ms`: limit of the 99th percentile of /api/status; None: only printed. No sample may be lost in any case.
    Raises NotMeasured at the end if a kind made fewer than `least_rate` requests per second."""
    slow = []
    for kind in kinds:
        directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
        many_stacks(directory / "many.folded")
        server = flamewire.Server(directory, "--insecure", "--import", directory / "many.folded")
        with flamewire.ended(server):
            session = wait_until(lambda: [one["id"] for one in server.sessions() if one["state"] == "ended"], 60, "the import")[0]
            generator, browsers, begun = Generator(server.port, agents), Browsers(server, 1), time.monotonic()
            rate = asyncio.run(beside(server, generator, browsers, seconds, kind, session))
            took = time.monotonic() - begun
            times = {name: [f"{percentile(of, share) * 1000:.1f}" for share in (0.5, 0.99)] for name, of in browsers.times.items()}
            say(f"hostile, {kind}: {rate:.0f} requests/s; /api/status p50 {times['status'][0]} ms, p99 {times['status'][1]} ms ({len(browsers.times['status'])}); "
                f"a query p50 {times['flamegraph'][0]} ms; server {flamewire.cpu_seconds(server.pid) / took * 100:.0f} % CPU")
            sessions = {one["target"]: one for one in server.get("/api/sessions", limit=1000)["sessions"]}
            for forged in generator.recordings:
                one = sessions[forged.target]
                assert one["lost"] == 0 and one["samples"] == forged.samples, (kind, forged.target, one["samples"], one["lost"], forged.samples)
            p99 = percentile(browsers.times["status"], 0.99) * 1000
            assert bound_ms is None or p99 <= bound_ms, (kind, p99)
            assert server.stop(seconds=60) == 0
            if rate < least_rate:
                slow.append(f"{kind} {rate:.0f}")
    if slow:
        raise NotMeasured(f"not measured: {', '.join(slow)} requests/s were made, but the limits need at least {least_rate}. Run it again while nothing else uses this machine.")


def main():
    parser = argparse.ArgumentParser(prog="./dev soak")
    parser.add_argument("minutes", type=float, nargs="?", default=30)
    parser.add_argument("--load", action="store_true", help="many agents and browsers at once")
    parser.add_argument("--hostile", action="store_true", help="a hostile client, of each kind for a share of the time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flamewire-soak-") as directory, contextlib.suppress(KeyboardInterrupt):
        if arguments.load:
            load(directory, arguments.minutes * 60, bound_ms=100)
        elif arguments.hostile:
            try:
                hostile(directory, arguments.minutes * 60 / len(HOSTILE), bound_ms=200, least_rate=HOSTILE_RATE)
            except NotMeasured as error:
                sys.exit(f"soak: {error}")
        else:
            soak(directory, arguments.minutes * 60)


if __name__ == "__main__":
    main()
