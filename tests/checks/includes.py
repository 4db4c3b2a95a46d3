"""The #include lines of C++ files, and the files of the tree on which a source depends."""
import functools
import pathlib
import re

from files import ROOT

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


@functools.cache
def quoted_includes(path: pathlib.Path) -> list[str]:
    return INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


@functools.cache
def included_files(path: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Searches as the compiler does: beside the file first, then below src/, tests/ and web/. Omits generated headers."""
    found = []
    for name in quoted_includes(path):
        for folder in (path.parent, ROOT / "src", ROOT / "tests", ROOT / "web"):
            candidate = (folder / name).resolve()
            if candidate.is_file():
                found.append(candidate)
                break
    return tuple(found)


def closure(path: pathlib.Path) -> list[pathlib.Path]:
    """The file and everything that it includes, directly or indirectly."""
    seen, waiting = set(), [path.resolve()]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(included_files(current))
    return sorted(seen)


def carriers(headers: list[str], sources: list[str]) -> list[str]:
    """For each header one source that includes it: the source of the same name, or else the first one."""
    chosen = []
    for header in headers:
        own = str(pathlib.PurePath(header).with_suffix(".cc"))
        path = (ROOT / header).resolve()
        users = [own] if own in sources else [name for name in sources if path in closure(ROOT / name)][:1]
        chosen.extend(users)
    return sorted(set(chosen))
