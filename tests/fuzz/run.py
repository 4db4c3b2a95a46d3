"""./dev fuzz [SECONDS] [NAME...] [--clock] [--jobs N] [--write]: runs each target for SECONDS of CPU time and prints its coverage.

Seeds are copied, so the tree does not change."""
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
    """The initial inputs: seeds, and inputs that earlier runs found."""
    folder = build / "fuzz" / name / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for seed in (ROOT / "tests" / "fuzz" / "seeds" / name).glob("*"):
        if seed.is_file() and seed.stat().st_size < LARGEST_SEED:
            (folder / seed.name).write_bytes(seed.read_bytes())
    return folder


def numbers(output):
    """(edges reached, all edges, inputs kept, inputs tried) from the output of libFuzzer."""
    counters = re.search(r"Loaded \d+ modules\s+\((\d+) inline 8-bit counters\)", output)
    state = re.findall(r"^#\d+\s+\S+\s+cov: (\d+).* corp: (\d+)/", output, re.M)
    tried = re.search(r"^stat::number_of_executed_units:\s+(\d+)$", output, re.M)
    edges, kept = map(int, state[-1]) if state else (0, 0)
    return edges, int(counters[1]) if counters else 0, kept, int(tried[1]) if tried else 0


def cpu_seconds(process):
    """The CPU time of the process from schedstat, which also works for a zombie."""
    return int(pathlib.Path(f"/proc/{process.pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9


def fuzz(command, seconds, by_clock):
    """Runs a command for `seconds` of CPU time, or of wall time: (exit code, output, CPU seconds)."""
    started, spent = time.monotonic(), 0.0
    with tempfile.TemporaryFile("w+", errors="replace") as output, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output) as process:
        while process.poll() is None:
            spent = cpu_seconds(process)
            if (time.monotonic() - started if by_clock else spent) >= seconds:
                process.send_signal(signal.SIGUSR1)  # libFuzzer exits after the current input
                process.wait()
            time.sleep(0.2)
        output.seek(0)
        return process.returncode, output.read(), spent


def run(program, seconds, by_clock):
    """The row of one target, and whether it passed."""
    build, name = program.parents[1], program.name.removeprefix("fuzz_")
    work = build / "fuzz" / name
    code, output, spent = fuzz([program, "-rss_limit_mb=2048", "-timeout=60", "-print_final_stats=1", f"-artifact_prefix={work}/", corpus(build, name)], seconds, by_clock)
    edges, of, kept, tried = numbers(output)
    found = re.search(r"Test unit written to (\S+)", output)
    finding = "none" if code == 0 else f"`{pathlib.Path(found[1]).name}`" if found else f"exit code {code}"
    print(f"{name:24} {tried:>12,} inputs  {edges:>7,} of {of:,} edges  {kept:>7,} kept  {finding}", flush=True)
    if code:
        print(output[-3000:], file=sys.stderr)
    return f"| {name} | {spent:.0f} | {tried:,} | {edges:,} of {of:,} | {kept:,} | {finding} |", code == 0


def write(rows):
    """Writes the rows into the table, and keeps those of other targets."""
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
    parser.add_argument("--clock", action="store_true", help="SECONDS is wall time, not CPU time")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="run N targets in parallel")
    parser.add_argument("--write", action="store_true", help="write the rows to docs/fuzzing.md")
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
