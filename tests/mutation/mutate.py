"""`./dev mutate [N] [--seed S] [--area AREA]`: how many small defects do the tests of an area detect?

Changes N random lines of src/ one at a time, rebuilds, runs the tests of that area, and lists the surviving mutants. All of this happens
in a copy of the source tree below build-mutate/, so the tree itself never changes, even on Ctrl-C."""

import argparse
import collections
import difflib
import filecmp
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import areas
import mutants

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / "build-mutate"
TREE, BUILD = HOME / "tree", HOME / "build"
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.json")
NOTICED = ("failed", "crashed", "hung")


def run(command, timeout=None, **options):
    """(exit status, or "hung"; output). The whole process group is killed at the end."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, errors="replace", start_new_session=True, **options) as process:
        try:
            output = process.communicate(timeout=timeout)[0]
            return process.returncode, output
        except BaseException as error:  # including Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)
            rest = process.communicate()[0]
            if isinstance(error, subprocess.TimeoutExpired):
                return "hung", rest
            raise


def files_of(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
    return sorted(path for path in listed.stdout.split("\0") if path and (root / path).is_file())


def copy_tree(paths, source, target):
    """Makes `target` equal to these files of `source`. Equal files keep their times, so that little is rebuilt."""
    for path in paths:
        copy = target / path
        if not copy.exists() or not filecmp.cmp(source / path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / path, copy)
    wanted = set(paths)
    for copy in target.rglob("*"):
        if copy.is_file() and str(copy.relative_to(target)) not in wanted:
            copy.unlink()


def candidates(root, area=None):
    """Lists of the mutants of each line, in a fixed order."""
    lines = []
    for path in sorted((root / "src").rglob("*")):
        name = str(path.relative_to(root))
        owner = areas.area_of(name)
        if path.suffix in (".cc", ".h") and owner and area in (None, owner.name):
            lines += mutants.mutants_of(name, path.read_text()).values()
    return lines


def drawn(lines, seed):
    """An endless sequence of random mutants, one per line of source, in the same order for the same sources and seed."""
    # Random's own shuffle and choice may differ between versions of Python; random() does not.
    order = random.Random(seed)
    keyed = sorted(((order.random(), at) for at in range(len(lines))))
    for _, at in keyed:
        yield lines[at][int(order.random() * len(lines[at]))]


def load_equivalent(path=EQUIVALENT):
    entries = json.loads(path.read_text())
    for entry in entries:
        mutant = mutants.Mutant(entry["file"], 0, entry["operator"], entry["before"], entry["after"])
        if mutant.key != entry["key"] or not entry["reason"].strip():
            raise ValueError(f"{path}: {entry['key']} is not the key of its content ({mutant.key}), or has no reason")
    return {entry["key"]: entry["reason"] for entry in entries}


class Workspace:
    def __init__(self):
        self.baseline = {}  # command -> seconds
        self.objects = {}  # source -> object files
        self.sums = {}

    def prepare(self):
        copy_tree(files_of(ROOT), ROOT, TREE)
        launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")] if shutil.which("ccache") else []
        # Optimized as in a release, so the compiler itself detects many equivalent mutants.
        self.must(["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g0 -DNDEBUG",
                   "-DFLAMEWIRE_TESTS=ON", "-DFLAMEWIRE_AGENT=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *launcher])
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            source = pathlib.Path(entry["file"])
            if source.is_relative_to(TREE / "src"):
                self.objects.setdefault(str(source.relative_to(TREE)), []).append(BUILD / re.search(r" -o (\S+)", entry["command"])[1])

    def must(self, command):
        status, output = run(command)
        if status != 0:
            sys.exit(f"mutate: {' '.join(map(str, command))} failed:\n{output[-4000:]}")

    def build(self, area):
        return run(["ninja", "-C", BUILD, *area.targets])

    def first_run(self, area):
        """Builds the unchanged area and measures its tests, which must succeed."""
        if all(command in self.baseline for command in area.commands):
            return
        print(f"Building the tests of {area.name} ...", flush=True)
        self.must(["ninja", "-C", BUILD, *area.targets])
        for command in area.commands:
            began = time.monotonic()
            status, output = self.test(command, 600)
            if status != 0:
                sys.exit(f"mutate: the tests of {area.name} fail without a mutant:\n{output[-4000:]}")
            self.baseline[command] = time.monotonic() - began

    def test(self, command, seconds):
        words = [word.format(bin=BUILD / "bin", tree=TREE) for word in command]
        return run(words, seconds, cwd=TREE)

    def object_sums(self, mutant):
        return [hashlib.sha256(path.read_bytes()).digest() for path in self.objects.get(mutant.path, ()) if path.exists()]

    def outcome(self, mutant):
        """The outcome of a mutant: not compiled, same object code, failed, crashed, hung or survived; and the test that detected it."""
        area, path = areas.area_of(mutant.path), TREE / mutant.path
        original = path.read_text()
        # The area's objects are those of the original: if the last mutant was in another file, build() ran after it was reverted.
        if self.build(area)[0] != 0:
            sys.exit(f"mutate: {area.name} does not build without a mutant")
        before = self.object_sums(mutant)
        if mutant.path.endswith(".cc") and not before:
            return "not tested", ""
        try:
            path.write_text(mutants.apply(original, mutant))
            if self.build(area)[0] != 0:
                return "not compiled", ""
            if mutant.path.endswith(".cc") and self.object_sums(mutant) == before:
                return "same object code", ""
            for command in area.commands:
                status, output = self.test(command, 10 + 5 * self.baseline[command])
                if status != 0:
                    return "hung" if status == "hung" else "crashed" if status < 0 else "failed", first_failure(output)
            return "survived", ""
        finally:
            path.write_text(original)


def first_failure(output):
    """The name of the failed test: pytest lists it, Catch2 prints it between lines."""
    found = re.search(r"^FAILED (\S+)", output, re.M) or re.search(r"^-{4,}\n(.+)\n-{4,}$", output, re.M)
    return found[1].strip() if found else ""


def difference(mutant):
    return "".join(difflib.unified_diff([mutant.before + "\n"], [mutant.after + "\n"], lineterm="\n", n=0)).split("\n", 3)[3].rstrip()


def share(noticed, all_of_them):
    return f"{100 * noticed / all_of_them:.1f} %" if all_of_them else "–"


def table(results):
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        for row in (result["area"], "all"):
            counts[row][result["outcome"]] += 1
    rows = ["| area | mutants | noticed | survived | equivalent | share noticed |", "|---|---|---|---|---|---|"]
    for name in [*sorted(set(counts) - {"all"}), "all"]:
        count = counts[name]
        noticed = sum(count[outcome] for outcome in NOTICED)
        equivalent = count["equivalent"] + count["same object code"]
        rows.append(f"| {name} | {noticed + count['survived']} | {noticed} | {count['survived']} | {equivalent} | {share(noticed, noticed + count['survived'])} |")
    return rows


def report(results, number):
    print("\n" + "\n".join(table(results)))
    survivors = [result for result in results if result["outcome"] == "survived"]
    if survivors:
        print("\nNo test detected these. Add a test, or an entry with a reason to tests/mutation/equivalent.json:")
    for result in survivors:
        mutant = mutants.Mutant(*result["mutant"])
        print(f"\n{mutant.path}:{mutant.line}: {mutant.operator}, key {mutant.key}\n{difference(mutant)}")
    outcomes = collections.Counter(result["outcome"] for result in results)
    print(f"\nNot counted: {outcomes['not compiled']} that did not compile, {outcomes['not tested']} in files that no test of their area links.")
    counted = sum(outcomes[outcome] for outcome in (*NOTICED, "survived"))
    if counted < number:
        print(f"{counted} mutants were tried, not {number}.")
    (HOME / "results.json").write_text(json.dumps(results, indent=1))


def main():
    names = sorted({area.name for area in areas.AREAS})
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("number", nargs="?", type=int, default=40, metavar="N", help="number of mutants that compile and are not known to be equivalent (40)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed selects the same mutants of the same sources (1)")
    parser.add_argument("--area", choices=names, metavar="AREA", help=f"only of this area: {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="print the mutants without building")
    options = parser.parse_args()

    equivalent = load_equivalent()
    supply = drawn(candidates(ROOT, options.area), options.seed)
    if options.list:
        for mutant, _ in zip(supply, range(options.number)):
            print(f"{mutant.path}:{mutant.line}: {mutant.operator}, key {mutant.key}\n{difference(mutant)}")
        return
    # SIGTERM has the same effect as Ctrl-C, even if the shell ignores it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    HOME.mkdir(exist_ok=True)
    workspace, results = Workspace(), []
    workspace.prepare()
    interrupted, counted = False, 0
    try:
        for mutant in supply:
            if counted == options.number:
                break
            area = areas.area_of(mutant.path)
            if mutant.key in equivalent:
                outcome, test = "equivalent", ""
            else:
                workspace.first_run(area)
                outcome, test = workspace.outcome(mutant)
            results.append({"area": area.name, "outcome": outcome, "test": test, "mutant": list(vars(mutant).values())})
            counted += outcome in (*NOTICED, "survived")
            print(f"{counted:3}  {outcome}: {mutant.path}:{mutant.line} {mutant.operator}" + (f"; {test}" if test else ""), flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print("\nInterrupted; so far:")
    report(results, options.number)
    sys.exit(130 if interrupted else any(result["outcome"] == "survived" for result in results))


if __name__ == "__main__":
    main()
