"""The command line on files of other tools. Nothing is recorded, so each expected result is computed by hand from the file."""
import io
import json
import os
import subprocess
import tarfile

import pytest
from flamewire import BIN

# cpu-clock samples of two threads, in the format of perf script. The second thread has half of the samples.
SCRIPT = "".join(f"""worker {tid} [000] {second}.000000:     250000 cpu-clock:
\t    4010 {leaf}+0x10 (/bin/worker)
\t    4020 main+0x20 (/bin/worker)

""" for second, tid, leaf in ((1, 71, "fast"), (2, 72, "slow"), (3, 72, "slow"), (4, 71, "fast"), (5, 71, "idle"), (6, 72, "slow")))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "worker.txt"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def run(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key not in ("PAGER", "NO_COLOR", "FLAMEWIRE_AGENT")}
    environment |= {"XDG_DATA_HOME": str(tmp_path / "data"), "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def run(*words, code=0):
        done = subprocess.run([BIN / "flamewire", *map(str, words)], env=environment, cwd=tmp_path, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == code, done
        return done.stdout

    return run


def folded(text):
    return {line.rsplit(" ", 1)[0].split(";", 1)[1]: int(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines()}


def test_export_shows_the_part_that_is_asked_for(run, script):
    assert folded(run("export", script)) == {"main;fast": 2, "main;idle": 1, "main;slow": 3}
    assert folded(run("export", script, "--tid", 72)) == {"main;slow": 3}
    assert folded(run("export", script, "--start", 2.5)) == {"main;fast": 1, "main;idle": 1, "main;slow": 1}
    assert folded(run("export", script, "--end", 0.5)) == {"main;fast": 1}
    assert folded(run("export", script, "--event", "cpu-clock", "--weights")) == {"main;fast": 500000, "main;idle": 250000, "main;slow": 750000}
    assert b"--group" in run("export", "--help") and run("export", script, "--group", "thread").count(b"\n") == 3
    run("export", script, "--event", "nothing", code=1)


def test_names_in_messages_do_not_control_the_terminal(script, tmp_path):
    bad = "bad\x1b[2J\x9b2J\u202e"
    (tmp_path / bad).write_text(SCRIPT)
    for words in (["report", bad], ["import", "none" + bad], ["report", "--" + bad], ["import", bad]):
        place = tmp_path if words == ["import", bad] else "/"
        done = subprocess.run([BIN / "flamewire", *words, *(["--data-dir", tmp_path] if words[1][:2] != "--" else [])], cwd=place, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        assert (done.returncode == 0) == (place == tmp_path), done
        output = (done.stdout + done.stderr).decode()
        assert "bad [2J 2J" in output and not any(one in output for one in "\x1b\x9b\u202e"), output


def test_import_list_report_and_diff(run, script, tmp_path):
    run("import", script)
    assert b"worker" in run("list")
    report = run("report", "--only", "functions", "--percent-limit", 0).decode()
    rows = {line.split()[3]: (line.split()[0], line.split()[2]) for line in report.splitlines() if line.strip()[:1].isdigit()}
    assert rows["slow"] == ("50.00%", "3") and rows["fast"] == ("33.33%", "2") and rows["idle"] == ("16.67%", "1")
    other = tmp_path / "other.txt"
    other.write_text(SCRIPT.replace("idle+", "slow+"))
    assert b"slow" in run("diff", script, other) and b"idle" in run("diff", script, other)


def test_an_archive_has_the_sources_when_they_are_asked_for(run, tmp_path):
    source = tmp_path / "app.js"
    source.write_text("function f() {}\n")
    profile = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "f", "file": str(source), "line": 1}]},
               "profiles": [{"type": "sampled", "name": "one", "unit": "none", "startValue": 0, "endValue": 1, "samples": [[0]], "weights": [1]}]}
    path = tmp_path / "app.speedscope.json"
    path.write_text(json.dumps(profile))
    listed = {}
    for way, options in (("with", ["--sources", "--source-dir", tmp_path]), ("without", [])):
        archive = tmp_path / f"{way}.flamewire"
        run("export", path, "--format", "flamewire", "-o", archive, *options)
        plain = subprocess.run(["zstd", "-dc", archive], check=True, capture_output=True).stdout
        listed[way] = [os.path.basename(name) for name in tarfile.open(fileobj=io.BytesIO(plain)).getnames()]
    assert "sources.pb.zst" in listed["with"] and "sources.pb.zst" not in listed["without"]
