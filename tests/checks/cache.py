"""A cache of passed checks. A key is the hash of everything that the result depends on. Only passes are stored."""
import functools
import hashlib
import pathlib
import subprocess
import time

from files import ROOT

KEEP_SECONDS = 30 * 24 * 3600


@functools.cache
def file_hash(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def tool_version(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def installed_headers() -> str:
    """Versions of the packages whose headers C++ files include: a new version invalidates their results."""
    return tool_version("dpkg-query", "-W", "*-dev", "clang*-19")


def key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Cache:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        path = self.folder / name
        if not path.exists():
            return False
        path.touch()
        return True

    def add(self, names: list[str]) -> None:
        for name in names:
            (self.folder / name).touch()

    def prune(self) -> None:
        for path in self.folder.iterdir():
            if time.time() - path.stat().st_mtime > KEEP_SECONDS:
                path.unlink(missing_ok=True)


def open_cache() -> Cache:
    return Cache(ROOT / "build-lint" / "check-cache")
