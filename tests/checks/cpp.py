"""C++: clang-format, compilation of each source by clang, and clang-tidy.

clang-tidy spends most of its time in headers. The quick checks therefore read several sources as one translation unit,
which fails only if names of two sources clash. Such sources are put into different units.
"""
import collections
import dataclasses
import functools
import json
import pathlib
import shlex

import cache
from files import ROOT
from includes import closure
from jobs import Job, Outcome, command
from unity import make_units

BUILD = ROOT / "build-lint"
CLANG_TIDY = "clang-tidy-19"
# Longer units parse headers less often, but then one core works while the other one is idle.
MOST_LINES = 12000
CATCH = "#include <catch2/catch.hpp>"
# The analyzer follows every path of a function and takes most of the time. Including a source is intended here.
QUICK = "-clang-analyzer-*,-bugprone-suspicious-include"


@dataclasses.dataclass(frozen=True)
class Command:
    directory: str
    compiler: str
    flags: tuple[str, ...]      # without paths and definitions
    includes: tuple[str, ...]
    defines: tuple[str, ...]

    def words(self) -> list[str]:
        return [self.compiler, *self.defines, *self.includes, *self.flags]


def parse(entry: dict) -> Command:
    words = [word for word in shlex.split(entry["command"]) if word not in ("ccache", "-c")]
    flags, includes, defines = [], [], []
    rest = iter(words[1:])
    for word in rest:
        if word == "-o":
            next(rest)
        elif word in ("-isystem", "-I"):
            includes += [word, next(rest)]
        elif word.startswith("-I"):
            includes.append(word)
        elif word.startswith("-D"):
            defines.append(word)
        elif word != entry["file"]:
            flags.append(word)
    return Command(entry["directory"], words[0], tuple(flags), tuple(includes), tuple(defines))


@functools.cache
def commands() -> dict[str, Command]:
    """The compiler command of each source. Of a library with a variant for the agent, the other variant's command."""
    found: dict[str, Command] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(BUILD):
            continue
        name = str(path.relative_to(ROOT))
        if name not in found or "_agent.dir/" not in entry["command"]:
            found[name] = parse(entry)
    return found


def content_key(check: str, name: str, *more: str) -> str:
    inputs = [f"{path.relative_to(ROOT)} {cache.file_hash(path)}" for path in closure(ROOT / name)]
    return cache.key(check, *more, " ".join(commands()[name].words()), cache.installed_headers(), *inputs)


def format_jobs(names: list[str], fix: bool, done: cache.Cache) -> list[Job]:
    version = cache.tool_version("clang-format-19", "--version") + cache.file_hash(ROOT / ".clang-format")
    keys = {name: cache.key("format", version, cache.file_hash(ROOT / name)) for name in names}
    names = [name for name in names if fix or not done.has(keys[name])]
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    return [Job("clang-format", part, functools.partial(command, ["clang-format-19", *mode, *part]),
                [] if fix else [keys[name] for name in part])
            for part in (names[i:i + 100] for i in range(0, len(names), 100))]


@functools.cache
def precompiled_catch(compiler: str, flags: tuple[str, ...]) -> pathlib.Path | None:
    """Catch2's header, precompiled: it takes most of the time of a unit test's check."""
    folder = BUILD / "precompiled" / cache.key("catch", compiler, " ".join(flags), cache.installed_headers())
    folder.mkdir(parents=True, exist_ok=True)
    header, compiled = folder / "catch.h", folder / "catch.pch"
    if not compiled.exists():
        header.write_text(f"{CATCH}\n")
        unfinished = folder / "unfinished.pch"
        if not command([compiler, *flags, "-x", "c++-header", str(header), "-o", str(unfinished)], folder).ok:
            return None
        unfinished.rename(compiled)
    return compiled


def with_precompiled(name: str) -> list[str]:
    """Only for a source that includes Catch2 itself, so that a missing include is still found."""
    text = (ROOT / name).read_text()
    if CATCH not in text or "CATCH_CONFIG" in text:
        return []
    compiled = precompiled_catch(commands()[name].compiler, commands()[name].flags)
    return ["-include-pch", str(compiled)] if compiled else []


def alone_jobs(names: list[str], done: cache.Cache) -> list[Job]:
    """Compiles each source separately with clang, for its warnings in addition to those of g++ in the build."""
    jobs = []
    for name in names:
        key = content_key("alone", name)
        if done.has(key):
            continue
        # stable_sort of libstdc++ 12 uses deprecated functions, and clang reports the caller. g++ reports uses in our
        # code.
        words = [*commands()[name].words(), *with_precompiled(name), "-Wno-deprecated-declarations", "-fsyntax-only", str(ROOT / name)]
        run = functools.partial(command, words, pathlib.Path(commands()[name].directory))
        jobs.append(Job("compiles alone", [name], run, [key], len((ROOT / name).read_bytes()) // 30))
    return jobs


def tidy_units(names: list[str]) -> list[list[str]]:
    by_flags = collections.defaultdict(list)
    for name in names:
        by_flags[commands()[name].flags].append(name)
    return [unit for group in by_flags.values() for unit in make_units(group, MOST_LINES, strict=False)]


def tidy_words(folder: pathlib.Path, checks: str) -> list[str]:
    return [CLANG_TIDY, "-p", str(folder), "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *([f"--checks={checks}"] if checks else [])]


def tidy_unit(names: list[str]) -> Outcome:
    """Checks one unit. If it does not compile, checks its halves, down to single sources."""
    if len(names) == 1:
        return command([*tidy_words(BUILD, QUICK), str(ROOT / names[0])])
    folder = BUILD / "units" / cache.key(*names)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    unit = folder / "unit.cc"
    unit.write_text("".join(f'#include "{ROOT / name}"\n' for name in names))
    parts = [commands()[name] for name in names]
    paths = dict.fromkeys(tuple(pair) for part in parts for pair in include_pairs(part.includes))
    defines = dict.fromkeys(define for part in parts for define in part.defines)
    words = [parts[0].compiler, *defines, *(word for pair in paths for word in pair), *parts[0].flags, "-w", "-c", str(unit)]
    entry = {"directory": parts[0].directory, "file": str(unit), "command": shlex.join(words)}
    (folder / "compile_commands.json").write_text(json.dumps([entry]))
    outcome = command([*tidy_words(folder, QUICK), str(unit)])
    if outcome.ok or "clang-diagnostic-" not in outcome.output:
        return outcome
    middle = len(names) // 2
    halves = [tidy_unit(names[:middle]), tidy_unit(names[middle:])]
    return Outcome(all(half.ok for half in halves), "".join(half.output for half in halves if not half.ok))


def include_pairs(includes: tuple[str, ...]) -> list[list[str]]:
    rest = iter(includes)
    return [[word, next(rest)] if word in ("-isystem", "-I") else [word] for word in rest]


def tidy_key(check: str, name: str) -> str:
    return content_key(check, name, cache.tool_version(CLANG_TIDY, "--version"), cache.file_hash(ROOT / ".clang-tidy"), QUICK)


def tidy_jobs(names: list[str], done: cache.Cache) -> list[Job]:
    keys = {name: tidy_key("tidy", name) for name in names}
    wanted = [name for name in names if not done.has(keys[name]) and not done.has(tidy_key("analyzer", name))]
    return [Job("clang-tidy", unit, functools.partial(tidy_unit, unit), [keys[name] for name in unit], 10**6 + len(unit))
            for unit in tidy_units(wanted)]


def analyzer_jobs(names: list[str], done: cache.Cache) -> list[Job]:
    """All checks of .clang-tidy, for each source separately."""
    jobs = []
    for name in names:
        key = tidy_key("analyzer", name)
        if not done.has(key):
            jobs.append(Job("clang-tidy and analyzer", [name],
                            functools.partial(command, [*tidy_words(BUILD, ""), str(ROOT / name)]), [key], 10**6))
    return jobs
