"""The command line: its output is compared with an independent reading of the folded stacks and with perf, and its terminal output is
captured through tmux."""
import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request

import pytest
from flamewire import BIN, TESTS_BIN, cpu_seconds, wait_until

PROGRAM = BIN / "flamewire"


@pytest.fixture
def home(tmp_path):
    """A separate data folder, without the machine's settings for colors and pagers."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PAGER", "NO_COLOR", "FLAMEWIRE_AGENT")}
    return {**environment, "XDG_DATA_HOME": str(tmp_path / "data"), "TMPDIR": str(tmp_path), "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}


def run(home, *arguments, code=0, **options):
    options = {"timeout": 120, "stdin": subprocess.DEVNULL, **options}
    done = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, env=home, **options)
    assert code is None or done.returncode == code, done
    return done


def record(home, tmp_path, *options, name="own.flw", seconds=2):
    path = tmp_path / name
    done = run(home, "record", "-F", "999", "-e", "cpu-clock", "-o", path, *options, "--", TESTS_BIN / "shares-workload", seconds)
    assert f"session: {path}" in done.stderr
    return path


def functions_of_folded(text):
    """Function -> [self, total], in samples."""
    sums = collections.defaultdict(lambda: [0, 0])
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        frames = stack.split(";")[1:]  # the first is the thread's name
        if not frames:
            continue
        sums[frames[-1]][0] += int(count)
        for frame in set(frames):
            sums[frame][1] += int(count)
    return {name: tuple(both) for name, both in sums.items()}


ROW = re.compile(r"^ *([0-9.]+)% +([0-9.]+)% +(\d+)  (.*?)(?:  \[[^]]*\])?(?: \(inlined\))?$", re.M)


def test_record_and_report_agree_with_the_folded_stacks(home, tmp_path):
    path = record(home, tmp_path)
    folded = functions_of_folded(run(home, "export", path, "--event", "cpu-clock").stdout)
    whole = sum(own for own, _ in folded.values())
    report = run(home, "report", path, "--percent-limit", "0").stdout
    assert "shares-workload" in report.splitlines()[0] and "999 Hz" in report.splitlines()[0]
    table, tree = report.split("Call tree\n")
    found = [(name, (float(own), float(total), int(samples))) for own, total, samples, name in ROW.findall(table)]
    rows = dict(found)
    assert len(rows) > 5
    several = {name for name, times in collections.Counter(name for name, _ in found).items() if times > 1}  # functions of this name are in several modules
    assert {"main"} <= rows.keys() - several
    assert rows.keys() == folded.keys()
    for name in several:
        assert sum(row[2] for other, row in found if other == name) == folded[name][0], name
    for name, (own, total) in folded.items():
        if name in several:
            continue
        assert rows[name][2] == own, name
        assert rows[name][0] == pytest.approx(100 * own / whole, abs=0.006), name
        assert rows[name][1] == pytest.approx(100 * total / whole, abs=0.006), name
    # Every function of the table is in the tree. The roots' shares add up to the total.
    drawn = re.findall(r"^ *([0-9.]+)% +([0-9.]+)%  ([├└│ ]*)(.*?)(?:  \[[^]]*\])?(?: \(inlined\))?$", tree, re.M)
    assert {name for _, _, _, name in drawn} == set(rows)
    roots = [float(total) for total, _, lines, _ in drawn if len(lines) <= 2 and not lines.startswith(("│", "  "))]
    assert roots and max(roots) <= 100.0
    # A limit omits the functions below it and reports how many.
    short = run(home, "report", path, "--percent-limit", "5", "--only", "functions").stdout
    shown = ROW.findall(short)
    assert [row[0] for row in shown] and all(float(row[0]) >= 5 for row in shown)
    assert f"and {len(found) - len(shown)} more functions" in short
    # Sorted by total, and inverted.
    by_total = ROW.findall(run(home, "report", path, "--sort", "total", "--only", "functions", "--percent-limit", "0").stdout)
    assert [float(row[1]) for row in by_total] == sorted((float(row[1]) for row in by_total), reverse=True)
    inverted = run(home, "report", path, "--inverted", "--only", "tree", "--percent-limit", "0").stdout
    hottest = max(folded, key=lambda name: folded[name][0])
    first = re.search(r"^ *([0-9.]+)% +[0-9.]+%  [├└] (\S+)", inverted, re.M)
    assert first and hottest.startswith(first[2]) and float(first[1]) == pytest.approx(100 * folded[hottest][0] / whole, abs=0.006)


LIBRARY = "void in_library(void) { for (volatile int i = 0; i < 100000; i++); }\n"
PROGRAM_OF_LIBRARY = """void in_library(void);
void in_program(void) { for (volatile int i = 0; i < 100000; i++); }
int main(void) { for (;;) { in_library(); in_program(); } }
"""


ONCE = """#include <stdio.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void busy_once(void) { for (volatile int i = 0; i < 100000; i++); }
int main(int argc, char** argv) {
    char file[4096] = {0};
    readlink("/proc/self/exe", file, sizeof file - 1);
    argv[0] = file;
    CHANGE;
    while (clock() < 0.5 * CLOCKS_PER_SEC) busy_once();
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="libraries of other processes need root: not tested")
@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_deleted_files_of_a_process_still_have_names(home, tmp_path, change):
    """This happens when an upgrade replaces files of a running program. The session keeps the names after the process has exited."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "program.c").write_text(PROGRAM_OF_LIBRARY)
    files = tmp_path / "libgone.so", tmp_path / "gone"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", files[0], tmp_path / "library.c"], check=True)
    subprocess.run(["gcc", "-Wl,--build-id", "-Wl,-rpath,$ORIGIN", "-o", files[1], tmp_path / "program.c", files[0]], check=True)
    target = subprocess.Popen([files[1]])
    try:
        wait_until(lambda: cpu_seconds(target.pid) > 0.05)  # by then both are mapped
        for file in files:
            file.unlink()
            if change == "replaced":
                shutil.copy(TESTS_BIN / "waits-workload", file)
        path = tmp_path / "own.flw"
        done = run(home, "record", "-p", target.pid, "-d", "1", "-F", "999", "-e", "cpu-clock", "-o", path)
    finally:
        target.kill()
        target.wait()
    for text in (done.stderr, run(home, "report", path, "--only", "functions").stdout):
        names = {row[3] for row in ROW.findall(text)}
        assert {"in_library", "in_program"} <= names, text
        assert "without names" not in text


@pytest.mark.parametrize("change", ["unlink(argv[0])", 'rename("other", argv[0])'])
def test_a_command_that_deletes_or_replaces_its_own_file_has_names(home, tmp_path, change):
    """Some programs are built to run once. The command is found through PATH, as in a shell."""
    (tmp_path / "once.c").write_text(ONCE.replace("CHANGE", change))
    subprocess.run(["gcc", "-w", "-O1", "-Wl,--build-id", "-o", tmp_path / "once", tmp_path / "once.c"], check=True)
    shutil.copy(TESTS_BIN / "waits-workload", tmp_path / "other")
    path = tmp_path / "own.flw"
    done = run({**home, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, "record", "-F", "999", "-e", "cpu-clock", "-o", path, "--", "once", cwd=tmp_path)
    assert not (tmp_path / "once").exists() or (tmp_path / "once").read_bytes() == (TESTS_BIN / "waits-workload").read_bytes()
    for text in (done.stderr, run(home, "report", path, "--only", "functions").stdout):
        assert "busy_once" in {row[3] for row in ROW.findall(text)}, text
        assert "without names" not in text


def warnings(text):
    """(cause, remedy) of each warning about call chains and names."""
    return re.findall(r"^# ([0-9.]+% (?:has|of the stacks|is in functions).*)\n#   (.*)$", text, re.M)


def test_incomplete_call_chains_and_missing_names_are_reported_with_the_remedy(home, tmp_path):
    def both(name, *words):
        """The warnings of `record`, which `report` repeats, and a function that computes the share of stacks with a marker."""
        path = tmp_path / f"{name}.flw"
        # Record user code only: with other load, the kernel's share grows.
        done = run(home, "record", "-F", "499", "-e", "cpu-clock:u", "-o", path, *words)
        lines = warnings(done.stderr)
        assert warnings(run(home, "report", path).stdout) == lines
        # A range without samples has no warnings.
        assert warnings(run(home, "report", path, "--start", "90000").stdout) == []
        folded = [line.rsplit(" ", 1) for line in run(home, "export", path, "--event", "cpu-clock:u").stdout.splitlines()]
        whole = sum(int(count) for _, count in folded)
        return lines, lambda marker: 100 * sum(int(count) for stack, count in folded if marker in stack) / whole

    assert both("whole", "--", TESTS_BIN / "shares-workload", 1)[0] == []

    (lines, share) = both("tables", "--", TESTS_BIN / "unwind-scenes-notables-workload", 1)
    (cause, remedy), = lines
    assert re.fullmatch(r"[0-9.]+% has incomplete call chains \(\[incomplete\]\): no unwind table .*, most often from unwind-scenes-notables-workload", cause), cause
    assert float(cause.split("%")[0]) == pytest.approx(share("[incomplete]"), abs=0.006)
    assert "-fasynchronous-unwind-tables" in remedy

    (lines, share) = both("deep", "--unwind", "dwarf", "--stack-size", "1024", "--", TESTS_BIN / "unwind-recursion-workload", 1)
    (cause, remedy), = lines
    assert float(cause.split("%")[0]) == pytest.approx(share("[truncated]"), abs=0.006) and "deeper" in cause
    assert remedy.startswith("record with --stack-size 65528")
    assert re.search(r"^# [0-9,]+ stacks cut \(cpu-clock:u\): they are deeper than what was recorded", run(home, "report", tmp_path / "deep.flw").stdout, re.M)

    # After one second of deep stacks, auto mode copies more of each stack. The library's missing names are a separate warning.
    with subprocess.Popen([TESTS_BIN / "unwind-x264-workload", "600"], stdout=subprocess.DEVNULL) as program:
        (cause, remedy), *_ = both("grows", "--pid", program.pid, "--duration", 4)[0]
        program.kill()
    assert "auto mode copied less of each stack first" in cause and remedy == "record for a longer time, or with --stack-size 65528"

    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, TESTS_BIN / "shares-workload"], check=True)
    (cause, remedy), = both("stripped", "--", stripped, 1)[0]
    assert re.match(r"(?:9\d\.\d\d|100\.00)% is in functions of stripped without names: .*stripped has no debug info", cause) and "--binary" in remedy

    # The program has frame pointers and its libraries have none. Auto mode detects this in its first stacks.
    path = tmp_path / "first.flw"
    program = subprocess.Popen([TESTS_BIN / "bench-workload", "600"], stdout=subprocess.DEVNULL)
    recorder = subprocess.Popen([PROGRAM, "record", "-F", "99", "-e", "cpu-clock:u", "-o", path, "--pid", str(program.pid)], stderr=subprocess.PIPE, text=True, env=home)
    try:
        wait_until(path.exists, 30, "the recording")

        def mostly_changed():
            """Most stacks come from the later mode, but less than 95 %. The program is stopped while `report` runs, which is slow on a busy machine."""
            used = cpu_seconds(program.pid)
            program.send_signal(signal.SIGCONT)
            wait_until(lambda: cpu_seconds(program.pid) > used + 0.2, 30, "the program to go on")
            program.send_signal(signal.SIGSTOP)
            reported = warnings(run(home, "report", path, code=None).stdout)
            return any(float(cause.split("%")[0]) < 25 and "then changed to a better mode" in cause for cause, _ in reported)

        wait_until(mostly_changed, 90, "another mode")
        recorder.send_signal(signal.SIGINT)
        # In a short recording, more than 5 % of the stacks can also be cut at the end of their copy.
        (cause, remedy), = [warning for warning in warnings(recorder.communicate(timeout=60)[1]) if "[truncated]" not in warning[0]]
    finally:
        for process in (recorder, program):
            process.kill()
            process.wait()
    assert "then changed to a better mode" in cause and remedy == "record for a longer time, or with --unwind dwarf"

    # Each ring has room for one sample, so frame pointers replace the copies.
    with subprocess.Popen([TESTS_BIN / "unwind-modes-none-workload", "60"], stdout=subprocess.DEVNULL) as program:
        everything = run(home, "record", "-F", "499", "-a", "-e", "cpu-clock", "--stack-size", "4096", "--ring-pages", 2, "-o", tmp_path / "all.flw", "--duration", 4)
        program.terminate()
    assert re.search(r"[0-9]+ samples were lost\. From now on, stacks come from frame pointers\. Try: use a lower --frequency or a smaller --stack-size", everything.stderr), everything.stderr
    assert any("frame pointers" in cause and "--unwind dwarf" in remedy for cause, remedy in warnings(everything.stderr)), everything.stderr

    # Not even one copy fits, so no smaller size can be tried.
    nothing = run(home, "record", "-F", "499", "-e", "cpu-clock", "--unwind", "dwarf", "--stack-size", "65528", "--ring-pages", 1, "-o", tmp_path / "nothing.flw", "--", TESTS_BIN / "shares-workload", 1)
    assert "no samples: all were lost; increase --ring-pages" in nothing.stderr and "too rare" not in nothing.stderr, nothing.stderr


def test_the_exit_code_is_the_commands(home, tmp_path):
    done = run(home, "record", "-o", tmp_path / "a.flw", "--", "sh", "-c", "echo out; exit 7", code=7)
    assert done.stdout == "out\n"
    # If the command comes first, its options need no --.
    assert run(home, "record", "-q", "-o", tmp_path / "b.flw", "sh", "-c", "exit 3", code=3)
    assert run(home, "record", "-o", tmp_path / "c.flw", "--", tmp_path / "nowhere", code=127).stdout == ""
    assert not (tmp_path / "c.flw").exists()


@pytest.mark.parametrize("words, sentence", [
    (["record"], "give one target"),
    (["record", "-p", "1", "--", "true"], "give one target"),
    (["report", "nowhere"], "there is no file nowhere and no session"),
    (["report"], "there is no session in"),
    (["report", "/etc/hostname"], "is not in a format that can be imported"),
    (["export", "/etc/hostname", "--format", "pprof"], "is not in a format"),
    (["import", "/etc/hostname"], "is not in a format"),
    (["top", "--", "true"], "print over the table"),
    (["diff", "a", "b"], "there is no file a"),
    (["diff", "a"], "there is no file a"),
    (["serve", "nowhere"], "there is no file nowhere"),
    (["stat", "-i", "nowhere"], "there is no file nowhere"),
], ids=lambda words: " ".join(words) if isinstance(words, list) else "")
def test_mistakes_are_one_sentence(home, words, sentence):
    done = run(home, *words, code=1)
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1 and done.stdout == "", done


@pytest.mark.parametrize("words", [["nothing"], ["report", "--no-such-option"], ["export", "x", "--format", "gif"], ["diff"],
                                   ["report", "--percent-limit", "many"]], ids=" ".join)
def test_wrong_usage(home, words):
    done = run(home, *words, code=2)
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("flamewire"), done


def test_every_format_comes_back_with_the_same_functions(home, tmp_path):
    path = record(home, tmp_path)
    here = functions_of_folded(run(home, "export", path, "--event", "cpu-clock").stdout)
    for name in ("pprof", "speedscope", "firefox"):
        out = tmp_path / f"out.{name}"
        run(home, "export", path, "--format", name, "-e", "cpu-clock", "-o", out)
        again = functions_of_folded(run(home, "export", out).stdout)
        assert again == here, name
    folded = run(home, "export", path, "--event", "cpu-clock").stdout
    piped = run(home, "report", "-", "--json", input=folded, stdin=None).stdout
    event = json.loads(piped)["events"][0]
    assert event["samples"] == sum(own for own, _ in here.values())
    perf = tmp_path / "out.perf.data"
    run(home, "export", path, "--format", "perfdata", "-e", "cpu-clock", "-o", perf)
    reported = subprocess.run(["perf", "script", "-i", perf, "-F", "comm,period"], capture_output=True, text=True, check=True).stdout
    assert len(reported.split()) // 2 == sum(own for own, _ in here.values())
    for name, start in (("svg", "<?xml"), ("html", "<!doctype html>"), ("csv", "function,"), ("json", "{")):
        assert run(home, "export", path, "--format", name).stdout.lower().startswith(start), name


def test_import_list_and_report_by_id(home, tmp_path):
    path = record(home, tmp_path)
    folded = tmp_path / "stacks.txt"
    folded.write_text("main;work;inner 70\nmain;work 20\nmain 10\n")
    done = json.loads(run(home, "import", folded, path, "--json").stdout)
    recorded = sum(own for own, _ in functions_of_folded(run(home, "export", path).stdout).values())
    assert [one["samples"] for one in done] == [100, recorded] and recorded > 0
    listed = json.loads(run(home, "list", "--json").stdout)["sessions"]
    ids = {one["id"] for one in done}
    assert {one["id"] for one in listed} == ids
    shown = run(home, "list").stdout
    assert all(one in shown for one in ids)
    assert [one["id"] for one in json.loads(run(home, "list", "shares-workload cpu-clock", "--json").stdout)["sessions"]] == [done[1]["id"]]
    by_id = ROW.findall(run(home, "report", done[0]["id"], "--only", "functions").stdout)
    assert [(row[3], row[2]) for row in by_id] == [("inner", "70"), ("work", "20"), ("main", "10")]
    bad = run(home, "import", folded, tmp_path / "missing", code=1)
    assert "100 samples" in bad.stdout and "missing" in bad.stderr
    # With several files, each message names its own file, once.
    broken = {"cut.json": '{"traceEvents":[{"ph":"X"', "cut.data": "PERFILE2junk", "nothing": "", "words.txt": "nothing to see"}
    for name, content in broken.items():
        (tmp_path / name).write_text(content)
    lines = run(home, "import", *(tmp_path / name for name in broken), code=1).stderr.splitlines()
    assert [line.count(name) for name, line in zip(broken, lines, strict=True)] == [1] * len(broken), lines


def test_an_archive_has_names_without_the_program(home, tmp_path):
    program = tmp_path / "gone" / "shares-workload"
    program.parent.mkdir()
    program.write_bytes((TESTS_BIN / "shares-workload").read_bytes())
    program.chmod(0o755)
    done = run(home, "record", "-F", "999", "-e", "cpu-clock", "--title", "before the change", "--tag", "rig=7", "--", program, "1")
    path = pathlib.Path(re.search(r"session: (\S+)", done.stderr)[1])
    assert path.parent == tmp_path / "data/flamewire/sessions"
    here = functions_of_folded(run(home, "export", path).stdout)
    assert "main" in here
    archive = tmp_path / "taken.flamewire"
    run(home, "export", path, "--format", "flamewire", "-o", archive)
    names = subprocess.run(["tar", "--zstd", "-tf", archive], capture_output=True, text=True, check=True).stdout
    assert "stream.flw" in names and "symbols.pb.zst" in names and "label.json" in names
    program.unlink()
    elsewhere = {**home, "XDG_DATA_HOME": str(tmp_path / "elsewhere")}
    assert functions_of_folded(run(elsewhere, "export", archive).stdout) == here
    assert run(elsewhere, "report", archive).stdout.startswith("# before the change rig=7")
    assert len(json.loads(run(elsewhere, "import", archive, "--json").stdout)) == 1
    assert "before the change rig=7" in run(elsewhere, "list", "rig=7").stdout
    assert functions_of_folded(run(elsewhere, "export").stdout) == here  # the newest and only session
    assert run(home, "record", "--tag", "no value", "--", "true", code=1).stdout == ""
    assert not list(tmp_path.glob("flamewire-*"))


def test_diff(home, tmp_path):
    (tmp_path / "a").write_text("main;same 50\nmain;grows 20\nmain;goes 30\n")
    (tmp_path / "b").write_text("main;same 100\nmain;grows 80\nmain;comes 20\n")
    text = run(home, "diff", tmp_path / "a", tmp_path / "b", "--percent-limit", "0").stdout
    rows = re.findall(r"^ *([0-9.]+)% +([0-9.]+)% +([-+][0-9.]+)  (\S+)(?: \((\w+)\))?$", text, re.M)
    assert rows == [("30.00", "0.00", "-30.00", "goes", "gone"), ("20.00", "40.00", "+20.00", "grows", ""),
                    ("0.00", "10.00", "+10.00", "comes", "new")]
    data = json.loads(run(home, "diff", tmp_path / "a", tmp_path / "b", "--json").stdout)
    shares = {row["name"]: (row["self"]["before_percent"], row["self"]["after_percent"]) for row in data["functions"]}
    assert shares == {"main": (0, 0), "same": (50, 50), "grows": (20, 40), "goes": (30, 0), "comes": (0, 10)}
    assert not list(tmp_path.glob("flamewire-*"))
    assert "no times" in run(home, "diff", tmp_path / "a", tmp_path / "b", "--by", "time", code=1).stderr


def test_stat_counts_as_perf_does(home):
    """The program touches a known number of pages."""
    command = ["python3", "-c", "b = bytearray(64 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"]
    table = run(home, "stat", "--stat", "page-faults,task-clock", "--", *command).stdout
    own = int(re.search(r"([0-9,]+) +page-faults", table)[1].replace(",", ""))
    done = subprocess.run(["perf", "stat", "-x", ",", "-e", "page-faults", "--", *command], capture_output=True, text=True, check=True)
    perf = int(done.stderr.split(",")[0])
    assert own == pytest.approx(perf, rel=0.05)
    answer = json.loads(run(home, "stat", "--stat", "page-faults", "--json", "--", *command).stdout)
    counted = {one["name"]: one["value"] for one in answer["groups"][0]["counters"]}
    assert counted["page-faults"] == pytest.approx(perf, rel=0.05)
    assert run(home, "stat", "--", "sh", "-c", "exit 5", code=5)


def test_sched_is_a_table_of_its_own(home, tmp_path):
    done = run(home, "stat", "--stat", "sched", "--", "sleep", "0.1")
    assert re.search(r"^sleep:\d+ +[0-9.]+ ", done.stdout, re.M) and "Waited for a CPU" in done.stdout, done
    for words, remedy in ((["record", "-o", tmp_path / "x.flw"], "flamewire stat --stat sched"), (["stat", "--json"], "--events off-cpu")):
        done = run(home, *words, "--stat", "sched", "--", "true", code=None)
        assert done.returncode in (1, 2) and remedy in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert not (tmp_path / "x.flw").exists()
    # Switch events alone do not include wake-ups.
    run(home, "record", "-e", "off-cpu", "-o", tmp_path / "off.flw", "--", "sleep", "0.1")
    assert "# Wake-up latency counts as Blocked\n#   record woken-by as well" in run(home, "report", "--sched", tmp_path / "off.flw").stdout


def build_id(path):
    return re.search("Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout)[1]


def test_a_binary_of_another_build_is_reported_and_not_used(home, tmp_path):
    """readelf reads both build-ids."""
    path = record(home, tmp_path, seconds=1)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "shares-workload"
    other.write_bytes((TESTS_BIN / "demo-workload").read_bytes())
    plain = run(home, "report", path)
    wrong = run(home, "report", path, "--binary", other)
    assert build_id(other) != build_id(TESTS_BIN / "shares-workload")
    assert re.search(rf"^--binary {re.escape(str(other))} is not used: its build-id is {build_id(other)}, that of the shares-workload that was recorded is {build_id(TESTS_BIN / 'shares-workload')}; give", wrong.stderr, re.M), wrong.stderr
    assert wrong.stdout == plain.stdout
    right = run(home, "report", path, "--binary", TESTS_BIN / "shares-workload")
    nothing = run(home, "report", path, "--binary", PROGRAM)
    assert right.stderr == plain.stderr
    assert f"--binary {PROGRAM} is not used: nothing that was recorded has its build-id {build_id(PROGRAM)} or its name" in nothing.stderr


@pytest.fixture
def terminal(home, tmp_path):
    """A terminal of 100 by 30 characters that runs one command. Tests can read its screen and press keys."""
    socket = tmp_path / "tmux"

    class Terminal:
        def tmux(self, *words):
            return subprocess.run(["tmux", "-S", str(socket), *words], capture_output=True, text=True, env=home, timeout=30)

        def start(self, *words):
            line = " ".join(shlex.quote(str(word)) for word in words)
            script = f"{line}; echo ended $?; sleep 60"
            done = self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", script)
            assert done.returncode == 0, done

        def shows(self):
            return self.tmux("capture-pane", "-p").stdout

        def press(self, *keys):
            self.tmux("send-keys", *keys)

        def wait(self, pattern, seconds=30):
            return wait_until(lambda: re.search(pattern, self.shows(), re.S), seconds, f"{pattern!r} in\n{self.shows()}")

    it = Terminal()
    yield it
    it.tmux("kill-server")


def test_top_in_a_terminal(terminal, tmp_path):
    burner = subprocess.Popen([TESTS_BIN / "shares-workload", "600"], stdout=subprocess.DEVNULL)
    try:
        terminal.start(PROGRAM, "top", "--pid", burner.pid, "-F", "499", "-e", "cpu-clock", "--every", "0.5")
        screen = terminal.wait(r"pid-\d+  cpu-clock  [0-9,]+ samples.*Self +Total +Samples  Function\n.*\d% +[0-9,]+ +\S[^\n]*")[0]
        rows = [line for line in screen.splitlines() if "%" in line]
        assert any("stage" in row or "part" in row or "shares-workload" in row for row in rows), screen
        terminal.press("t")
        terminal.wait(r"Call tree.*main")
        terminal.press("a")
        terminal.wait("since the start")
        terminal.press("Space")
        terminal.wait("paused")
        terminal.press("?")
        terminal.wait("order by self or by total")
        terminal.press("?")
        terminal.press("q")
        after = terminal.wait(r"ended 0")
        assert "Call tree" not in terminal.shows(), after  # the screen is restored
    finally:
        burner.kill()
        burner.wait()
    assert not list(tmp_path.glob("flamewire-*")), "temporary files are left"


def test_the_table_of_scheduling_fits_its_terminal(terminal):
    terminal.start(PROGRAM, "stat", "--stat", "sched", "--", "sleep", "0.1")
    shown = terminal.wait("all 1 threads.*ended 0")[0]
    assert "Left its CPU" in terminal.shows() and "Waited for" not in terminal.shows(), shown
    assert re.search(r"^sleep:\d+ .*\d$", terminal.shows(), re.M) and "more columns in a terminal of 184" in shown


def test_top_reports_why_there_are_no_samples(terminal):
    terminal.start(PROGRAM, "top", "--pid", "4194000")
    terminal.wait(r"4194000.*ended 1")


def test_a_long_report_is_paged_in_colors(terminal, home, tmp_path):
    path = record(home, tmp_path)
    terminal.start(PROGRAM, "report", path, "--percent-limit", "0")
    shown = terminal.wait("Self +Total +Samples")
    assert "ended" not in shown[0]
    assert "\x1b[31m" in terminal.tmux("capture-pane", "-p", "-e").stdout
    terminal.press("q")
    terminal.wait("ended 0")


def test_interrupted_recordings_are_whole(home, tmp_path):
    """Ctrl-C also reaches the command. A SIGINT to the recorder alone is passed on."""
    path = tmp_path / "cut.flw"
    recorder = subprocess.Popen([PROGRAM, "record", "-F", "499", "-e", "cpu-clock", "-o", path, "--", TESTS_BIN / "shares-workload", "100.125"],
                                env=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: path.exists() and path.stat().st_size > 4000, 30, "some batches")
    found = subprocess.run(["pgrep", "-f", r"shares-workload 100\.125"], capture_output=True, text=True, check=True).stdout.split()
    wait_until(lambda: sum(cpu_seconds(pid) for pid in found) > 0.7, 60, "more than 100 samples")
    recorder.send_signal(signal.SIGINT)
    _, errors = recorder.communicate(timeout=60)
    assert f"session: {path}" in errors
    assert sum(own for own, _ in functions_of_folded(run(home, "export", path).stdout).values()) > 100


def test_a_signal_removes_temporary_files(home, tmp_path):
    reader = subprocess.Popen([PROGRAM, "report", "-"], env=home, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: list(tmp_path.glob("flamewire-*/input")), 20, "the copy of the input")
    reader.send_signal(signal.SIGTERM)
    assert reader.wait(20) == -signal.SIGTERM
    assert not list(tmp_path.glob("flamewire-*"))


def test_serve_shows_a_file_and_keeps_nothing(home, tmp_path):
    folded = tmp_path / "stacks.txt"
    folded.write_text("main;work;inner 70\nmain;work 20\n")
    server = subprocess.Popen([PROGRAM, "serve", folded, "--port", "0", "--http-port", "0"], env=home, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL)
    try:
        page = next(re.search(r"page: (\S+)", line)[1] for line in server.stdout if line.startswith("page:"))

        def names():
            # The printed address has the token, which is in no permanent file.
            address, token = page.split("?token=")
            request = urllib.request.Request(f"{address}api/sessions", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=20) as answer:
                return [one["target"] for one in json.load(answer)["sessions"]]

        wait_until(lambda: names() == ["stacks.txt"], 20, "the session")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
    assert not list(tmp_path.glob("flamewire-serve-*")) and not (tmp_path / "data").exists()


def test_completions_and_manual(home, tmp_path):
    commands = re.findall(r"^  (\w+) {4,}", run(home).stdout.split("Subcommands:")[1], re.M)
    assert {"record", "report", "top", "stat", "diff", "export", "import", "serve"} <= set(commands)
    script = run(home, "completion", "bash").stdout
    (tmp_path / "c.bash").write_text(script)

    def completed(*words):
        line = f"source {tmp_path}/c.bash; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _flamewire; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split()

    assert set(commands) <= set(completed("flamewire", ""))
    assert completed("flamewire", "rec") == ["record"]
    assert "--frequency" in completed("flamewire", "record", "--f")
    assert completed("flamewire", "export", "--format", "spe") == ["speedscope"]
    assert completed("flamewire", "report", "c.b") == ["c.bash"]
    for command in commands:
        # Every option of the help is in the manual and in each completion script.
        options = set(re.findall(r"(--[a-z][a-z-]+)", run(home, command, "--help").stdout.split("Options:")[1].split("FILE is")[0]))
        assert options <= set(re.findall(r"--[a-z][a-z-]+", script)) | {"--"}, command
        manual = run(home, "manual").stdout.replace("\\-", "-")
        missing = {one for one in options if one not in manual}
        assert not missing, (command, missing)
    page = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=run(home, "manual").stdout, capture_output=True, text=True, check=True)
    assert page.stderr == ""
