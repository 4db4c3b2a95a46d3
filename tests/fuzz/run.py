"""./dev fuzz [SECONDS] [NAME...] [--clock] [--jobs N] [--write]: each target for so much CPU time, and what it reached. Seeds are copied, so the tree stays as it is."""
import argparse
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fuzzing.md"
LARGEST_SEED = 65536


def corpus(build, name):
    """The inputs to begin with: seeds and what earlier runs found."""
    folder = build / "fuzz" / name / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for seed in (ROOT / "tests" / "fuzz" / "seeds" / name).glob("*"):
        if seed.is_file() and seed.stat().st_size < LARGEST_SEED:
            (folder / seed.name).write_bytes(seed.read_bytes())
    return folder


def numbers(said):
    """(edges, of all, inputs kept, inputs tried) out of what libFuzzer prints."""
    counters = re.search(r"Loaded \d+ modules\s+\((\d+) inline 8-bit counters\)", said)
    state = re.findall(r"^#\d+\s+\S+\s+cov: (\d+).* corp: (\d+)/", said, re.M)
    tried = re.search(r"^stat::number_of_executed_units:\s+(\d+)$", said, re.M)
    edges, kept = map(int, state[-1]) if state else (0, 0)
    return edges, int(counters[1]) if counters else 0, kept, int(tried[1]) if tried else 0


def cpu_seconds(process):
    """Its CPU time by the scheduler's clock, also when it has ended and is not waited for."""
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9


def fuzz(command, seconds, by_clock):
    """Runs it until it had that much CPU time, however busy the machine is, or for so long: its end code, what it said, and the CPU seconds that it had."""
    begun, spent = time.monotonic(), 0.0
    with tempfile.TemporaryFile("w+", errors="replace") as said, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as process:
        while process.poll() is None:
            spent = cpu_seconds(process)
            if (time.monotonic() - begun if by_clock else spent) >= seconds:
                process.send_signal(signal.SIGUSR1)  # libFuzzer ends after the input that it is at
                process.wait()
            time.sleep(0.2)
        said.seek(0)
        return process.returncode, said.read(), spent


def run(program, seconds, by_clock):
    """The row of one target, and whether nothing was found."""
    build, name = program.parents[1], program.name.removeprefix("fuzz_")
    work = build / "fuzz" / name
    code, said, spent = fuzz([program, "-rss_limit_mb=2048", "-timeout=60", "-print_final_stats=1", f"-artifact_prefix={work}/", corpus(build, name)], seconds, by_clock)
    edges, of, kept, tried = numbers(said)
    found = re.search(r"Test unit written to (\S+)", said)
    finding = "none" if code == 0 else f"`{pathlib.Path(found[1]).name}`" if found else f"ended with {code}"
    print(f"{name:24} {tried:>12,} inputs  {edges:>7,} of {of:,} edges  {kept:>7,} kept  {finding}", flush=True)
    if code:
        print(said[-3000:], file=sys.stderr)
    return f"| {name} | {spent:.0f} | {tried:,} | {edges:,} of {of:,} | {kept:,} | {finding} |", code == 0


def write(rows):
    """Into the table, one row a target, those of others as they are."""
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split("<!-- table -->\n")
    table, tail = rest.split("<!-- end -->")
    lines = table.splitlines()
    known = {line.split("|")[1].strip(): line for line in lines[2:]}
    known.update(rows)
    PAGE.write_text(head + "<!-- table -->\n" + "\n".join([*lines[:2], *(known[name] for name in sorted(known))]) + "\n<!-- end -->" + tail, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="./dev fuzz")
    parser.add_argument("words", nargs="*", metavar="SECONDS or NAME")
    parser.add_argument("--clock", action="store_true", help="SECONDS by the clock, not of CPU time")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    parser.add_argument("--write", action="store_true", help="put the rows into docs/fuzzing.md")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build-fuzz" / "bin", help=argparse.SUPPRESS)
    arguments = parser.parse_intermixed_args()
    seconds = next((int(word) for word in arguments.words if word.isdigit()), 60)
    wanted = {word for word in arguments.words if not word.isdigit()}
    programs = {path.name.removeprefix("fuzz_"): path for path in sorted(arguments.bin.glob("fuzz_*")) if not path.suffix}
    if unknown := wanted - set(programs):
        sys.exit(f"dev: there is no fuzz target {', '.join(sorted(unknown))}: {', '.join(programs)}")
    names = [name for name in programs if not wanted or name in wanted]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        done = list(pool.map(lambda name: run(programs[name].resolve(), seconds, arguments.clock), names))
    if arguments.write:
        write({name: row for name, (row, _) in zip(names, done)})
    sys.exit(0 if all(well for _, well in done) else 1)


if __name__ == "__main__":
    main()
