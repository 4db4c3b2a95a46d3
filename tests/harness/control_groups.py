"""Version 2 control groups for tests."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import time


def remove(folder):
    """Kills the processes of the group, because a group can be removed only when it is empty."""
    for _ in range(200):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), 9)
        with contextlib.suppress(OSError):
            folder.rmdir()
            break
        time.sleep(0.05)


@contextlib.contextmanager
def cgroup(name):
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((pathlib.Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    own = None
    if mount is None:
        own = mount = pathlib.Path(tempfile.mkdtemp(prefix="flamewire-cgroup-"))
        subprocess.run(["mount", "-t", "cgroup2", "none", mount], check=True)
    folder = mount / name
    folder.mkdir()
    try:
        yield folder
    finally:
        if folder.exists():
            remove(folder)
        if own is not None:
            subprocess.run(["umount", own], check=False)
            own.rmdir()


def enter(folder, pid):
    (folder / "cgroup.procs").write_text(str(pid))
