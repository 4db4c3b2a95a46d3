#!/usr/bin/python3
"""CPU time of this project's symbolizer and of llvm-symbolizer, for the same addresses of the same file, in the same run.

Prints one JSON object per line: {"figure", "value", "bar", "unit", "peer"}. CPU time is perf's task-clock: getrusage under-reports short
runs on virtual machines.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle" / "symbol"))
from compare_symbolizers import text_section  # noqa: E402


def cpu_ms(perf, command, stdin):
    """CPU milliseconds of one run."""
    with tempfile.NamedTemporaryFile() as report, open(stdin, "rb") as source:
        subprocess.run([perf, "stat", "-x", ";", "-e", "task-clock", "-o", report.name, "--"] + command,
                       stdin=source, stdout=subprocess.DEVNULL, check=True)
        for line in pathlib.Path(report.name).read_text().splitlines():
            fields = line.split(";")
            if len(fields) > 2 and "task-clock" in fields[2]:
                return float(fields[0])
    sys.exit("perf stat gave no task-clock")


def median_ms(runs, *arguments):
    return statistics.median(cpu_ms(*arguments) for _ in range(runs))


def write_addresses(folder, start, size, count):
    # Samples are not in the order of addresses. The seed makes runs comparable.
    addresses = [start + size * i // count for i in range(count)]
    random.Random(1).shuffle(addresses)
    path = os.path.join(folder, f"{count}.txt")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"0x{address:x}\n" for address in addresses)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("elf")
    parser.add_argument("directory", nargs="?", help="for scratch files; default: a temporary one")
    parser.add_argument("--bench", help="path of bench_symbol; default: beside the ELF file")
    parser.add_argument("--llvm", default="llvm-symbolizer-16")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--addresses", type=int, default=100000)
    options = parser.parse_args()

    bench = options.bench or os.path.join(os.path.dirname(options.elf), "bench_symbol")

    def figure(name, value, bar=None, unit="ms CPU", peer=""):
        print(json.dumps({"figure": "symbols: " + name, "value": round(value, 3), "bar": bar, "unit": unit, "peer": peer}), flush=True)

    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        start, size = text_section(options.elf)
        many = write_addresses(folder, start, size, options.addresses)
        few = write_addresses(folder, start, size, options.addresses // 100)
        llvm = [options.llvm, "-e", options.elf, "--inlines", "--output-style=GNU", "-f"]

        def ours(passes, addresses):
            return median_ms(options.runs, options.perf, [bench, options.elf, str(passes)], addresses)

        llvm_many = median_ms(min(options.runs, 3), options.perf, llvm, many)
        llvm_few = median_ms(options.runs, options.perf, llvm, few)
        ours_few = ours(1, few)
        ours_first = ours(1, many)
        warm_passes = 10
        ours_warm = (ours(1 + warm_passes, many) - ours_first) / warm_passes

        many_peer, few_peer = f"llvm-symbolizer {llvm_many:.0f} ms", f"llvm-symbolizer {llvm_few:.0f} ms"
        large, small = f"{options.addresses:,} addresses", f"{options.addresses // 100:,} addresses"
        figure(f"{large}, warm", ours_warm, peer=many_peer)
        figure(f"{large}, index built on the way", ours_first, peer=many_peer)
        figure(f"{small}, cold", ours_few, peer=few_peer)
        figure(f"{large}, warm / llvm-symbolizer", ours_warm / llvm_many, 0.2, unit="")
        figure(f"{small}, cold / llvm-symbolizer", ours_few / llvm_few, 0.8, unit="")


if __name__ == "__main__":
    main()
