"""Device health: frames of a real agent compared with /proc as this script reads it at the same moment, and with ps and free.

The server's end is a few lines of Python here, so that only the agent is under test. /proc is read when a frame arrives.
A counter that only grows must lie between its values at the previous frame and now. Shares of CPU time are compared with
this script's own between the same two arrivals, with a tolerance of 8 percentage points: the frame may have been taken some
milliseconds earlier, and other programs run."""
import json
import os
import queue
import socket
import struct
import subprocess
import threading
import time

import pytest
from flamewire import wait_until

TICKS = os.sysconf("SC_CLK_TCK")
SHARE_POINTS = 8
METRICS, REPLY = 4, 3


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def meminfo():
    return {line.split(":")[0]: int(line.split(":")[1].split()[0]) for line in read("/proc/meminfo").splitlines()}


def kernel_stat():
    """(cpu -> (busy, total) ticks; name -> first number of its line)"""
    cpus, numbers = {}, {}
    for line in read("/proc/stat").splitlines():
        name, *fields = line.split()
        values = [int(field) for field in fields]
        if name.startswith("cpu") and name != "cpu":
            cpus[int(name[3:])] = (sum(values[:3]) + sum(values[5:8]), sum(values[:8]))
        else:
            numbers[name] = values[0]
    return cpus, numbers


def process_stat(pid, task=None):
    """Fields of /proc/PID/stat by their number in proc(5)."""
    text = read(f"/proc/{pid}/task/{task}/stat" if task else f"/proc/{pid}/stat")
    return dict(enumerate(text[text.rindex(")") + 2 :].split(), start=3))


def keys(path):
    return {line.split(":")[0]: line.split(":")[1].split()[0] for line in read(path).splitlines() if ":" in line and line.split(":")[1].split()}


def interfaces():
    found = {}
    for line in read("/proc/net/dev").splitlines()[2:]:
        name, numbers = line.split(":")
        if name.strip() != "lo":
            n = [int(number) for number in numbers.split()]
            found[name.strip()] = dict(rx_bytes=n[0], rx_packets=n[1], rx_errors=n[2], rx_drops=n[3], tx_bytes=n[8], tx_packets=n[9], tx_errors=n[10])
    return found


def disks():
    """Block devices with hardware behind them, according to sysfs (the agent detects them in another way)."""
    found = {}
    for line in read("/proc/diskstats").splitlines():
        _, _, name, *numbers = line.split()
        if os.path.exists(f"/sys/block/{name}/device") and not name.startswith(("sr", "fd")):
            n = [int(number) for number in numbers]
            found[name] = dict(reads=n[0], read_bytes=n[2] * 512, read_ms=n[3], writes=n[4], write_bytes=n[6] * 512, write_ms=n[7])
    return found


def bracketed(before, value, after, what):
    assert before <= value <= after, (what, before, value, after)


def all_bracketed(before, values, after):
    assert values.keys() == after.keys()
    for name in values.keys() & before.keys():
        bracketed(before[name], values[name], after[name], name)


class Peer:
    """The server's end: answers the hello, sends commands, and stores health frames with the result of `look()` at their arrival."""

    def __init__(self, look=lambda: None, port=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(4)
        self.port = self.listener.getsockname()[1]
        self.look = look
        self.frames, self.replies = queue.Queue(), queue.Queue()
        self.connections = 0
        self.connection = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _receive(self, connection, size):
        data = b""
        while len(data) < size:
            piece = connection.recv(size - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                self._talk(connection)
            except (ConnectionError, OSError):
                connection.close()

    def _talk(self, connection):
        while True:
            length, flag = struct.unpack("!IB", self._receive(connection, 5))
            payload = self._receive(connection, length)
            if flag == METRICS:
                seen = self.look()
                self.frames.put((json.loads(payload), seen, time.time()))
            elif flag == REPLY:
                message = json.loads(payload)
                if message.get("type") == "hello":
                    recording = message["recording"]
                    answer = json.dumps({"recording": recording and recording["id"], "seq": 0}).encode()
                    connection.sendall(struct.pack("!IB", len(answer), 8) + answer)
                    self.connection = connection
                    self.connections += 1
                else:
                    self.replies.put(message)

    def command(self, cmd, **args):
        wait_until(lambda: self.connection, 20, "the agent")
        payload = json.dumps({"id": "7f", "cmd": cmd, "args": args}).encode()
        self.connection.sendall(struct.pack("!IB", len(payload), 2) + payload)
        return self.replies.get(timeout=20)

    def next(self, kind, seconds=20):
        """The next frame of a kind, and the result of `look()` at its arrival."""
        end = time.monotonic() + seconds
        while True:
            frame, seen, arrived = self.frames.get(timeout=max(0.01, end - time.monotonic()))
            if frame["type"] == kind:
                return frame, seen, arrived

    def rounds(self, count):
        """Kinds of the frames in the next complete rounds. A round ends with the agent's own frame."""
        self.drop_waiting()
        self.next("agent")
        kinds = []
        while kinds.count("agent") < count:
            kinds.append(self.frames.get(timeout=20)[0]["type"])
        return kinds

    def drop_waiting(self):
        while not self.frames.empty():
            self.frames.get()

    def cut(self):
        connection, self.connection = self.connection, None
        connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def agent_at(start):
    """agent_at(peer, ...): an agent that connects to it."""
    peers = []

    def make(peer, *arguments):
        peers.append(peer)
        return start.agent("--server", "127.0.0.1", "--port", peer.port, "--insecure", *arguments)

    yield make
    for peer in peers:
        peer.close()


def memory_limit():
    """The tightest memory limit of this cgroup and its ancestors, in KiB. The agent is in the same one."""
    lines = [line.split(":", 2) for line in read("/proc/self/cgroup").splitlines()]
    v1 = [path for _, controllers, path in lines if "memory" in controllers.split(",")]
    path, base, name = (v1[0], "/sys/fs/cgroup/memory", "memory.limit_in_bytes") if v1 else (lines[-1][2], "/sys/fs/cgroup", "memory.max")
    limits = []
    while True:
        file = base + path.rstrip("/") + "/" + name
        if os.path.exists(file) and read(file).strip() != "max":
            limits.append(int(read(file)) // 1024)
        if path in ("", "/"):
            return min(limits, default=None)
        path = os.path.dirname(path)


def test_system_and_network_against_proc_and_free(agent_at):
    peer = Peer(lambda: dict(mono=time.clock_gettime_ns(time.CLOCK_MONOTONIC), stat=kernel_stat(), mem=meminfo(), net=interfaces(),
                             load=read("/proc/loadavg").split()[:3], uptime=float(read("/proc/uptime").split()[0])))
    agent_at(peer)  # --metrics 2 by default
    first, before, _ = peer.next("system")
    assert first["cpu"]["overall_pct"] is None and first["cpu"]["per_core"] == []
    network, _, _ = peer.next("network")
    second, after, arrived = peer.next("system")

    assert abs(second["ts"] - arrived) < 1
    bracketed(before["mono"], second["mono_ns"], after["mono"], "mono_ns")
    assert abs((second["mono_ns"] - first["mono_ns"]) / 1e9 - 2) < 1
    assert abs((second["ts"] - first["ts"]) - (second["mono_ns"] - first["mono_ns"]) / 1e9) < 0.05

    cpus, numbers = after["stat"]
    cpu = second["cpu"]
    assert cpu["num_cores"] == len(cpus) == len(cpu["per_core"]) == os.sysconf("SC_NPROCESSORS_ONLN")
    busy = {number: (used - before["stat"][0][number][0], total - before["stat"][0][number][1]) for number, (used, total) in cpus.items()}
    for share, (used, total) in zip(cpu["per_core"], busy.values()):
        assert abs(share - 100 * used / total) < SHARE_POINTS, (cpu, busy)
    used, total = (sum(column) for column in zip(*busy.values()))
    assert abs(cpu["overall_pct"] - 100 * used / total) < SHARE_POINTS
    if "MHz" in read("/proc/cpuinfo"):
        assert len(cpu["freq_mhz"]) == len(cpus) and all(50 < mhz < 10_000 for mhz in cpu["freq_mhz"])
    bracketed(before["stat"][1]["ctxt"], second["context_switches"], numbers["ctxt"], "ctxt")
    bracketed(before["stat"][1]["intr"], second["interrupts"], numbers["intr"], "intr")
    assert second["procs_running"] >= 1 and second["procs_blocked"] >= 0

    # Other programs allocate and free memory meanwhile: allow 3 % of the memory.
    mem, near = after["mem"], 0.03 * after["mem"]["MemTotal"]
    reported = second["mem"]
    assert reported["total_kb"] == mem["MemTotal"]
    for name, kernels in {"available_kb": "MemAvailable", "buffers_kb": "Buffers", "cached_kb": "Cached"}.items():
        assert abs(reported[name] - mem[kernels]) < near, name
    assert reported["used_kb"] == reported["total_kb"] - reported["available_kb"]
    assert abs(reported["used_pct"] - 100 * reported["used_kb"] / reported["total_kb"]) <= 0.051
    if mem["SwapTotal"]:
        assert reported["swap_total_kb"] == mem["SwapTotal"] and abs(reported["swap_used_kb"] - (mem["SwapTotal"] - mem["SwapFree"])) < near
    else:
        assert "swap_total_kb" not in reported and "swap_used_kb" not in reported
    limit = memory_limit()
    assert reported.get("limit_kb") == (limit if limit is not None and limit < mem["MemTotal"] else None)
    free = next(line.split() for line in subprocess.run(["free", "-k"], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout.splitlines() if line.startswith("Mem:"))
    assert reported["total_kb"] == int(free[1])
    assert abs(reported["used_kb"] - int(free[2])) < near and abs(reported["available_kb"] - int(free[6])) < near

    load = [second["load"][name] for name in ("avg_1m", "avg_5m", "avg_15m")]
    assert all(abs(value - float(text)) < 1 for value, text in zip(load, after["load"])), (load, after["load"])
    assert abs(second["uptime_sec"] - after["uptime"]) <= 1.1
    zones = [zone for zone in os.listdir("/sys/class/thermal") if zone.startswith("thermal_zone")] if os.path.isdir("/sys/class/thermal") else []
    assert zones or "temp_c" not in second

    assert network["interfaces"].keys() == before["net"].keys()
    for name, values in network["interfaces"].items():
        all_bracketed({}, values, before["net"][name])
        for counter, value in values.items():
            assert value <= after["net"][name][counter], (name, counter)


def test_processes_only_while_profiling(start, agent_at):
    program = start.workload("shares", 600, 2)

    def look():
        return dict(at=time.monotonic(), stat=process_stat(program.pid), status=keys(f"/proc/{program.pid}/status"))

    peer = Peer(look)
    agent = agent_at(peer, "--metrics", 1)
    assert peer.rounds(2) == ["system", "network", "agent"] * 2
    assert peer.command("start", pid=program.pid)["ok"]
    first, before, _ = peer.next("process")
    assert first["cpu_pct"] is None and first["pid"] == program.pid
    frame, after, _ = peer.next("process")

    stat, status = after["stat"], after["status"]
    ticks = sum(int(stat[field]) - int(before["stat"][field]) for field in (14, 15))
    share = 100 * ticks / TICKS / (after["at"] - before["at"])
    assert abs(frame["cpu_pct"] - share) < 2 * SHARE_POINTS, (frame, share)  # of two threads
    assert frame["comm"] == read(f"/proc/{program.pid}/comm").strip()
    assert frame["state"] in "RSD"
    assert frame["threads"] == int(status["Threads"]) == int(stat[20])
    assert frame["vsize_kb"] == int(status["VmSize"])
    assert abs(frame["rss_kb"] - int(status["VmRSS"])) <= 512
    assert frame["fds"] == len(os.listdir(f"/proc/{program.pid}/fd"))
    assert abs(frame["oom_score"] - int(read(f"/proc/{program.pid}/oom_score"))) <= 5  # changes with the memory use of the machine
    for name, kernels in {"voluntary_csw": "voluntary_ctxt_switches", "involuntary_csw": "nonvoluntary_ctxt_switches"}.items():
        bracketed(int(before["status"][kernels]), frame[name], int(status[kernels]), name)
    bracketed(int(before["stat"][10]), frame["minor_faults"], int(stat[10]), "minor_faults")
    bracketed(int(before["stat"][12]), frame["major_faults"], int(stat[12]), "major_faults")
    ps = subprocess.run(["ps", "-o", "rss=,vsz=,nlwp=", "-p", str(program.pid)], capture_output=True, text=True, check=True).stdout.split()
    assert abs(frame["rss_kb"] - int(ps[0])) <= 512 and [frame["vsize_kb"], frame["threads"]] == [int(ps[1]), int(ps[2])]

    # The agent's own frame: counters of this recording, and values that ps reports too.
    own, _, _ = peer.next("agent")
    for _ in range(60):
        if own["samples_read"] > 50:
            break
        own, _, _ = peer.next("agent")
    rss = int(subprocess.run(["ps", "-o", "rss=", "-p", str(agent.pid)], capture_output=True, text=True, check=True).stdout)
    assert abs(own["rss_kb"] - rss) < 1024 and own["ring_kb"] > 0
    assert 0 <= own["cpu_pct"] < 20 and own["samples_lost"] == 0
    assert own["samples_read"] > 50 and own["spool_bytes"] > 0  # this peer never acknowledges

    assert peer.command("pause")["ok"]
    assert peer.rounds(1) == ["system", "process", "network", "agent"]
    assert peer.command("resume")["ok"] and peer.command("stop")["ok"]
    assert peer.rounds(1) == ["system", "network", "agent"]


def test_configure_metrics(start, agent_at):
    program = start.workload("shares", 600, 3)
    tasks = sorted(int(task) for task in os.listdir(f"/proc/{program.pid}/task"))

    def look():
        return dict(disks=disks(), io={name: int(value) for name, value in keys(f"/proc/{program.pid}/io").items()},
                    ticks={task: sum(int(process_stat(program.pid, task)[field]) for field in (14, 15)) for task in tasks})

    wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) >= 3, 10, "the threads")
    tasks = sorted(int(task) for task in os.listdir(f"/proc/{program.pid}/task"))
    peer = Peer(look)
    agent_at(peer, "--metrics", 60, "--pid", program.pid)
    as_started = dict(id="7f", ok=True, metrics_enabled=True, interval=60, network=True, disk=False, threads=False)
    assert peer.command("configure_metrics") == as_started
    assert peer.command("configure_metrics", interval=1, network=False, disk=True, threads=True) == {
        **as_started, "interval": 1, "network": False, "disk": True, "threads": True}
    assert peer.rounds(1) == ["system", "process", "disk", "threads", "agent"]

    _, before, _ = peer.next("disk")
    disk, after, _ = peer.next("disk")
    assert disk["devices"].keys() == set(list(after["disks"])[:8])
    for name, values in disk["devices"].items():
        all_bracketed(before["disks"][name], values, after["disks"][name])
    proc = disk["proc"]
    assert proc["pid"] == program.pid
    for name in ("read_bytes", "write_bytes", "syscr", "syscw"):
        bracketed(before["io"][name], proc[name], after["io"][name], name)

    _, before, _ = peer.next("threads")
    threads, after, _ = peer.next("threads")
    assert threads["pid"] == program.pid and threads["clk_tck"] == TICKS
    assert [thread["tid"] for thread in threads["threads"]] == tasks
    for thread in threads["threads"]:
        bracketed(before["ticks"][thread["tid"]], thread["ticks"], after["ticks"][thread["tid"]], thread)
        assert thread["comm"] == read(f"/proc/{program.pid}/task/{thread['tid']}/comm").strip() and thread["state"] in "RSD"

    for wrong, sentence in ((dict(interval=0), "interval must be a whole number from 1 to 60"), (dict(disk="yes"), "disk must be true or false")):
        assert peer.command("configure_metrics", **wrong) == {"id": "7f", "ok": False, "error": sentence}
    assert peer.command("configure_metrics", enabled=False)["metrics_enabled"] is False
    time.sleep(0.3)  # a round was in progress
    peer.drop_waiting()
    time.sleep(2.2)
    assert peer.frames.empty()
    assert peer.command("configure_metrics", enabled=True)["interval"] == 1
    frame, _, _ = peer.next("system")
    assert frame["cpu"]["overall_pct"] is None  # a share over the pause would cover another interval


def test_health_goes_on_after_a_reconnect(agent_at):
    peer = Peer()
    agent_at(peer, "--metrics", 1)
    peer.next("system")
    assert peer.next("system")[0]["cpu"]["overall_pct"] is not None
    peer.cut()
    wait_until(lambda: peer.connections == 2, 20, "the agent's return")
    peer.drop_waiting()
    assert peer.next("system")[0]["type"] == "system"


def frames_of(path):
    """A session file's frames, as docs/wire/session-file.md describes them."""
    data = path.read_bytes()
    assert data[:8] == b"FLMWIRE\n"
    at = 12
    while at < len(data):
        length, flag = struct.unpack(">IB", data[at + 8 : at + 13])
        yield flag, data[at + 13 : at + 13 + length]
        at += 13 + length


def test_session_file(start, tmp_path):
    program = start.workload("shares", 600)
    silent, full = tmp_path / "silent.flw", tmp_path / "full.flw"
    agents = [start.agent("--output", file, "--pid", program.pid, "--duration", 3, "--metrics", metrics, name=file.stem)
              for file, metrics in ((silent, "off"), (full, "1"))]
    assert [agent.wait() for agent in agents] == [0, 0]
    assert not [flag for flag, _ in frames_of(silent) if flag == METRICS]
    frames = [json.loads(payload) for flag, payload in frames_of(full) if flag == METRICS]
    kinds = [frame["type"] for frame in frames]
    assert kinds[:4] == ["system", "process", "network", "agent"]
    assert kinds.count("process") >= 2
    shares = [frame["cpu_pct"] for frame in frames if frame["type"] == "process"]
    assert shares[0] is None and shares[1] > 0
    # The first and the last record are unchanged: the hello, and the batch that ends the recording.
    flags = [flag for flag, _ in frames_of(full)]
    assert flags[0] == REPLY and flags[-1] in (5, 6)
