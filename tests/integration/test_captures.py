"""--capture: the recorded inputs replay to the same session."""
import os
import stat
import subprocess

import pytest
from flamewire import BIN, TESTS_BIN

AGENT = BIN / "flamewire-agent"
REPLAY = BIN / "capture-replay"


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)


def folded(path):
    """Call chains with their sample counts."""
    outcome = run(BIN / "flamewire", "export", path, "--format", "collapsed")
    assert outcome.returncode == 0, outcome
    return outcome.stdout


def test_ten_replays_are_equal_to_the_session(tmp_path):
    capture, session, replayed = (tmp_path / name for name in ("capture", "session.flw", "replayed.flw"))
    recorded = run(AGENT, "--output", session, "--capture", capture, "--frequency", 499, "--unwind", "dwarf", "--", TESTS_BIN / "shares-workload", 1)
    assert recorded.returncode == 0, recorded
    assert f"capturing the inputs of this recording to {capture}" in recorded.stderr
    assert f"captured {capture.stat().st_size} bytes" in recorded.stderr
    assert stat.S_IMODE(capture.stat().st_mode) == 0o600
    outcome = run(REPLAY, capture, "--times", 10, "--output", replayed)
    assert outcome.returncode == 0, outcome
    assert "10 replays are equal" in outcome.stdout and " 0 out of order, 0 missing" in outcome.stdout, outcome.stdout
    assert folded(replayed) == folded(session) != ""


def test_an_existing_file_is_not_replaced(tmp_path):
    capture = tmp_path / "capture"
    capture.write_text("mine")
    outcome = run(AGENT, "--output", tmp_path / "never.flw", "--capture", capture, "--", "true")
    assert outcome.returncode == 1
    assert outcome.stderr.strip().endswith(f"cannot capture to {capture}: the file exists. Remove it or give another name."), outcome.stderr
    assert capture.read_text() == "mine" and not (tmp_path / "never.flw").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT tested: mounting a small file system needs root; CI runs as root")
def test_a_full_disk_ends_the_capture_and_not_the_recording(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=True)
    try:
        session = tmp_path / "session.flw"
        outcome = run(AGENT, "--output", session, "--capture", small / "capture", "--frequency", 999, "--unwind", "dwarf", "--", TESTS_BIN / "shares-workload", 1)
        assert outcome.returncode == 0, outcome
        assert "the capture is incomplete: cannot write to the file: No space left on device" in outcome.stderr, outcome.stderr
        assert folded(session)
    finally:
        subprocess.run(["umount", small], check=True)


def test_what_is_not_a_capture_is_refused(tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"FLMWIRE\n\x01\x00\x00\x00")
    outcome = run(REPLAY, wrong)
    assert outcome.returncode == 1 and outcome.stderr == f"capture-replay: {wrong}: not a capture of flamewire-agent\n", outcome
    assert run(REPLAY).returncode == 2
