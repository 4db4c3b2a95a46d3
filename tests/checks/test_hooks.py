"""./dev hooks in a separate clone: it installs, updates and removes its hook, and keeps another one."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    shutil.copy(ROOT / "dev", tmp_path)
    return tmp_path


def hooks(clone, *arguments):
    return subprocess.run(["./dev", "hooks", *arguments], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def commit(clone):
    return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"], cwd=clone)


def test_the_hook_decides_about_commits(clone):
    assert hooks(clone).returncode == 0
    assert hooks(clone).returncode == 0  # again
    dev = clone / "dev"
    for status in (1, 0):
        dev.write_text(f'#!/bin/sh\necho "$@" > arguments\nexit {status}\n')
        assert commit(clone).returncode == status
        assert (clone / "arguments").read_text() == "check --staged\n"


def test_the_hook_is_removed(clone):
    hooks(clone)
    assert hooks(clone, "--remove").returncode == 0
    assert not (clone / ".git/hooks/pre-commit").exists()
    assert hooks(clone, "--remove").returncode == 0  # nothing to remove


@pytest.mark.parametrize("arguments", [(), ("--remove",)])
def test_a_foreign_hook_stays(clone, arguments):
    hook = clone / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    done = hooks(clone, *arguments)
    assert done.returncode == 1 and "is another hook" in done.stdout
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"
