"""`flamewire sql` on samples that the test writes, compared with the same statements on Python's sqlite3, whose tables come from the
test's own reading of the samples; and with the other commands on a recording."""
import collections
import csv
import fcntl
import io
import json
import os
import pty
import random
import signal
import sqlite3
import struct
import subprocess
import termios

import pytest
from flamewire import BIN, TESTS_BIN

BUCKET_NS = 10_000_000
FUNCTIONS = [f"{name}{n}" for name in ("work", "std::map<int, char>::at", "opera", "ünï", "a;b'c\"d") for n in range(4)]


class Samples:
    """Random samples as a text of perf script, and as the rows that they mean."""

    def __init__(self, seed, count=600):
        chance = random.Random(seed)
        stacks = [[(chance.choice(FUNCTIONS), chance.choice(("app", "libx.so"))) for _ in range(chance.randint(1, 9))] for _ in range(25)]
        threads = [(70 + n % 2, 70 + n, ("main", "pool worker", "pool worker", "gc", "it's")[n]) for n in range(5)]
        lines, rows, time_us = [], collections.Counter(), 5_000_000
        for _ in range(count):
            time_us += chance.randint(0, 5000)
            pid, tid, comm = chance.choice(threads)
            event, weight = chance.choice((("cycles", chance.randint(1, 10**12)), ("page-faults", 1)))
            cpu, stack = chance.randrange(4), chance.randrange(len(stacks))
            lines.append(f"{comm} {pid}/{tid} [{cpu:03d}] {time_us // 10**6}.{time_us % 10**6:06d}: {weight} {event}:\n")
            lines += [f"\t    {4096 + 16 * n:x} {name}+0x10 (/bin/{module})\n" for n, (name, module) in enumerate(stacks[stack])] + ["\n"]
            key = time_us * 1000 // BUCKET_NS * BUCKET_NS, event, pid, tid, comm, cpu, stack
            rows[key, "samples"] += 1
            rows[key, "weight"] += weight
        self.text, self.stacks = "".join(lines), stacks
        self.rows = [(*key, rows[key, "samples"], rows[key, "weight"]) for key, kind in rows if kind == "samples"]

    def database(self):
        """The same tables in Python's sqlite3. Their stacks have other numbers."""
        connection = sqlite3.connect(":memory:")
        connection.executescript("""
            CREATE TABLE samples (time_ns INTEGER, bucket_ns INTEGER, elapsed_ns INTEGER, wall_ns INTEGER, event TEXT, unit TEXT, pid INTEGER, tid INTEGER,
              thread TEXT, cpu INTEGER, samples INTEGER, weight INTEGER, stack_id INTEGER, function TEXT, module TEXT, file TEXT, line INTEGER);
            CREATE TABLE frames (stack_id INTEGER, depth INTEGER, function TEXT, module TEXT, kind TEXT, inlined INTEGER);
            CREATE TABLE stacks (stack_id INTEGER, frames INTEGER, function TEXT, module TEXT, folded TEXT);
            CREATE TABLE threads (pid INTEGER, tid INTEGER, thread TEXT);
            CREATE TABLE events (event TEXT, unit TEXT, samples INTEGER, weight INTEGER);""")
        start = min(row[0] for row in self.rows)
        connection.executemany("INSERT INTO samples VALUES (?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
                               [(time, BUCKET_NS, time - start, event, {"cycles": "cycles", "page-faults": "faults"}[event], pid, tid, comm, cpu, samples, weight, stack,
                                 *self.stacks[stack][0]) for time, event, pid, tid, comm, cpu, stack, samples, weight in self.rows])
        for stack in {row[6] for row in self.rows}:
            frames = self.stacks[stack]
            connection.execute("INSERT INTO stacks VALUES (?, ?, ?, ?, ?)", (stack, len(frames), *frames[0], ";".join(name for name, _ in reversed(frames))))
            connection.executemany("INSERT INTO frames VALUES (?, ?, ?, ?, 'user', 0)", [(stack, depth, *frame) for depth, frame in enumerate(frames)])
        connection.execute("INSERT INTO threads SELECT DISTINCT pid, tid, thread FROM samples")
        connection.execute("INSERT INTO events SELECT event, unit, sum(samples), sum(weight) FROM samples GROUP BY event")
        return connection


@pytest.fixture
def run(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key not in ("PAGER", "NO_COLOR", "FLAMEWIRE_AGENT")}
    environment |= {"XDG_DATA_HOME": str(tmp_path / "data"), "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def run(*words, code=0, **options):
        done = subprocess.run([BIN / "flamewire", *map(str, words)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
                              **({"stdin": subprocess.DEVNULL} | options))
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    run.environment = environment
    return run


@pytest.fixture
def query(run):
    """The rows of each statement."""
    def query(file, statements, **options):
        return [[tuple(row) for row in result["rows"]] for result in json.loads(run("sql", file, statements, "--json", **options))["results"]]

    return query


@pytest.fixture
def samples(tmp_path):
    samples = Samples(1)
    samples.path = tmp_path / "samples.txt"
    samples.path.write_text(samples.text)
    return samples


# Without an order, rows are compared as a set. No result has numbers of stacks.
STATEMENTS = """
SELECT count(*), sum(samples), sum(weight), min(weight), max(weight) FROM samples
SELECT time_ns, bucket_ns, elapsed_ns, event, unit, pid, tid, thread, cpu, samples, weight, function, module, file, line FROM samples
SELECT event, unit, samples, weight FROM events ORDER BY event
SELECT event, count(*), sum(weight) FROM samples GROUP BY event ORDER BY 2 DESC
SELECT function, module, sum(weight) FROM samples WHERE event = 'cycles' GROUP BY function, module ORDER BY 3 DESC, 1, 2 LIMIT 10
SELECT * FROM (SELECT thread, tid, sum(samples) AS n FROM samples GROUP BY tid) WHERE n > 100
SELECT tid, cpu, avg(weight) FROM samples WHERE event = 'cycles' AND cpu IN (1, 3) GROUP BY tid, cpu
SELECT pid, count(DISTINCT tid), count(DISTINCT cpu) FROM samples GROUP BY pid
SELECT count(*) FROM samples WHERE time_ns >= 5500000000 AND time_ns < 6000000000
SELECT count(*) FROM samples WHERE time_ns > 5500000000 AND time_ns <= 6000000000
SELECT count(*) FROM samples WHERE time_ns BETWEEN 5.5e9 AND 5999999999.5 AND tid = 72
SELECT count(*) FROM samples WHERE elapsed_ns = 0 OR elapsed_ns > 1000000000
SELECT elapsed_ns / 100000000 AS tenth, event, sum(samples) FROM samples GROUP BY 1, 2
SELECT count(*) FROM samples WHERE tid = '73'
SELECT count(*) FROM samples WHERE event = 'CYCLES' COLLATE NOCASE AND pid = 70
SELECT count(*) FROM samples WHERE event = 'nothing' OR pid = 99 OR wall_ns IS NOT NULL OR file IS NOT NULL
SELECT count(*) FROM samples WHERE function LIKE 'std::map%' AND module GLOB 'lib*'
SELECT thread, count(*) FROM samples WHERE thread IN ('it''s', 'gc') GROUP BY thread
SELECT max(frames), min(frames), count(*), sum(length(folded)) FROM stacks
SELECT folded, sum(samples), sum(weight) FROM samples JOIN stacks USING (stack_id) WHERE event = 'cycles' GROUP BY folded
SELECT f.depth, count(*), count(DISTINCT f.function) FROM frames f GROUP BY f.depth
SELECT s.event, s.time_ns, s.weight, f.depth, f.function, f.module FROM samples s JOIN frames f ON f.stack_id = s.stack_id WHERE s.cpu = 2
SELECT f.function, f.module, sum(w) FROM (SELECT stack_id, sum(weight) AS w FROM samples GROUP BY stack_id) JOIN (SELECT DISTINCT stack_id, function, module FROM frames) AS f USING (stack_id) GROUP BY 1, 2
SELECT a.function, b.function, sum(s.samples) FROM samples s JOIN frames a ON a.stack_id = s.stack_id JOIN frames b ON b.stack_id = a.stack_id AND b.depth = a.depth + 1 GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
SELECT count(*) FROM stacks s WHERE (SELECT count(*) FROM frames f WHERE f.stack_id = s.stack_id AND f.kind = 'user' AND f.inlined = 0) = s.frames
SELECT t.thread, t.pid, sum(s.weight) FROM threads t LEFT JOIN samples s ON s.tid = t.tid AND s.event = 'page-faults' GROUP BY t.tid
SELECT tid, time_ns, sum(weight) OVER (PARTITION BY tid ORDER BY time_ns RANGE UNBOUNDED PRECEDING) FROM samples WHERE event = 'cycles'
SELECT DISTINCT function FROM frames EXCEPT SELECT function FROM samples ORDER BY 1
WITH RECURSIVE steps(t) AS (SELECT 0 UNION ALL SELECT t + 200000000 FROM steps WHERE t < 1200000000) SELECT t, (SELECT total(samples) FROM samples WHERE elapsed_ns >= t AND elapsed_ns < t + 200000000) FROM steps
SELECT NULL, 9223372036854775807, -9223372036854775808, 0.1, 1e300, 3.0, 'é', ''
""".strip().splitlines()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_same_statement_on_another_engine(query, samples, statement):
    [found] = query(samples.path, statement)
    expected = samples.database().execute(statement).fetchall()
    assert expected
    if "ORDER BY" not in statement.rsplit(")", 1)[-1]:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected


def test_random_conditions_on_another_engine(query, samples):
    chance, database = random.Random(3), samples.database()
    values = {"time_ns": lambda: 5_000_000_000 + chance.randrange(160) * BUCKET_NS, "elapsed_ns": lambda: chance.randrange(160) * BUCKET_NS, "tid": lambda: chance.randint(69, 75),
              "pid": lambda: chance.choice(("70", "71", "70.0", "'71'")), "event": lambda: chance.choice(("'cycles'", "'page-faults'", "'x'"))}
    statements = []
    for _ in range(60):
        conditions = [f"{column} {chance.choice(('=', '=', '<', '<=', '>', '>=', '<>'))} {values[column]()}" for column in chance.sample(list(values), chance.randint(1, 3))]
        statements.append(f"SELECT count(*), total(weight) FROM samples WHERE {' AND '.join(conditions)}")
    found = query(samples.path, ";".join(statements))
    expected = [database.execute(statement).fetchall() for statement in statements]
    assert found == expected and len({tuple(rows) for rows in expected}) > 20


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "own.flw"
    subprocess.run([BIN / "flamewire", "record", "-q", "-F", "999", "-e", "cpu-clock,off-cpu", "--stat", "task-clock,context-switches", "-o", path,
                    "--", TESTS_BIN / "waits-workload", "1"], check=True, capture_output=True, timeout=120)
    return path


def test_functions_are_those_of_the_export(run, query, recorded, samples):
    for file in (recorded, samples.path):
        exported = json.loads(run("export", file, "--format", "json"))
        [functions, events] = query(file, "SELECT event, function, module, kind, file, line, self_samples, self_weight, total_samples, total_weight FROM functions;"
                                          "SELECT event, unit, samples, weight FROM events WHERE samples > 0")
        assert functions == [(event["name"], one["name"], one.get("module"), one["kind"], one.get("file"), one.get("line"), one["self_samples"], one["self_weight"],
                              one["samples"], one["weight"]) for event in exported["events"] for one in event["functions"]]
        assert events == [tuple(event[key] for key in ("name", "unit", "samples", "weight")) for event in exported["events"] if event["samples"]]
        # Added up from stacks and frames, without the query that the export uses.
        [added] = query(file, """WITH w AS (SELECT event, stack_id, sum(samples) AS n, sum(weight) AS weight FROM samples GROUP BY event, stack_id),
            once AS (SELECT DISTINCT w.event, w.stack_id, w.n, w.weight, f.function, f.module FROM w JOIN frames f USING (stack_id))
            SELECT event, function, module, sum(n), sum(weight) FROM once GROUP BY event, function, module""")
        assert sorted(added, key=repr) == sorted(((*row[:3], *row[8:]) for row in functions), key=repr)
        [folded] = query(file, "SELECT folded, sum(weight) FROM samples JOIN stacks USING (stack_id) WHERE event = (SELECT event FROM events) GROUP BY folded")
        lines = collections.Counter()
        for line in run("export", file, "--format", "collapsed", "--weights", "--event", exported["events"][0]["name"]).splitlines():
            lines[line.rsplit(" ", 1)[0].split(";", 1)[1]] += int(line.rsplit(" ", 1)[1])
        assert sum(weight for _, weight in folded) == sum(lines.values()) and len(folded) == len(lines)
        if file == recorded:
            assert dict(folded) == dict(lines)


def test_processes_and_counters_are_those_of_other_commands(run, query, recorded):
    metadata = json.loads(run("export", recorded, "--format", "json"))["metadata"]
    [processes, info, counters, states] = query(recorded, """
        SELECT pid, process, exe, command_line, cgroup FROM processes WHERE pid IN (SELECT pid FROM samples);
        SELECT name, value FROM info;
        SELECT counter, unit, sum(value) FROM counters WHERE tid IS NULL AND cpu IS NULL AND status = 'counted' GROUP BY counter;
        SELECT tid, sum(run_ns), sum(runnable_ns), sum(blocked_ns), sum(io_wait_ns), sum(preempted), sum(slept), sum(io_waits) FROM thread_states GROUP BY tid""")
    assert processes == [tuple(one[key] for key in ("pid", "comm", "exe", "command_line", "cgroup")) for one in metadata["processes"]]
    facts = dict(info)
    assert {key: facts[key] for key in ("target", "host", "arch", "kernel", "agent_version", "frequency_hz", "samples")} == {
        key: metadata[key] for key in ("target", "host", "arch", "kernel", "agent_version", "frequency_hz", "samples")}
    # stat --json has the sums, as it prints them.
    answer = json.loads(run("stat", "--input", recorded, "--json"))
    [group] = [one for one in answer["groups"] if "tid" not in one and "cpu" not in one]
    assert {name: (unit, value) for name, unit, value in counters} == {one["name"]: (one["unit"], one["value"]) for one in group["counters"] if one["status"] == "counted"}
    # The table of report --sched has a line for each thread, in ms.
    lines = [line for line in run("report", recorded, "--sched").splitlines() if ":" in line[:25] and "|" in line]
    table = {int(line.split(":", 1)[1].split()[0]): line.split(":", 1)[1].replace("|", " ").split()[1:] for line in lines}
    assert set(table) == {row[0] for row in states}
    for tid, *numbers in states:
        for ns, shown in zip(numbers[:4], table[tid][:4]):
            assert abs(ns / 1e6 - float(shown)) <= (0.05 if ns >= 100_000_000 else 0.0005) * 1.01
        assert [int(number) for number in table[tid][4:7]] == numbers[4:]


def test_times_are_those_of_the_clock(query, recorded):
    [[(started, start, first, wall, elapsed)]] = query(recorded, """SELECT (SELECT value FROM info WHERE name = 'started_ns'), (SELECT value FROM info WHERE name = 'start_ns'),
        time_ns, wall_ns, elapsed_ns FROM samples ORDER BY time_ns LIMIT 1""")
    assert wall - started == first - start == elapsed
    assert 0 <= recorded.stat().st_mtime_ns - wall < 120 * 10**9


def test_formats(run, samples):
    statements = "SELECT 1 AS one, NULL AS none, x'0aff' AS bytes, 'a,\"b' AS text, 2.0 AS real; SELECT event, -samples AS n FROM events ORDER BY event; SELECT 1 WHERE 0"
    faults, cycles = (sum(row[7] for row in samples.rows if row[1] == event) for event in ("page-faults", "cycles"))
    table = run("sql", samples.path, statements).splitlines()
    assert table == ["one  none  bytes    text  real", "  1  NULL  X'0aff'  a,\"b   2.0", "", "event           n", f"cycles       {-cycles}", f"page-faults  {-faults}", "", "1", "# no rows"]
    rows = list(csv.reader(io.StringIO(run("sql", samples.path, statements, "--csv"), newline="")))
    assert rows == [["one", "none", "bytes", "text", "real"], ["1", "", "X'0aff'", 'a,"b', "2.0"], [], ["event", "n"], ["cycles", str(-cycles)], ["page-faults", str(-faults)], [], ["1"]]
    assert json.loads(run("sql", samples.path, statements, "--json")) == {"results": [
        {"columns": ["one", "none", "bytes", "text", "real"], "rows": [[1, None, "X'0aff'", 'a,"b', 2.0]]},
        {"columns": ["event", "n"], "rows": [["cycles", -cycles], ["page-faults", -faults]]}, {"columns": ["1"], "rows": []}]}
    assert json.loads(run("sql", samples.path, "CREATE TABLE t (a)", "--json")) == {"results": []}
    # More rows than the layout of a table waits for.
    many = run("sql", samples.path, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n").split()
    assert many == ["i", *map(str, range(1, 5001))]
    assert "excludes" in run("sql", samples.path, "SELECT 1", "--json", "--csv", code=2)


def test_a_table_fits_the_terminal(run, samples, tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    statement = "SELECT folded, 12345678 AS n, function, 'é' || folded AS last FROM stacks ORDER BY length(folded) DESC, folded LIMIT 5"
    subprocess.run([BIN / "flamewire", "sql", samples.path, statement, "--no-pager", "--color", "never"], env=run.environment, cwd=tmp_path, stdout=theirs,
                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True, timeout=120)
    os.close(theirs)
    text = b""
    while (part := read_terminal(ours)):
        text += part
    lines = text.decode().splitlines()
    whole = samples.database().execute(statement).fetchall()
    assert len(lines) == 6 and max(map(len, lines)) == 60
    for line, (folded, *_) in zip(lines[1:], whole, strict=True):
        head, tail = line.split("  ")[0].split("…")
        assert head and folded.startswith(head) and folded.endswith(tail) and "  12345678  " in line


def read_terminal(descriptor):
    """Nothing at the end: Linux reports it as an error."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_names_do_not_control_the_terminal(run, tmp_path):
    bad = "bad\x1b[2J\x9b2J\u202e=1"
    (tmp_path / "bad.txt").write_text(f"app 1/1 [000] 1.000000: 1 cycles:\n\t 1000 {bad}+0x1 (/bin/app)\n\n")
    for option in ((), ("--csv",)):
        assert not set("\x1b\x9b\u202e") & set(run("sql", "bad.txt", f"SELECT function, '{bad}' AS '{bad}' FROM samples", *option))
    assert not set("\x1b\x9b\u202e") & set(run("sql", "bad.txt", f"SELECT '{bad}' FROM \"{bad}\"", code=1))


def test_schema_names_every_column(run, query, samples):
    listed = json.loads(run("sql", "--json"))["results"][0]["rows"]
    assert run("sql", samples.path, "--json") == run("sql", "--json")
    assert all(text for *_, text in listed)
    text = run("sql")
    tables = sorted({row[0] for row in listed})
    for table, columns in zip(tables, query(samples.path, ";".join(f"PRAGMA table_info({table})" for table in tables)), strict=True):
        assert [(name, type) for _, name, type, *_ in columns] == [(column, type) for name, column, type, *_ in listed if name == table]
        assert f"\n{table}  " in "\n" + text and all(f"\n  {column[1]} " in text for column in columns)
    assert "there is no file" in run("sql", "nothing", code=1)


def test_statements_come_from_an_argument_or_standard_input(run, samples):
    run("import", samples.path)
    # Without FILE, the newest session is meant.
    assert run("sql", "SELECT 1 + 1") == run("sql", samples.path, "-", stdin=None, input="SELECT 1 + 1; -- done") == "1 + 1\n    2\n"
    assert "both" in run("sql", "-", "-", code=1)
    assert run("sql", "-", "SELECT count(*) AS n FROM events", stdin=None, input=samples.text) == "n\n2\n"


def test_a_database_file_has_the_same_tables(run, query, samples, recorded, tmp_path):
    for number, file in enumerate((recorded, samples.path)):
        written = tmp_path / f"out{number}.sqlite"
        assert run("sql", file, "-o", written.name) == ""
        database = sqlite3.connect(written)
        tables = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
        assert tables == sorted({row[0] for row in json.loads(run("sql", "--json"))["results"][0]["rows"]})
        for read in ("SELECT * FROM {}", "SELECT name, type FROM pragma_table_info('{}')"):
            for table, rows in zip(tables, query(file, ";".join(read.format(table) for table in tables)), strict=True):
                # An imported file begins at the time of its import, so facts about it differ.
                assert (table, file) == ("info", samples.path) or database.execute(read.format(table)).fetchall() == rows, table
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        before = written.read_bytes()
        assert "exists" in run("sql", file, "-o", written.name, code=1) and written.read_bytes() == before
    assert "takes no statements" in run("sql", samples.path, "SELECT 1", "-o", "new", code=1) and "No such file" in run("sql", samples.path, "-o", "no/new", code=1)
    # No file can grow beyond 8 KiB, as on a disk that is full.
    limited = subprocess.run(["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "bash", BIN / "flamewire", "sql", recorded, "-o", "full"], env=run.environment, cwd=tmp_path,
                             capture_output=True, text=True, timeout=120)
    assert limited.returncode == 1 and limited.stderr.startswith("flamewire sql: cannot write full: ") and limited.stderr.count("\n") == 1, limited
    assert not (tmp_path / "new").exists() and not (tmp_path / "full").exists()


@pytest.mark.parametrize("statement, message", [
    ("SELECT * FROM sample", "no such table: sample, at line 1, column 15; the tables are counters,"),
    ("SELECT fuction\nFROM samples", "no such column: fuction, at line 1, column 8; samples has time_ns,"),
    ("SELECT 1;\nSELEC 2", 'near "SELEC": syntax error, at line 2, column 1'),
    ("ATTACH 'x.db' AS x", "ATTACH or VACUUM is not allowed: statements only read the profile"),
    ("PRAGMA journal_mode = WAL", "PRAGMA is not allowed"),
    ("INSERT INTO samples VALUES (1)", "table samples may not be modified"),
    ("VACUUM INTO 'x.db'", "is not allowed"),
    ("SELECT load_extension('x.so')", "load_extension is not allowed"),
])
def test_mistakes_are_one_sentence(run, samples, tmp_path, statement, message):
    before = set(tmp_path.iterdir())
    error = run("sql", samples.path, statement, code=1)
    assert error.startswith("flamewire sql: ") and message in error and error.count("\n") == 1
    assert set(tmp_path.iterdir()) == before


def test_ctrl_c_stops_a_statement(run, samples, tmp_path):
    """The first statement prints so much that the pipe is full before the second one, which has no end."""
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
    process = subprocess.Popen([BIN / "flamewire", "sql", samples.path, f"{count} LIMIT 200000) SELECT i FROM n; {count}) SELECT count(*) FROM n"], env=run.environment,
                               cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.read(100)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=120)
    assert process.returncode == 1 and error == b"flamewire sql: interrupted\n"
    assert output.endswith(b"\n")


def test_a_reader_that_ends_early_is_not_an_error(run, samples, tmp_path):
    done = subprocess.run(f"'{BIN}/flamewire' sql '{samples.path}' 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n' | head -2; echo ${{PIPESTATUS[0]}}",
                          shell=True, executable="/bin/bash", env=run.environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["i", "1", "0"] and done.stderr == ""
