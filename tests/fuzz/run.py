"""./dev fuzz [SECONDS] [NAME...] [--write]: each target for that long, and what it reached. Seeds are copied, so the tree stays as it is."""
import argparse
import pathlib
import re
import subprocess
import sys

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


def run(program, seconds):
    """The row of one target, and whether nothing was found."""
    build, name = program.parents[1], program.name.removeprefix("fuzz_")
    work = build / "fuzz" / name
    done = subprocess.run([program, f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1", f"-artifact_prefix={work}/", corpus(build, name)],
                          capture_output=True, text=True, errors="replace", check=False)
    edges, of, kept, tried = numbers(done.stderr)
    found = re.search(r"Test unit written to (\S+)", done.stderr)
    finding = "none" if done.returncode == 0 else f"`{pathlib.Path(found[1]).name}`" if found else f"ended with {done.returncode}"
    print(f"{name:24} {tried:>12,} inputs  {edges:>7,} of {of:,} edges  {kept:>7,} kept  {finding}", flush=True)
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    return f"| {name} | {seconds} | {tried:,} | {edges:,} of {of:,} | {kept:,} | {finding} |", done.returncode == 0


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
    parser.add_argument("--write", action="store_true", help="put the rows into docs/fuzzing.md")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build-fuzz" / "bin", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seconds = next((int(word) for word in arguments.words if word.isdigit()), 60)
    wanted = {word for word in arguments.words if not word.isdigit()}
    programs = {path.name.removeprefix("fuzz_"): path for path in sorted(arguments.bin.glob("fuzz_*")) if not path.suffix}
    if unknown := wanted - set(programs):
        sys.exit(f"dev: there is no fuzz target {', '.join(sorted(unknown))}: {', '.join(programs)}")
    rows, fine = {}, True
    for name, program in programs.items():
        if not wanted or name in wanted:
            rows[name], well = run(program.resolve(), seconds)
            fine = fine and well
    if arguments.write:
        write(rows)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
