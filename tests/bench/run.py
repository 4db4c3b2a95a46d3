"""Measures Flamewire, and other tools in the same run for comparison.

CPU time is that of `perf stat -e task-clock`, because rusage under-reports on some virtual machines. With --write the figures replace
those in docs/measurements.md; figures of benches that did not run stay. With --smoke each bench runs briefly with little input, and
fails unless it reports finite figures. These figures mean nothing."""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))

import family  # noqa: E402
import flamewire  # noqa: E402
from flamewire import BIN, ROOT, Agent, Relay, Server, wait_until, workload  # noqa: E402

SMOKE = False
SECONDS = 10
PATIENCE = 60  # seconds, for a busy machine
PERF = "perf"
RESULTS = []  # (figure, value, unit, bar, peer)


def either(measured, smoke):
    """The amount for a measurement, or the one for a smoke run."""
    return smoke if SMOKE else measured


def lifetime(measurements):
    """An upper bound in seconds for the run time of a program that is measured this often. It is stopped earlier."""
    return either(SECONDS * measurements, 120)


def result(figure, value, bar, unit="", peer=""):
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        sys.exit(f"bench: {figure}: {value} is not a finite number")
    RESULTS.append((figure, value, unit, bar, peer))
    if SMOKE:
        print(f"{figure}: {value:.4g} {unit}", flush=True)
        return
    met = "" if bar is None else ("  met" if value <= bar else "  MISSED")
    print(f"{figure}: {value:.4g} {unit}" + (f" (bar {bar:g})" if bar is not None else "") + (f"; {peer}" if peer else "") + met, flush=True)


class TaskClock:
    """Runs a command under `perf stat -e task-clock`. cpu_ms() waits until it has ended."""

    def __init__(self, directory, name, command):
        self.report = pathlib.Path(directory) / f"{name}.stat"
        self.process = flamewire.Process(name, [PERF, "stat", "-x,", "-e", "task-clock", "-o", self.report, "--", *command], directory)

    def child(self):
        return int(wait_until(lambda: subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split(), 10, "the child")[0])

    def cpu_ms(self):
        if self.process.wait(120) != 0:
            raise RuntimeError(f"{self.process.name} failed: {self.process.err[-1000:]}")
        for line in self.report.read_text().splitlines():
            fields = line.split(",")
            if len(fields) > 2 and fields[2].startswith("task-clock"):
                return float(fields[0])
        raise RuntimeError(f"no task-clock in {self.report}")


def resident_bytes(pid):
    """RSS from /proc/PID/smaps. It does not contain mapped perf rings; the agent reports their size."""
    return sum(int(line.split()[1]) * 1024 for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines() if line.startswith("Rss:"))


def perf_peer(directory, pid, seconds, call_graph="fp"):
    """(samples, CPU ms of record, CPU ms of script, bytes of the text compressed by zstd -1)."""
    data = pathlib.Path(directory) / "perf.data"
    record = TaskClock(directory, "perf-record", [PERF, "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", call_graph, "-m", "8M", "-p", str(pid), "-o", data, "--", "sleep", str(seconds)]).cpu_ms()
    text = pathlib.Path(directory) / "perf.txt"
    script = TaskClock(directory, "perf-script", ["sh", "-c", f"exec {PERF} script --no-inline -F comm,tid,pid,time,period,event,ip,sym,symoff,dso -i {data} > {text}"]).cpu_ms()
    samples = sum(1 for line in text.open() if line.strip() and not line.startswith(("\t", " ")))
    subprocess.run(["zstd", "-q", "-1", "-f", text, "-o", f"{text}.zst"], check=True)
    return samples, record, script, pathlib.Path(f"{text}.zst").stat().st_size


def agent_run(directory, server, pid, seconds, name, *options, link=("--insecure",)):
    """One recording of `seconds`, including the start: (session, CPU ms, bytes on the wire, RSS, ring bytes)."""
    relay = Relay(server.port)
    known = {session["id"] for session in server.sessions()}
    clock = TaskClock(directory, name, [BIN / "flamewire-agent", "--server", "127.0.0.1", *link, "--port", str(relay.port), "--pid", str(pid),
                                        "--frequency", "999", "--events", "cpu-clock", "--stat", "none", "--metrics", "off", *options])
    agent = clock.child()
    wait_until(lambda: any(session["samples"] for session in server.sessions() if session["id"] not in known), PATIENCE, "samples")
    time.sleep(seconds - 0.2)
    rss = resident_bytes(agent)
    rings = server.get("/api/agents")["agents"][0]["stats"]["ring_bytes"]
    time.sleep(0.2)
    os.kill(agent, 15)
    cpu = clock.cpu_ms()
    identity = next(session["id"] for session in server.sessions() if session["id"] not in known)
    relay.close()
    return server.session(identity), cpu, relay.bytes_up, rss, rings


def compare_agent(directory, label, pid, seconds, with_bars):
    server = Server(directory, "--insecure", name=f"server-{label}", data_dir=pathlib.Path(directory) / f"data-{label}")
    with flamewire.ended(server):
        session, cpu, sent, rss, rings = agent_run(directory, server, pid, seconds, f"agent-{label}", "--unwind", "fp")
        samples, record, script, text = perf_peer(directory, pid, seconds)
        per_sample = 1000 * cpu / session["samples"]
        peer = 1000 * (record + script) / samples
        result(f"agent CPU per sample, {label}: ratio to perf record + perf script", per_sample / peer, 0.25 if with_bars else None, "x",
               f"{per_sample:.2f} us of {session['samples']} samples against {peer:.2f} us (record {1000 * record / samples:.2f}, script {1000 * script / samples:.2f})")
        result(f"bytes on the wire per sample, {label}", sent / session["samples"], 3 if with_bars else None, "B", f"perf script text, zstd -1: {text / samples:.1f} B")
        result(f"samples lost, {label}", flamewire.lost(session), 0 if with_bars else None)
        if with_bars:
            result("agent RSS while profiling, rings excluded", rss / 2**20, 8, "MiB", f"plus {rings / 2**20:.1f} MiB of rings")
        server.stop()


def bench_agent(directory):
    """The agent's CPU time and bytes on the wire per sample, its memory, and the size of its file."""
    program = workload(directory, "bench", lifetime(4))
    with flamewire.ended(program):
        time.sleep(0.5)
        compare_agent(directory, "bench workload", program.pid, SECONDS, True)
    size = (BIN / "flamewire-agent").stat().st_size
    result("agent, static and stripped", size / 1e6, 2.26, "MB")


def bench_link(directory):
    """The cost of encryption for the agent: per sample, per connection, and in the size of its file."""
    server = Server(directory, "--insecure", name="server-link", data_dir=pathlib.Path(directory) / "data-link")
    program = workload(directory, "bench", lifetime(4))
    with flamewire.ended(program, server):
        time.sleep(0.5)
        runs = {}
        for way, link in (("plain", ["--insecure"]), ("encrypted", ["--pair", server.pair()])):
            session, cpu, sent, _, _ = agent_run(directory, server, program.pid, SECONDS, f"agent-{way}", "--unwind", "fp", link=link)
            runs[way] = (1000 * cpu / session["samples"], sent / session["samples"], sent / max(1, session["batches"]))
    batch = int(runs["plain"][2])
    per_byte, handshake, growth = map(float, subprocess.run([BIN / "bench_secure", str(batch), *either([], ["--smoke"])], check=True, capture_output=True, text=True).stdout.split())
    result("encryption, CPU per sample", per_byte * runs["plain"][1] / 1000, 0.3, "us",
           f"{per_byte:.1f} ns per byte, {runs['plain'][1]:.2f} B per sample in batches of {batch} B; whole agent {runs['encrypted'][0]:.2f} us per sample, {runs['plain'][0]:.2f} us without")
    result("encryption, bytes on the wire", runs["encrypted"][1], None, "B", f"{runs['plain'][1]:.2f} B per sample without; batches grow by {100 * (growth - 1):.1f} %")
    result("encryption, CPU per connection", handshake / 1e6, None, "ms")
    symbols = subprocess.run(["nm", "-C", "--print-size", "--size-sort", BIN / "flamewire-agent.debug"], check=True, capture_output=True, text=True).stdout
    size = sum(int(line.split()[1], 16) for line in symbols.splitlines() if re.search(r" (mbedtls_|ssl_|ecp_|flamewire::secure::|mpi_|chachapoly_|chacha20_|poly1305_|ecdh_)", line))
    result("encryption, in the agent's file", size / 1000, 100, "KB")


def bench_compiler(directory):
    """The same costs per sample for a real compiler: cc1plus runs repeatedly on one of this project's sources."""
    source = either(ROOT / "src" / "wire" / "control.cc", pathlib.Path(directory) / "small.cc")
    if SMOKE:  # many compilers must start within a second
        source.write_text("#include <cstdlib>\nint main() { return std::abs(-1); }\n")
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
    preprocessed = pathlib.Path(directory) / "unit.ii"
    subprocess.run(["g++", "-std=c++23", "-DASIO_STANDALONE", f"-I{ROOT / 'src'}", "-E", source, "-o", preprocessed], check=True)
    program = flamewire.Process("compiler", ["sh", "-c", f"while :; do {cc1plus} -quiet -O2 -std=c++23 {preprocessed} -o /dev/null & {cc1plus} -quiet -O2 -std=c++23 {preprocessed} -o /dev/null; wait; done"], directory)
    with flamewire.ended(program):
        time.sleep(0.2)
        compare_agent(directory, "cc1plus", program.pid, SECONDS, False)
        subprocess.run(["pkill", "-P", str(program.pid)])


def bench_latency(directory):
    """Age of the newest sample in a flame graph when a client receives it; it fetches one on each notification."""
    server = Server(directory, name="server-latency", data_dir=pathlib.Path(directory) / "data-latency")
    program = workload(directory, "demo", 120)
    agent = Agent(directory, "--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999)
    ages = []
    with flamewire.ended(agent, program, server):
        wait_until(lambda: any(session["samples"] for session in server.sessions()), PATIENCE, "a session")
        end = time.monotonic() + either(20, 2)
        with server.stream() as events:
            for name, _ in events:
                if time.monotonic() > end:
                    break
                if name == "data_version":
                    newest = server.request("GET", "/api/flamegraph", check=False)[2]["newest_ns"]
                    # newest_ns is the end of a 10 ms bucket. Use its beginning, which is never newer than the sample.
                    ages.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - newest) / 1e6 + 10)
    ages.sort()
    result("newest sample shown, age on receipt, p50", statistics.median(ages), 400, "ms", f"{len(ages)} updates")
    result("newest sample shown, age on receipt, p99", ages[int(len(ages) * 0.99)], 1000, "ms")


def bench_program(directory, program, *arguments):
    """Runs a bench program that prints one JSON line per figure."""
    del directory
    outcome = subprocess.run([BIN / program, *arguments, *either([], ["--smoke"])], stdout=subprocess.PIPE, text=True)
    if outcome.returncode != 0:
        sys.exit(f"bench: {program} failed")  # it reported the reason on stderr
    for line in outcome.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            result(entry["figure"], entry["value"], entry.get("bar"), entry.get("unit", ""), entry.get("peer", ""))


def bench_profile(directory):
    """A store of a million rows: memory per row, and the time of queries."""
    bench_program(directory, "bench_profile")


def bench_day(directory):
    """A session with a day of history: memory, and the time of answers."""
    bench_program(directory, "bench_day", directory)


def bench_replay(directory):
    """Opening a session file of an hour: the time until the first picture."""
    bench_program(directory, "bench_replay")


def bench_pipeline(directory):
    """The agent's CPU time per sample, from the record to the row."""
    bench_program(directory, "bench_pipeline")


def bench_symbols(directory):
    """Symbolization of addresses, against llvm-symbolizer."""
    few = either([], ["--runs", "1", "--addresses", "1000"])
    outcome = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "symbol" / "run.py", BIN / "flamewire-server", directory, *few], check=True, stdout=subprocess.PIPE, text=True)
    for line in outcome.stdout.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            result(entry["figure"], entry["value"], entry.get("bar"), entry.get("unit", ""), entry.get("peer", ""))


def bench_unwind(directory):
    """Unwinding alone, for recordings of the bench workload without frame pointers and of Debian's programs."""
    sys.path.insert(0, str(ROOT / "tests" / "oracle" / "unwind"))
    import programs

    nofp = pathlib.Path(directory) / "bench-nofp.data"
    subprocess.run([PERF, "record", "-q", "-B", "-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,16384", "-m", "8M", "-o", nofp, "--", BIN / "bench-nofp-workload", either("4", "1")], check=True, stdout=subprocess.DEVNULL)
    recordings = [nofp]
    for name in ("compiler", "interpreter", "database", "compressor", "server", "second_compiler"):
        home = pathlib.Path(directory) / name
        home.mkdir()
        recordings.append(programs.record(name, home, *either([], [0.2, 100])))
    bench_program(directory, "bench_unwind", *recordings)


def bench_stacks(directory):
    """Live recording with unwind tables: the cost per sample, against perf."""
    server = Server(directory, "--insecure", name="server-stacks", data_dir=pathlib.Path(directory) / "data-stacks")
    with flamewire.ended(server):
        program = flamewire.Process("nofp", [BIN / "bench-nofp-workload", str(lifetime(4))], directory)
        with flamewire.ended(program):
            time.sleep(0.5)
            session, cpu, sent, rss, rings = agent_run(directory, server, program.pid, SECONDS, "agent-dwarf", "--unwind", "dwarf", "--stack-size", "16384")
            samples, record, script, _ = perf_peer(directory, program.pid, SECONDS, "dwarf,16384")
        per_sample, peer = 1000 * cpu / session["samples"], 1000 * (record + script) / samples
        result("dwarf, 16 KiB: agent CPU per sample, ratio to perf record + perf script", per_sample / peer, 0.15, "x",
               f"{per_sample:.2f} us of {session['samples']} samples against {peer:.2f} us (record {1000 * record / samples:.2f}, script {1000 * script / samples:.2f})")
        totals = session["unwind_totals"]
        result("dwarf, 16 KiB: stacks not whole", 100 * (1 - (totals["whole"] + totals["joined"]) / totals["samples"]), 0.1, "%")
        result("dwarf, 16 KiB: samples lost", flamewire.lost(session), 0)
        result("dwarf, 16 KiB: agent RSS, rings excluded", rss / 2**20, 16, "MiB", f"plus {rings / 2**20:.1f} MiB of rings")
        result("dwarf, 16 KiB: bytes on the wire per sample", sent / session["samples"], None, "B")
        program = flamewire.Process("fp", [BIN / "bench-workload", str(lifetime(2))], directory)
        with flamewire.ended(program):
            time.sleep(0.5)
            session, cpu, *_ = agent_run(directory, server, program.pid, SECONDS, "agent-auto")
        result("auto, bench workload with frame pointers: agent CPU per sample", 1000 * cpu / session["samples"], None, "us",
               ", ".join(f"{process['mode']}: {process['why']}" for process in session["unwind_processes"]))
        server.stop()


def bench_slowdown(directory):
    """The slowdown of a program without frame pointers while it is profiled, against perf record.
    
    Profilers take turns on one process, so that other load on the machine affects all of them."""
    turns, settle, measured, pause = either((10, 1.5, 3.0, 1.7), (1, 0.5, 1.0, 1.2))
    pid = 0

    def agent(mode):
        return [BIN / "flamewire-agent", "--output", pathlib.Path(directory) / "slow.flw", "--force", "--frequency", "999", "--events", "cpu-clock", "--unwind", mode,
                "--stack-size", "16384", "--stat", "none", "--duration", str(settle + measured + 1), "--pid", str(pid)]

    def perf(call_graph):
        return [PERF, "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", call_graph, "-m", "8M", "-o", pathlib.Path(directory) / "slow.data", "-p", str(pid)]

    ways = {"dwarf": lambda: agent("dwarf"), "perf dwarf": lambda: perf("dwarf,16384"), "hybrid": lambda: agent("hybrid"), "perf fp": lambda: perf("fp")}
    program = flamewire.Process("slowdown", [BIN / "bench-nofp-workload", str(either(turns * len(ways) * 8 + 20, 120))], directory)
    windows = {way: [] for way in ways}
    with flamewire.ended(program):
        pid = program.pid
        time.sleep(either(3, 1))
        for _ in range(turns):
            for way, command in ways.items():
                before = time.monotonic()
                process = subprocess.Popen([str(part) for part in command()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(settle)
                start = time.monotonic()
                time.sleep(measured)
                windows[way].append((before, start, start + measured))
                process.send_signal(2)
                process.wait(60)
                time.sleep(pause)
        lines = [(float(line.split()[0]), int(line.split()[1])) for line in program.out.splitlines()]

    def rate(start, end):
        inside = [line for line in lines if start <= line[0] <= end]
        if len(inside) < 2:
            sys.exit("bench: the program ran too rarely to be measured")
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def lost(way):
        shares = []
        for before, start, end in windows[way]:
            following = [at for all_windows in windows.values() for at, _, _ in all_windows if at > end]
            alone = [rate(before - (pause - 0.2), before)] + ([rate(min(following) - (pause - 0.2), min(following))] if following else [])
            shares.append(100 * (1 - rate(start, end) / statistics.mean(alone)))
        return statistics.median(shares)

    percent = {way: lost(way) for way in ways}
    result("slowdown of the target, dwarf 16 KiB", percent["dwarf"], percent["perf dwarf"], "%", f"perf record --call-graph dwarf,16384: {percent['perf dwarf']:.2f} %")
    result("slowdown of the target, hybrid", percent["hybrid"], percent["perf fp"], "%", f"perf record --call-graph fp: {percent['perf fp']:.2f} %")


def probed(directory, probe, calls):
    """(CPU ns of the program, hits) while the agent counts the hits of `probe`; without one, hits are 0."""
    stat = ",".join(["task-clock", *([probe] if probe else [])])
    table = subprocess.run([BIN / "flamewire-agent", "--output", "-", "--events", "none", "--stat", stat, "--", BIN / "probes-workload", "calls", str(calls)],
                           capture_output=True, text=True, check=True, cwd=directory).stdout
    number = re.search(r"([\d,.]+) msec task-clock", table)[1].replace(",", "")
    hits = re.search(r"([\d,]+) +hits", table)
    return float(number) * 1e6, int(hits[1].replace(",", "")) if hits else 0


def bench_probes(directory):
    """The program's CPU time per hit of a probe that is counted: at the chosen instruction, at the function's entry and at its returns."""
    workload_file = BIN / "probes-workload"
    calls = either(50_000, 500)
    symbol = subprocess.run(["nm", workload_file], capture_output=True, text=True, check=True).stdout
    entry = int(re.search(r"^([0-9a-f]+) T probed_leaf$", symbol, re.M)[1], 16)
    places = {"chosen instruction": f'uprobe:probed_leaf@"{workload_file}"/alias=hits/', "entry": f'uprobe:"{workload_file}":{entry:#x}/alias=hits/',
              "return": f'uretprobe:probed_leaf@"{workload_file}"/alias=hits/'}
    alone = statistics.median(probed(directory, "", calls)[0] for _ in range(3))
    costs = {}
    for place, probe in places.items():
        runs = [probed(directory, probe, calls) for _ in range(3)]
        costs[place] = statistics.median((used - alone) / hits for used, hits in runs) / 1000
    result("CPU time of the program per hit of a probe, counted, at the chosen instruction", costs["chosen instruction"], 1, "us",
           f"{costs['entry']:.2f} us at the entry, an instruction that the kernel does not emulate, {costs['return']:.2f} us at the returns; median of 3")


def bench_targets(directory):
    """Agent CPU per sample for a whole machine on which processes start and end, against fewer targets.
    
    Records two processes alone while no others start or end, then all processes one by one, then the whole machine."""
    server = Server(directory, name="server-targets", data_dir=pathlib.Path(directory) / "data-targets")
    labels = {"alone": "two processes alone", "each": "200 processes followed one by one", "machine": "whole machine, 200 processes"}
    runs = {}
    many = either(200, 20)
    with flamewire.ended(server):
        for way, (old, young, programs) in {"alone": (many, 0, 0), "each": (many, 10, 10), "machine": (many, 10, 10)}.items():
            crowd = family.ready(flamewire.Process(way, family.command(old, young, programs, nice=0), directory))
            with flamewire.ended(crowd):
                there = [str(pid) for pid in flamewire.children(crowd.pid)[:old]]
                time.sleep(1)
                target = {"alone": ["--pid", ",".join(there[::100])], "each": ["--pid", ",".join([str(crowd.pid), *there])], "machine": ["-a"]}[way]
                known = {session["id"] for session in server.sessions()}
                agent = Agent(directory, "--server", "127.0.0.1", "--port", server.port, *target, "--frequency", 999, "--events", "cpu-clock", "--unwind", "fp", "--stat", "none", "--metrics", "off", name=f"agent-{way}")
                with flamewire.ended(agent):
                    identity = wait_until(lambda known=known: next((session["id"] for session in server.sessions() if session["id"] not in known and session["samples"]), None), PATIENCE, "a session")
                    time.sleep(either(5, 0.5))
                    begun = sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{agent.pid}/task").glob("*/schedstat")) / 1e6
                    before, report = server.session(identity)["samples"], pathlib.Path(directory) / f"{way}.stat"
                    subprocess.run([PERF, "stat", "-x,", "-e", "task-clock", "-o", report, "-p", str(agent.pid), "--", "sleep", str(SECONDS)], check=True)
                    session = server.session(identity)
                    cpu = next(float(line.split(",")[0]) for line in report.read_text().splitlines() if "task-clock" in line)
                    result(f"{labels[way]}: samples lost", flamewire.lost(session), 0)
                    runs[way] = 1000 * cpu / (session["samples"] - before), session["samples"] - before, begun
                wait_until(lambda identity=identity: server.session(identity)["state"] != "live", PATIENCE, "the end")
    wide, all_samples, begun = runs["machine"]
    for way, against in {"each": "the same followed one by one", "alone": "two processes alone"}.items():
        cost, samples, _ = runs[way]
        result(f"whole machine, 200 processes, 20 start and end per second: agent CPU per sample, ratio to {against}", wide / cost, 1.3, "x", f"{wide:.2f} us of {all_samples} samples against {cost:.2f} us of {samples}")
    result("whole machine, 200 processes: agent CPU of the first 5 s", begun, None, "ms")


def bench_counters(directory):
    """The cost of counting and health: a recording agent without sampling, with defaults otherwise."""
    server = Server(directory, name="server-counters", data_dir=pathlib.Path(directory) / "data-counters")
    with flamewire.ended(server):
        for label, target in (("2 threads", workload(directory, "bench", lifetime(4))), ("50 threads", flamewire.Process("crowd", [flamewire.TESTS_BIN / "counters-workload", "crowd"], directory))):
            agent = Agent(directory, "--server", "127.0.0.1", "--port", server.port, "--pid", target.pid, "--events", "none", name="agent-" + label.replace(" ", "-"))
            with flamewire.ended(agent, target):
                wait_until(lambda: "counting" in agent.err, PATIENCE, "the agent")
                time.sleep(1)
                report = pathlib.Path(directory) / "counters.stat"
                subprocess.run([PERF, "stat", "-x,", "-e", "task-clock", "-o", report, "-p", str(agent.pid), "--", "sleep", str(2 * SECONDS)], check=True)
                cpu_ms = next(float(line.split(",")[0]) for line in report.read_text().splitlines() if "task-clock" in line)
                result(f"agent that only counts, health included, {label}", 100 * cpu_ms / (2 * SECONDS * 1000), 0.3, "% of a core", f"{cpu_ms:.1f} ms in {2 * SECONDS} s")
        server.stop()


def bench_page(directory):
    """The page in Chromium, with generated profiles of the mock server."""
    build = BIN.parent
    environment = {**os.environ, **either({}, {"FLAMEWIRE_BENCH_SMOKE": "1"}), "FLAMEWIRE_WEB_DIST": str(build / "web/ui/dist"), "FLAMEWIRE_E2E_PACKAGES": str(build / "tests/e2e/copy")}
    run = subprocess.run(["node", ROOT / "tests/bench/page.mjs"], env=environment, capture_output=True, text=True, timeout=1800, cwd=directory)
    if run.returncode != 0:
        sys.exit(f"bench: the page could not be measured (is Chromium installed, and the target flamewire_e2e_packages built?)\n{run.stderr}")
    for row in json.loads(run.stdout.strip().splitlines()[-1]):
        result(row["figure"], row["value"], row["bar"], row["unit"], row["note"])


def bench_load(directory):
    """The time from choosing a file of another tool to its picture, against speedscope's page."""
    environment = {**os.environ, **either({}, {"FLAMEWIRE_BENCH_SMOKE": "1"}), "FLAMEWIRE_E2E_PACKAGES": str(BIN.parent / "tests/e2e/copy"), "FLAMEWIRE_BIN": str(BIN)}
    run = subprocess.run(["node", ROOT / "tests/bench/load.mjs"], env=environment, capture_output=True, text=True, timeout=900, cwd=directory)
    if run.returncode != 0:
        sys.exit(f"bench: the time to load a file could not be measured\n{run.stderr}")
    for row in json.loads(run.stdout.strip().splitlines()[-1]):
        result(row["figure"], row["value"], row["bar"], row["unit"], row["note"])


def bench_cli(directory):
    """The wall time and CPU time that `flamewire record` adds to a command that does nothing."""

    def cost(name, *command, runs=15):
        walls, clocks = [], []
        for number in range(either(runs, 1)):
            begin = time.monotonic()
            subprocess.run(command, check=True, capture_output=True, cwd=directory)
            walls.append((time.monotonic() - begin) * 1000)
            clocks.append(TaskClock(directory, f"{name}{number}", command).cpu_ms())
        return statistics.median(walls), statistics.median(clocks)

    bare_wall, bare_cpu = cost("true", "true")
    wall, cpu = cost("record", str(BIN / "flamewire"), "record", "-q", "-F", "99", "--force", "-o", f"{directory}/true.flw", "--", "true")
    perf_wall, perf_cpu = cost("perf", PERF, "record", "-q", "-F", "99", "-o", f"{directory}/true.data", "--", "true", runs=5)
    result("flamewire record -F 99 -- true: wall time added to true", wall - bare_wall, 60, "ms", f"perf record {perf_wall - bare_wall:.0f} ms")
    result("flamewire record -F 99 -- true: CPU time added to true", cpu - bare_cpu, 60, "ms", f"perf record {perf_cpu - bare_cpu:.0f} ms")


def bench_size(directory):
    """The size of a recording on disk, with names and health, against a perf.data of the same time."""
    directory = pathlib.Path(directory)
    program = workload(directory, "bench", lifetime(4))
    with flamewire.ended(program):
        time.sleep(0.5)
        data = directory / "perf.data"
        peer = subprocess.Popen([PERF, "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "fp", "-m", "8M", "-p", str(program.pid), "-o", data, "--", "sleep", str(2 * SECONDS)])
        subprocess.run([BIN / "flamewire", "record", "-F", "999", "-e", "cpu-clock", "--unwind", "fp", "-p", str(program.pid), "-d", str(2 * SECONDS), "--data-dir", directory / "data"],
                       check=True, capture_output=True)
        peer.wait(60)
    files = [path for path in (directory / "data").rglob("*") if path.is_file()]
    (session,) = [path for path in files if path.suffix == ".flw"]
    samples = sum(one["samples"] for one in json.loads(subprocess.run([BIN / "flamewire", "export", session, "--format", "json"], check=True, capture_output=True).stdout)["events"])
    size, names, theirs = sum(path.stat().st_size for path in files), sum(path.stat().st_size for path in files if ".symbols" in path.name), data.stat().st_size
    result("session of 20 s, bench workload, frame pointers, on disk: ratio to perf.data", size / theirs, 1 / 50, "x",
           f"1 : {theirs / size:.1f}; {size / 1000:.0f} KB, {names / 1000:.0f} KB of them names, {size / samples:.2f} B per sample, against {theirs / 1e6:.2f} MB, {theirs / samples:.0f} B per sample, without names")


def bench_imports(directory):
    """Imports of other tools' recordings: CPU time and memory."""
    sys.path.insert(0, str(ROOT / "tests" / "bench"))
    import imports

    imports.measure(directory, result, SMOKE)


BENCHES = {"cli": bench_cli, "agent": bench_agent, "link": bench_link, "compiler": bench_compiler, "latency": bench_latency, "targets": bench_targets, "probes": bench_probes, "counters": bench_counters, "profile": bench_profile, "day": bench_day, "replay": bench_replay, "pipeline": bench_pipeline, "symbols": bench_symbols, "unwind": bench_unwind, "stacks": bench_stacks, "slowdown": bench_slowdown, "size": bench_size, "imports": bench_imports, "page": bench_page, "load": bench_load}


def write_document(some):
    path = ROOT / "docs" / "measurements.md"
    rows = ["| figure | value | bar | peer, same run |", "|---|---|---|---|"]
    rows += [f"| {figure} | {value:.3g} {unit} | {'' if bar is None else f'≤ {bar:g} {unit}'} | {peer} |" for figure, value, unit, bar, peer in RESULTS]
    text = path.read_text()
    # A run of some benches keeps the figures of all others.
    measured = {figure for figure, *_ in RESULTS}
    known = re.search(r"<!-- figures -->\n(.*?)<!-- end -->", text, flags=re.S)[1].splitlines()[2:]
    kept = [row for row in known if row[2:].split(" | ")[0] not in measured] if some else []
    rows[2:2] = kept
    text = re.sub(r"(<!-- figures -->\n).*?(<!-- end -->)", lambda match: match[1] + "\n".join(rows) + "\n" + match[2], text, flags=re.S)
    path.write_text(text)


def parse(arguments):
    width = max(map(len, BENCHES))
    listed = "\n".join(f"  {name:{width}}  {bench.__doc__.splitlines()[0]}" for name, bench in BENCHES.items())
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, epilog=f"benches:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these benches (default: all)")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measurements.md")
    parser.add_argument("--smoke", action="store_true", help="run each bench with tiny input to see that it works; measures nothing")
    parser.add_argument("--dry-run", action="store_true", help="check the arguments and run nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.exit(2, f"bench: no bench is named {' or '.join(unknown)}. The benches are: {', '.join(BENCHES)}.\n")
    if options.write and options.smoke:
        parser.exit(2, "bench: --write cannot be combined with --smoke, whose figures mean nothing. Omit one of them.\n")
    return options


def run_bench(name):
    before = len(RESULTS)
    directory = tempfile.mkdtemp(prefix="flamewire-bench.")
    try:
        BENCHES[name](directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if len(RESULTS) == before:
        sys.exit(f"bench: {name} reported no figure")


def main():
    global SMOKE, SECONDS
    options = parse(sys.argv[1:])
    if options.dry_run:
        return
    if options.smoke:
        SMOKE, SECONDS = True, 1
    for name in options.names or BENCHES:
        run_bench(name)
    if options.write:
        write_document(some=bool(options.names))


if __name__ == "__main__":
    main()
