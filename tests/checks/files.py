"""The files of the tree to check: all, the changed ones, or the staged ones."""
import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def git(*arguments: str) -> list[str]:
    out = subprocess.run(["git", "-c", "core.quotePath=false", "-c", f"safe.directory={ROOT}", *arguments], cwd=ROOT, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return out.splitlines()


def existing(names: list[str]) -> list[str]:
    """Regular files only: deleted files cannot be checked, and links are checked at their targets."""
    paths = {name: ROOT / name for name in names}
    return sorted(name for name, path in paths.items() if path.is_file() and not path.is_symlink())


def merge_base() -> str:
    """The commit at which the current branch left the main branch; HEAD in a clone without a main branch."""
    for branch in ("origin/main", "main", "origin/HEAD"):
        found = subprocess.run(["git", "merge-base", "HEAD", branch], cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    return "HEAD"


@functools.cache
def all_files() -> list[str]:
    if not (ROOT / ".git").exists():  # an unpacked archive: all files except build folders
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        return existing([str(path) for path in paths if not path.parts[0].startswith("build") and path.parts[0] != "dist"])
    return existing(git("ls-files", "--cached", "--others", "--exclude-standard"))


def changed_files() -> list[str]:
    return existing(git("diff", "--name-only", merge_base()) + git("ls-files", "--others", "--exclude-standard"))


def staged_files() -> list[str]:
    return existing(git("diff", "--cached", "--name-only"))


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")
