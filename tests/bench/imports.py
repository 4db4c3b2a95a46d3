"""`./dev bench imports`: CPU time and memory of importing recordings of other tools, against other readers of these files.

A server imports each file right after its recording, so it is in the page cache, and exits. Its task-clock covers the whole run, including
symbolization. FLAMEWIRE_STACKCOLLAPSE and FLAMEWIRE_PERFPARSER are the paths of peers. Without them these are not compared."""

import os
import pathlib
import struct
import subprocess
import time

import flamewire
from flamewire import BIN

PERF = "perf"
SAMPLE, FINISHED_ROUND = 9, 68
GIGABYTE = 10**9


def records(body):
    at = 0
    while at < len(body):
        kind, _, size = struct.unpack_from("<IHH", body, at)
        yield kind, at, size
        at += size


def repeated(source, target, least_bytes):
    """Writes a perf.data that repeats the samples of `source` at later times until it is large enough, as if the program had continued.
    The samples begin with ip, tid and time, as those of perf record without further options do."""
    data = source.read_bytes()
    _, _, _, _, offset, size = struct.unpack_from("<6Q", data, 8)
    body = data[offset : offset + size]
    again, times = bytearray(), []
    for kind, at, length in records(body):
        if kind == SAMPLE:
            times.append((len(again) + 24, struct.unpack_from("<Q", body, at + 24)[0]))
        if kind in (SAMPLE, FINISHED_ROUND):
            again += body[at : at + length]
    span = max(time for _, time in times) - min(time for _, time in times) + 1
    with target.open("wb") as out:
        out.write(data[: offset + size])
        turn = 0
        while out.tell() < least_bytes:
            turn += 1
            for at, moment in times:
                struct.pack_into("<Q", again, at, moment + turn * span)
            out.write(again)
        grown = out.tell() - offset - size
        features = sum(word.bit_count() for word in struct.unpack_from("<4Q", data, 72))
        for section in range(features):
            at, length = struct.unpack_from("<QQ", data, offset + size + 16 * section)
            out.write(struct.pack("<QQ", at + grown, length))
        out.write(data[offset + size + 16 * features :])
        out.seek(48)
        out.write(struct.pack("<Q", size + grown))
    return len(times) * (turn + 1)


def cpu_ms(directory, command, **options):
    report = pathlib.Path(directory) / "peer.stat"
    subprocess.run([PERF, "stat", "-x,", "-e", "task-clock", "-o", report, "--", *command], check=True, **options)
    return next(float(line.split(",")[0]) for line in report.read_text().splitlines() if "task-clock" in line)


def imported(directory, path):
    """(seconds until the session exists, CPU ms of the server's whole life, its peak RSS in bytes, the session's entry)"""
    report = pathlib.Path(directory) / "import.stat"
    start = time.monotonic()
    server = flamewire.Server(directory, "--import", path, name=f"import-{path.name}", data_dir=pathlib.Path(directory) / f"data-{path.name}",
                              program=(PERF, "stat", "-x,", "-e", "task-clock", "-o", report, "--", BIN / "flamewire-server"))
    with flamewire.ended(server):
        child = int(subprocess.run(["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=True).stdout)
        while (entry := server.get("/api/imports")["imports"][0])["state"] == "running":
            time.sleep(0.01)
        seconds = time.monotonic() - start
        assert entry["state"] == "done", entry
        peak = next(int(line.split()[1]) * 1024 for line in pathlib.Path(f"/proc/{child}/status").read_text().splitlines() if line.startswith("VmHWM"))
        session = server.session(entry["session"])
        os.kill(child, 2)
        server.wait(60)
    return seconds, next(float(line.split(",")[0]) for line in report.read_text().splitlines() if "task-clock" in line), peak, session


def record(directory, name, program, seconds, frequency, call_graph, *options):
    data = pathlib.Path(directory) / name
    subprocess.run([PERF, "record", "-q", "-e", "cpu-clock", "-F", frequency, "--call-graph", call_graph, "-m", "16M", *options, "-o", data, "--", BIN / program, str(seconds)],
                   check="--max-size" not in options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return data


def measure(directory, result, smoke=False):
    chains = record(directory, "chains.data", "bench-workload", 1 if smoke else 40, "1997" if smoke else "max", "fp")
    large = pathlib.Path(directory) / "large.data"
    samples = repeated(chains, large, GIGABYTE // 100 if smoke else GIGABYTE)
    size = large.stat().st_size
    seconds, cpu, peak, session = imported(directory, large)
    assert session["samples"] == samples, session
    # One thread does all the work, so CPU time gives the speed even on a busy machine.
    result("import of 1 GB of perf.data, frame pointers: CPU time relative to 400 MB/s", cpu / 1000 / (size / 400e6), 1, "x",
           f"{size / 1e3 / cpu:.0f} MB per CPU second, {size / 1e6 / seconds:.0f} MB/s of wall time; {samples} samples, {size / samples:.0f} B each")
    result("import of 1 GB of perf.data: peak RSS of the server", peak / 2**20, 200, "MiB")
    large.unlink()

    text = pathlib.Path(directory) / "script.txt"
    whole = subprocess.Popen([PERF, "script", "--no-inline", "-i", chains], stdout=subprocess.PIPE)
    with text.open("wb") as out:
        subprocess.run(["head", "-c", "500000" if smoke else "25000000"], stdin=whole.stdout, stdout=out, check=True)
    whole.stdout.close()
    whole.wait(60)
    _, cpu, _, session = imported(directory, text)
    collapse = os.environ.get("FLAMEWIRE_STACKCOLLAPSE")
    peer = cpu_ms(directory, ["perl", collapse, text], stdout=subprocess.DEVNULL) if collapse else None
    result("import of 25 MB of perf script text, CPU" + (": ratio to stackcollapse-perf.pl" if peer else ""), cpu / peer if peer else cpu, 0.2 if peer else None,
           "x" if peer else "ms", f"{cpu:.0f} ms, {session['samples']} samples; " + (f"the script {peer:.0f} ms" if peer else "no stackcollapse-perf.pl (FLAMEWIRE_STACKCOLLAPSE is not set)"))

    # About 20,000 stacks, however busy the machine is.
    stacks = record(directory, "stacks.data", "bench-nofp-workload", 2 if smoke else 60, "1997", "dwarf,16384", "--max-size", "10M" if smoke else "330M")
    _, cpu, _, session = imported(directory, stacks)
    # Both resolve inlined functions. Without them perf has less to do.
    peer, names_only = (cpu_ms(directory, [PERF, "script", *option, "-i", stacks], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for option in ([], ["--no-inline"]))
    result("import of DWARF stacks of 16 KiB, CPU: ratio to perf script", cpu / peer, 0.25, "x",
           f"{cpu:.0f} ms, inlined functions and lines included, against {peer:.0f} ms, {names_only:.0f} ms with --no-inline; {session['samples']} samples, {stacks.stat().st_size / 1e6:.0f} MB")
    parser = os.environ.get("FLAMEWIRE_PERFPARSER")
    if parser:
        peer = cpu_ms(directory, [parser, "--input", stacks], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result("import of DWARF stacks of 16 KiB, CPU per sample", 1000 * cpu / session["samples"], 1000 * peer / session["samples"] if parser else 440_000 / 19_445, "us",
           f"hotspot's perfparser {peer:.0f} ms" if parser else "hotspot's perfparser, measured on a similar machine: 0.44 s for 19,445 samples")
