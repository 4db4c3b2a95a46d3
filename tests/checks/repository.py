"""Rules about the text of files: no paths of this machine, no registries, every source is built."""
import json
import pathlib
import re

from files import ROOT, text_of

REGISTRY = re.compile(r"\b(registry\.(npmjs\.org|yarnpkg\.com)|(deb|security|ftp)\.debian\.org|pypi\.org|"
                      r"(proxy|sum)\.golang\.org|crates\.io)\b")
# These rules and their tests contain what they search for.
EXEMPT = ("tests/checks/repository.py", "tests/checks/test_")
BINARY = (".png", ".gz", ".zst", ".xz", ".bin", ".capture")


def machine_paths() -> list[str]:
    """Folders of this machine: the clone and the home folder."""
    home = str(pathlib.Path.home())
    return [str(ROOT), *([home] if home not in ("/", "/root") else [])]


def text_findings(name: str, text: str, paths: list[str]) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for path in paths:
            if re.search(re.escape(path) + r"(?![\w-])", line):
                found.append(f"{name}:{number}: {path} is a folder of this machine; use a relative path")
        if match := REGISTRY.search(line):
            found.append(f"{name}:{number}: {match[0]} is a registry; leave its choice to the tools' configuration")
    return found


def lock_findings(name: str, text: str) -> list[str]:
    packages = json.loads(text).get("packages", {})
    resolved = sorted(package for package, entry in packages.items() if "resolved" in entry and not entry.get("link"))
    return [f"{name}: {package} has a `resolved` address; run npm with omit-lockfile-registry-resolved" for package in resolved]


def unlisted(sources: list[str], cmake_text: dict[str, str]) -> list[str]:
    """Sources that no CMake file in their folder or in one above it names. `cmake_text`: by folder."""
    found = []
    for source in sources:
        path = pathlib.PurePath(source)
        above = [str(folder) for folder in path.parents]
        pattern = re.compile(r"(?<![\w.-])" + re.escape(path.name) + r"(?![\w.-])")
        fuzzer = re.compile(r"\b(flamewire_fuzz\(|foreach\(name [\w ]*)" + path.stem.removesuffix("_fuzz") + r"\b")
        pattern_stem = re.compile(r"(?<![\w.-])" + re.escape(path.stem) + r"(?![\w.-])")  # foreach(name IN ITEMS ...)
        texts = [cmake_text[folder] for folder in above if folder in cmake_text]
        if not any(pattern.search(text) or fuzzer.search(text) or ("foreach" in text and pattern_stem.search(text)) for text in texts):
            found.append(f"{source} is in no CMake file, so nothing builds it")
    return found


def not_run(tests: list[str], cmake_text: dict[str, str]) -> list[str]:
    """Test files for which the CMake file of their folder names neither the file nor the folder."""
    found = []
    for test in tests:
        path = pathlib.PurePath(test)
        text = cmake_text.get(str(path.parent), "")
        short = path.name.removeprefix("test_").removesuffix(".py").removesuffix(".test.mjs")
        # In a loop: test_${name}.py, or test_of_${name}.py.
        names = {path.name, str(path.parent), short, *(short.removeprefix(begin) for begin in re.findall(r"test_(\w*)\$\{", text))}
        if not any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) for name in names):
            found.append(f"{test} is not in the CMake file of its folder, so nothing runs it")
    return found


def types_defined_twice(headers: dict[str, str]) -> list[str]:
    """Types that two headers define with the same name and namespace: the linker would mix up their functions."""
    first: dict[tuple[str, str], str] = {}
    found = []
    for name, text in sorted(headers.items()):
        namespace = ""
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.match(r"namespace ([\w:]+) \{", line):
                namespace = match[1]
            elif match := re.match(r"(?:struct|class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^:].*)? \{", line):
                other = first.setdefault((namespace, match[1]), name)
                if other != name:
                    found.append(f"{name}:{number}: {other} defines another {namespace}::{match[1]}; two types of one name are undefined behavior")
    return found


DEFINES_FUNCTION = re.compile(r"^(?![\s/#}])(?!using |namespace |return )[^=;(]*?(?<![\w:])((?:\w+::)+)(?:~?\w+|operator\W+)\(", re.MULTILINE)


def split_classes(sources: dict[str, str], headers: dict[str, str]) -> list[str]:
    """Classes whose functions are defined in several files of their folder: a file is a class. `headers`: by name, of the same folders."""
    types = {name: set(re.findall(r"\b(?:class|struct) (?:\[\[\w+\]\] )?(\w+)", text)) for name, text in headers.items()}
    places: dict[tuple[str, str], set[str]] = {}
    for name, text in sources.items():
        folder = str(pathlib.PurePath(name).parent)
        declared = set().union(*(found for header, found in types.items() if str(pathlib.PurePath(header).parent) == folder))
        for qualifier in DEFINES_FUNCTION.findall(text):
            if (owner := qualifier.split("::")[-2]) in declared:
                places.setdefault((folder, owner), set()).add(name)
    return [f"{folder}: {owner} has functions in {', '.join(sorted(files))}; split the class, or join the files"
            for (folder, owner), files in sorted(places.items()) if len(files) > 1]


MOST_LINES_OF_FILE, MOST_LINES_OF_FUNCTION = 400, 60
# Files, and functions as "file: name", that are longer, each with the reason.
LONGER: dict[str, str] = {}
NOT_A_FUNCTION = re.compile(r"(?:if|for|while|switch|do|else|case|default|try|catch|namespace|class|struct|enum|union|return|template|extern)\b|[#{}:]|//")
NAME_OF_FUNCTION = re.compile(r"((?:\w+::)*(?:~?\w+|operator\W+))\(")


def functions(text: str) -> list[tuple[str, int, int]]:
    """(name, first line, number of lines) of functions that clang-format has formatted: both ends have the same indentation."""
    lines, found = text.splitlines(), []
    for end, line in enumerate(lines):
        if not re.fullmatch(r" *\}", line):
            continue
        indent = len(line) - 1
        begin = next((at for at in range(end - 1, -1, -1) if lines[at].strip() and not lines[at].startswith("#")
                      and len(lines[at]) - len(lines[at].lstrip()) <= indent), None)
        if begin is None or len(lines[begin]) - len(lines[begin].lstrip()) != indent:
            continue
        if (name := NAME_OF_FUNCTION.search(lines[begin])) and not NOT_A_FUNCTION.match(lines[begin].lstrip()):
            found.append((name[1], begin + 1, end - begin + 1))
    return found


def too_long(texts: dict[str, str], longer: dict[str, str]) -> list[str]:
    """Sources and headers with too many lines, their functions with too many, and exceptions that are not needed."""
    found, used = [], set()

    def report(key: str, at: str, size: int, most: int, remedy: str) -> None:
        if size <= most:
            return
        used.add(key)
        if key not in longer:
            found.append(f"{at} has {size} lines, more than {most}: {remedy}")

    for name, text in sorted(texts.items()):
        report(name, name, len(text.splitlines()), MOST_LINES_OF_FILE, "move a part that is a thing of its own to another file")
        for function, line, size in functions(text):
            report(f"{name}: {function}", f"{name}:{line}: {function}()", size, MOST_LINES_OF_FUNCTION, "split the function")
    return found + [f"{key} is not too long anymore; remove it from LONGER in tests/checks/repository.py" for key in sorted(longer.keys() - used)]


# RapidJSON's default parser recurses for each level. The first of these files limits the depth; the second one parses
# without a tree.
JSON_PARSERS = ("src/wire/control.cc", "src/profile/formats/json_shape.cc")
PARSES_JSON = re.compile(r"\brapidjson::(Reader|GenericReader)\b|\.(template )?Parse(Insitu|Stream)?[<(]")


def json_findings(name: str, text: str) -> list[str]:
    if name in JSON_PARSERS:
        return []
    return [f"{name}:{number}: parse JSON by wire::parse_object, whose depth and size are bounded"
            for number, line in enumerate(text.splitlines(), 1) if PARSES_JSON.search(line)]


# The text can come from a peer or a process. Only agent::log_line() makes it safe for a terminal.
PRINTS_TO_STDERR = re.compile(r"\bf?printf\(stderr|\bfput[sc]\(.*stderr\)|\bfmt::print\(stderr|\bstd::(cerr|clog)\b")


def stderr_findings(name: str, text: str) -> list[str]:
    return [f"{name}:{number}: write to stderr by agent::log(), which escapes what others sent"
            for number, line in enumerate(text.splitlines(), 1) if PRINTS_TO_STDERR.search(line)]


def check(names: list[str], tree: list[str]) -> list[str]:
    found, paths = [], machine_paths()
    for name in names:
        if name.startswith(EXEMPT) or name.endswith(BINARY) or "/seeds/" in name:
            continue
        found += text_findings(name, text_of(name), paths)
        if name.startswith("src/") and name.endswith((".cc", ".h")):
            found += json_findings(name, text_of(name))
        if name.startswith("src/agent/"):
            found += stderr_findings(name, text_of(name))
        if name.endswith("package-lock.json"):
            found += lock_findings(name, text_of(name))
    cmake_text: dict[str, str] = {}
    for name in tree:
        if name.endswith(("CMakeLists.txt", ".cmake")):
            folder = str(pathlib.PurePath(name).parent)
            cmake_text[folder] = cmake_text.get(folder, "") + text_of(name)
    built = [name for name in names if name.startswith(("src/", "tests/unit/", "tests/fuzz/")) and name.endswith(".cc")]
    tests = [name for name in names if name.startswith("tests/") and re.search(r"/test_\w+\.py$|\.test\.mjs$", name)]
    headers = {name: text_of(name) for name in tree if name.startswith("src/") and name.endswith(".h")}
    sources = {name: text_of(name) for name in tree if name.startswith("src/") and name.endswith(".cc")}
    return found + unlisted(built, cmake_text) + not_run(tests, cmake_text) + types_defined_twice(headers) + split_classes(sources, headers) \
        + too_long({**headers, **sources}, LONGER)
