"""./dev check: formatting, lint, types and rules of the repository, for what changed or for the whole tree."""
import argparse
import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import cache  # noqa: E402
import cpp  # noqa: E402
import files  # noqa: E402
import glossary  # noqa: E402
import includes  # noqa: E402
import layers  # noqa: E402
import notices  # noqa: E402
import messages  # noqa: E402
import programs  # noqa: E402
import prose  # noqa: E402
import repository  # noqa: E402
import scripts  # noqa: E402
import spelling  # noqa: E402
import system_calls  # noqa: E402
from files import ROOT  # noqa: E402
from jobs import Job, Outcome, Row, run_jobs  # noqa: E402


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev check", description="Check formatting, lint, types and rules of the repository. Without FILE or --all: "
        "what changed since the merge base with the main branch, uncommitted and untracked files among it.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="check the whole tree")
    which.add_argument("--staged", action="store_true", help="check the files in git's index, as they are in the work tree")
    which.add_argument("files", nargs="*", default=[], metavar="FILE", help="check these files")
    parser.add_argument("--deep", action="store_true", help="with --all: run clang's static analyzer on every source, too (takes long)")
    parser.add_argument("--fix", action="store_true", help="rewrite what clang-format, Prettier, ESLint and markdownlint can fix, and the list of messages")
    parser.add_argument("--no-cache", action="store_true", help="check again what passed before")
    options = parser.parse_args(arguments)
    if options.deep and not options.all:
        parser.error("--deep needs --all: changed sources are always analyzed")
    return options


def named_files(names: list[str]) -> list[str]:
    paths = [pathlib.Path(name).resolve() for name in names]
    for path in paths:
        if not path.is_relative_to(ROOT) or not path.is_file():
            sys.exit(f"./dev check: {path} is not a file of this tree")
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def prepare(words: list[str], what: str, cwd: pathlib.Path = ROOT) -> None:
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}./dev check: cannot {what}")


def prepare_build() -> None:
    """compile_commands.json of clang."""
    cache_file = cpp.BUILD / "CMakeCache.txt"
    by_itself = cache_file.exists() and "FLAMEWIRE_UNITY_BUILD:STRING=OFF" in cache_file.read_text()
    if not by_itself or not (cpp.BUILD / "build.ninja").exists():
        prepare(["cmake", "--preset", "debug", "--no-warn-unused-cli", "-B", str(cpp.BUILD), "-DCMAKE_C_COMPILER=clang-19",
                 "-DCMAKE_CXX_COMPILER=clang++-19", "-DFLAMEWIRE_UNITY_BUILD=OFF"], "configure build-lint")
    prepare(["ninja", "-C", str(cpp.BUILD), "build.ninja"], "configure build-lint")


def prepare_node() -> None:
    """The Node.js tools, in a copy below the build folder."""
    sources = [ROOT / "tests" / "checks" / name for name in ("package.json", "package-lock.json", ".npmrc", "eslint.config.mjs")]
    stamp, lock = scripts.NODE / "installed", cache.file_hash(ROOT / "tests/checks/package-lock.json")
    scripts.NODE.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copy(source, scripts.NODE)
    if not stamp.exists() or stamp.read_text() != lock:
        prepare(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], "install the Node.js tools", scripts.NODE)
        stamp.write_text(lock)


def cpp_jobs(names: list[str], tree: list[str], options: argparse.Namespace, done: cache.Cache) -> list[Job]:
    compiled = cpp.commands()
    sources = [name for name in names if name in compiled and name.endswith(".cc")]
    ours = [name for name in sources if name.startswith("src/")]
    if options.deep:
        return cpp.analyzer_jobs(ours, done) + cpp.alone_jobs([name for name in sources if name not in ours], done)
    if options.all:
        return cpp.tidy_jobs(ours, done) + cpp.alone_jobs([name for name in sources if name.startswith("tests/unit/")], done)
    headers = [name for name in names if name.endswith(".h")]
    carriers = [name for name in includes.carriers(headers, [name for name in tree if name in compiled and name.endswith(".cc")])
                if name not in sources]
    return (cpp.analyzer_jobs(ours, done) + cpp.tidy_jobs([name for name in carriers if name.startswith("src/")], done)
            + cpp.alone_jobs(carriers + [name for name in sources if name not in ours], done))


def rule_jobs(names: list[str], tree: list[str]) -> list[Job]:
    def outcome(found: list[str]) -> Outcome:
        return Outcome(not found, "\n".join(found))

    built = [str(path.relative_to(ROOT)) for path in programs.built()]
    return [Job("rules of the repository", names, lambda: outcome(repository.check(names, tree))),
            Job("system calls of the sampler", [name for name in names if name.startswith("src/")], lambda: outcome(system_calls.check(names))),
            Job("includes between folders", [name for name in names if name.startswith("src/")], lambda: outcome(layers.check(names))),
            Job("list of messages", [name for name in names if messages.concerns(name)], lambda: outcome(messages.check(names, tree))),
            Job("types in the glossary", [glossary.PAGE], lambda: outcome(glossary.check(tree))),
            Job("notices of the agent", [notices.PAGE], lambda: outcome(notices.check(tree))),
            Job("plain words", prose.read(names), lambda: outcome(prose.check(names))),
            Job("spelling", prose.read(names), lambda: spelling.check(names)),
            Job("built programs", built, lambda: outcome([finding for path in programs.built() for finding in programs.check(path)])),
            Job("links in Markdown", [name for name in names if scripts.of_markdown(name)],
                lambda: outcome(scripts.broken_links(tree) + scripts.unlisted_pages(tree, files.text_of("docs/README.md"))))]


def summary(rows: dict[str, Row], names: list[str], seconds: float) -> None:
    print(f"{'check':26} {'run on':>7} {'failed':>7} {'seconds':>8}")
    for check, row in sorted(rows.items()):
        print(f"{check:26} {row.files:7} {row.failed:7} {row.seconds:8.1f}")
    print(f"{len(names)} files considered in {seconds:.0f} s; results of equal inputs come from the cache.")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    started = time.monotonic()
    tree = files.all_files()
    if options.all:
        names = tree
    elif options.files:
        names = named_files(options.files)
    else:
        names = files.staged_files() if options.staged else files.changed_files()
    if not names:
        print("Nothing changed: there is nothing to check.")
        return 0
    if options.no_cache:
        shutil.rmtree(ROOT / "build-lint" / "check-cache", ignore_errors=True)
    done = cache.open_cache()
    of_cpp = [name for name in names if name.endswith((".cc", ".h"))]
    if any(scripts.of_prettier(name) or scripts.of_markdown(name) or messages.concerns(name) for name in names):
        prepare_node()
    of_types = any(scripts.of_types(name) for name in names)
    if of_types or (of_cpp and not options.fix):
        prepare_build()
    if of_types and not options.fix:
        prepare(["ninja", "-C", str(cpp.BUILD), "web/web_assets.cc"], "bundle the page")
    jobs = cpp.format_jobs(of_cpp, options.fix, done) + scripts.jobs(names, tree, options.fix, done)
    if not options.fix:
        jobs += rule_jobs(names, tree) + (cpp_jobs(names, tree, options, done) if of_cpp else [])
    rows: dict[str, Row] = {}
    passed = run_jobs(jobs, done, rows)
    if options.fix and any(messages.concerns(name) for name in names):
        messages.write(tree)
    done.prune()
    summary(rows, names, time.monotonic() - started)
    if options.all and not options.deep and not options.fix:
        print("Not run: clang's static analyzer (clang-analyzer-*). ./dev check runs it on changed sources, "
              "./dev check --all --deep on all.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
