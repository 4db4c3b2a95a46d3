"""Files of a real recording that were cut, overwritten or left by a killed server. The first notice, on the server and in the terminal,
reports the missing part, and every shown sample was recorded."""
import collections
import json
import random
import re
import signal
import subprocess

import pytest
from flamewire import BIN, wait_until
from session_files import record_ends

NUMBER = r"([\d,]+)"
DAMAGED = re.compile(rf"The session file is damaged: {NUMBER} of {NUMBER} bytes are unreadable")


def number(text):
    return int(text.replace(",", ""))


@pytest.fixture
def cli(tmp_path):
    def run(*words, code=0):
        done = subprocess.run([BIN / "flamewire", *map(str, words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, cwd=tmp_path, check=False)
        assert done.returncode == code, done
        return done.stdout

    return run


@pytest.fixture
def saved(start, tmp_path):
    """The file of an agent that recorded for 6 s."""
    path = tmp_path / "saved.flw"
    first = start.workload("shares", 600)
    agent = start.agent("--output", path, "--pid", first.pid, "--frequency", 999, "--interval", 100, "--duration", 6)
    assert agent.wait(60) == 0, agent.err
    first.stop()
    return path


def folded(cli, path):
    counts = collections.Counter()
    for line in cli("export", path).splitlines():
        stack, count = line.rsplit(" ", 1)
        counts[stack] += int(count)
    return counts


def head(cli, path):
    return [line for line in cli("report", path, "--only", "functions", "-n", 1).splitlines() if line.startswith("#")]


def samples(cli, path, *options):
    return number(re.search(rf"^# \S+: {NUMBER} samples", cli("report", path, "--only", "functions", *options), re.M)[1])


def test_a_cut_file_is_reported(cli, saved, tmp_path):
    content, whole = saved.read_bytes(), folded(cli, saved)
    ends = record_ends(content)
    assert not any("session file" in line for line in head(cli, saved))
    path = tmp_path / "cut.flw"
    for size in (ends[len(ends) // 2] + 20, ends[len(ends) // 3] + 1, ends[-2] + 13, len(content) - 1):
        path.write_bytes(content[:size])
        left = size - max(end for end in ends if end <= size)
        assert left > 0
        lines = [line for line in head(cli, path) if "session file" in line]
        assert len(lines) == 1 and f"ends in the middle of a frame: its last {left:,} byte" in lines[0], (size, lines)
        after = float(re.search(r"Samples are missing after ([\d.]+) s", lines[0])[1])
        # The reported time and the times of samples are rounded to 10 ms.
        assert after > 0 and samples(cli, path, "--start", 1000 * after + 20) == 0 < samples(cli, path, "--end", 1000 * after + 20), lines
        found = folded(cli, path)
        assert not found - whole
        # With other load, the last batch can have no samples.
        assert sum(found.values()) < sum(whole.values()) or size > ends[-2]
        # Everything before the cut is present.
        path.write_bytes(content[:size - left])
        assert folded(cli, path) == found


def test_data_after_overwritten_bytes_is_found(cli, saved, tmp_path):
    content, whole = saved.read_bytes(), folded(cli, saved)
    total, ends = sum(whole.values()), record_ends(content)
    path = tmp_path / "damaged.flw"
    randomness = random.Random(12)
    for _ in range(6):
        at = randomness.randrange(len(content) // 4, len(content) - 600)
        path.write_bytes(content[:at] + randomness.randbytes(500) + content[at + 500:])
        hit = [(begin, end) for begin, end in zip(ends, ends[1:]) if begin < at + 500 and at < end]
        lines = head(cli, path)
        first = next(line for line in lines if not re.match(r"# [0-9,]+ samples missing|# .* on .* \(", line))
        damaged = DAMAGED.search(first)
        assert damaged, lines
        assert number(damaged[2]) == len(content)
        # A record with damage only in its arrival time is still read.
        assert number(damaged[1]) in {hit[-1][1] - hit[0][0], hit[-1][0] - hit[0][0]}, (hit, first)
        assert "Samples are missing" in first or "No samples were in that part" in first
        found = folded(cli, path)
        lost = sum(number(match[1]) for line in lines if (match := re.match(r"# ([0-9,]+) samples missing.*: they refer to parts", line)))
        assert not found - whole
        # The damaged frames contain what the file has up to their end, minus what it has up to their beginning.
        in_them = 0
        for end, sign in ((hit[0][0] + number(damaged[1]), 1), (hit[0][0], -1)):
            path.write_bytes(content[:end])
            in_them += sign * sum(folded(cli, path).values())
        assert sum(found.values()) + lost == total - in_them, (len(hit), lines)


def test_server_and_terminal_report_the_same(start, cli, saved):
    server = start.server()
    sessions = server.data_dir / "sessions"
    content = saved.read_bytes()
    ends = record_ends(content)
    middle = ends[len(ends) // 2] + 20
    (sessions / "damaged.flw").write_bytes(content[:middle] + b"?" * 50 + content[middle + 50:])
    (sessions / "cut.flw").write_bytes(content[:middle])
    (sessions / "empty.flw").write_bytes(b"")
    (sessions / "noise.flw").write_bytes(random.Random(1).randbytes(5000))
    (sessions / "whole.flw").write_bytes(content)
    listed = {session["id"]: session for session in server.sessions()}
    assert set(listed) == {"damaged", "cut", "whole"}
    assert not listed["whole"].get("lost_at_least") and "file" not in json.dumps([notice["code"] for notice in listed["whole"]["notices"]])
    lines = cli("list", "--data-dir", server.data_dir).splitlines()
    for name, code in (("damaged", "file-damaged"), ("cut", "file-cut")):
        notice = listed[name]["notices"][0]
        assert notice["code"] == code and notice["remedy"] and listed[name]["lost_at_least"] is True
        assert f"#   {notice['text']}" in lines
        assert server.session(name)["notices"][0] == notice
        assert f"# {notice['text']}" in head(cli, sessions / f"{name}.flw")
    assert listed["cut"]["samples"] < listed["damaged"]["samples"] < listed["whole"]["samples"]
    marks = [mark for mark in server.get("/api/timeline", session="damaged", slices=50)["marks"] if mark.get("reason") == "batches_missing"]
    assert len(marks) == 1 and marks[0]["count"] == 0 and marks[0]["lost"] is True
    unreadable = server.get("/api/sessions")["unreadable"]
    assert len(unreadable) == 2 and "empty.flw is empty" in unreadable[0] and "5000 bytes" in unreadable[1]
    assert all(f"# {sentence}" in lines for sentence in unreadable)
    server.sessions()
    output = server.out + server.err
    assert output.count("empty.flw is empty") == 1 and output.count("noise.flw is not") == 1
    assert sorted(path.name for path in sessions.glob("*.flw")) == ["cut.flw", "damaged.flw", "empty.flw", "noise.flw", "whole.flw"]
    # A session made from it contains the readable part and reports the missing one.
    status, _, made = server.request("POST", "/api/sessions/damaged/cut", body={"start": 0, "end": listed["whole"]["duration_ms"]})
    assert status in (200, 201, 202), made
    wait_until(lambda: len(server.sessions()) == 4, 20, "the session that was made")
    copy = next(session for session in server.sessions() if session["id"] not in listed)
    assert copy["samples"] == listed["damaged"]["samples"]
    assert listed["damaged"]["notices"][0]["text"] in copy["notices"][0]["text"]


def test_a_killed_server_leaves_a_cut_tail_and_a_running_one_no_damage(start, cli):
    server = start.server()
    program = start.workload("shares", 600)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--interval", 100)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 20, "samples")
    stream = next((server.data_dir / "sessions").glob("*/stream.flw"))
    for _ in range(5):
        assert "session file" not in cli("list", "--data-dir", server.data_dir)
        # The file can end in the middle of an append.
        with open(stream, "rb") as file:
            assert file.read(8) == b"FLMWIRE\n"
        assert not any("session file" in line for line in head(cli, stream))
    server.process.send_signal(signal.SIGKILL)
    server.wait()
    agent.stop(signal.SIGKILL)
    with open(stream, "ab") as file:  # the frame that was being written
        file.write(b"\0\0\0\0\0\0\0\1" + (900).to_bytes(4, "big") + b"\6" + b"\x28\xb5\x2f\xfd" + b"x" * 83)
    # "x" is not a batch, but these bytes are the beginning of a frame of 900 bytes.
    assert any("its last 100 bytes are unreadable" in line for line in head(cli, stream))
    again = start.server(name="again", data_dir=server.data_dir)
    session = again.only_session()
    assert session["notices"][0]["code"] == "file-cut" and "last 100 bytes" in session["notices"][0]["text"]
    assert session["samples"] > 500
