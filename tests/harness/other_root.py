"""Programs that run below another root, or in their own namespace."""
import contextlib
import pathlib
import shutil
import subprocess

from flamewire import wait_until


def libraries(program):
    """The paths of the libraries of `program` and of its dynamic loader."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(word) for line in listed.splitlines() for word in line.split() if word.startswith("/")]


def copy_with_libraries(program, root, inside):
    """Copies `program` to the path `inside` below `root`, and its libraries to their original paths below `root`."""
    for source, path in [(program, inside), *((one, one) for one in libraries(program))]:
        target = root / str(path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def loaded_child(launcher, name, program):
    """The pid of the launcher's child once it executes `program` under this name and has loaded all libraries. It opens no file afterwards."""
    needed = [{name}, *({path.name, path.resolve().name} for path in libraries(program))]

    def loaded():
        assert launcher.alive(), launcher.err
        children = subprocess.run(["pgrep", "-P", str(launcher.pid)], capture_output=True, text=True, check=False).stdout.split()
        for child in children:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                maps = pathlib.Path(f"/proc/{child}/maps").read_text(encoding="utf-8")
                mapped = {line.rsplit("/", 1)[-1] for line in maps.splitlines()}
                if all(mapped & names for names in needed):
                    return int(child)
        return None

    return wait_until(loaded, 10, "the program")
