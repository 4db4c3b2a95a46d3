"""Folded stacks with decimals, with two columns and with invalid lines, compared with flamegraph.pl (from Debian's libdevel-nytprof-perl)."""

import collections
import json
import random
import re
import subprocess

import pytest
from flamewire import BIN
from test_imports import upload

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
FACTOR = 10**6  # flamegraph.pl prints whole numbers only, so it multiplies by this


def stacks(seed, count=200):
    generator = random.Random(seed)
    return sorted({";".join(["main", *(f"layer{depth}_{generator.randrange(4)}" for depth in range(generator.randrange(1, 6)))]) for _ in range(count)})


def drawn(path, factor=1):
    """Frame -> width times `factor`, frame -> its own change, and the messages of flamegraph.pl."""
    done = subprocess.run(["perl", FLAMEGRAPH, "--minwidth=0", f"--factor={factor}", path], check=True, capture_output=True, text=True, timeout=60)
    widths, changes = collections.Counter(), collections.Counter()
    total = int(re.search(r"<title>all \(([\d,]+) ", done.stdout)[1].replace(",", ""))
    for name, width, change in re.findall(r"<title>(\w+) \(([\d,]+) samples, [\d.]+%(?:; ([+-]?[\d.]+)%)?\)", done.stdout):
        if name == "all":
            continue
        widths[name] += int(width.replace(",", ""))
        changes[name] += float(change or 0) / 100 * total
    return widths, changes, done.stderr


def flamewire(*words, code=0):
    done = subprocess.run([BIN / "flamewire", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    return done.stdout


def weights(path):
    """Frame -> weight, from our own folded stacks."""
    found = collections.Counter()
    for line in flamewire("export", path, "--format", "collapsed", "--weights").splitlines():
        stack, number = line.rsplit(" ", 1)
        for name in stack.split(";"):
            found[name] += int(number)
    return found


@pytest.mark.parametrize("decimals, unit", [(3, "thousandths"), (2, "thousandths"), (5, "millionths")])
def test_decimals_are_kept(tmp_path, decimals, unit):
    path, generator = tmp_path / "stacks", random.Random(decimals)
    path.write_text("".join(f"{stack} {generator.random() * 10 ** (1 - generator.randrange(decimals)):.{decimals}f}\n" for stack in stacks(1)))
    widths, _, _ = drawn(path, FACTOR)
    scale = {"thousandths": 1000, "millionths": 1}[unit]
    ours = weights(path)
    assert len(widths) > 15 and {name: weight * scale for name, weight in ours.items()} == {name: width for name, width in widths.items() if width}
    imported = json.loads(flamewire("import", path, "--data-dir", tmp_path / "data", "--json"))[0]
    assert any(unit in notice for notice in imported["notices"]), imported


def two_columns(path, seed=5):
    generator = random.Random(seed)
    path.write_text("".join(f"{stack} {generator.choice((0, generator.randrange(1000)))} {generator.randrange(1, 1000)}\n" for stack in stacks(seed)))


def test_two_columns_are_compared(tmp_path):
    path = tmp_path / "stacks"
    two_columns(path)
    widths, changes, _ = drawn(path)
    answer = json.loads(flamewire("diff", path, "--json"))
    assert answer["after"]["samples"] == widths["main"]
    of_function = {one["name"]: one for one in answer["functions"]}
    assert len(of_function) > 15 and set(of_function) == set(widths)
    for name, one in of_function.items():
        assert one["total"]["after_samples"] == widths[name]
        # flamegraph.pl prints changes with two digits of a percent.
        change = one["self"]["after_samples"] - one["self"]["before_samples"]
        assert abs(change - changes[name]) <= widths["main"] * 5e-5 * len([stack for stack in stacks(5) if name in stack]), name
    single = subprocess.run([BIN / "flamewire", "diff", "-"], input="a;b 1\n", capture_output=True, text=True, timeout=60)
    assert single.returncode == 1 and "only one column of counts: specify AFTER" in single.stderr, single


def test_the_two_sides_are_threads_that_the_server_compares(start, tmp_path):
    path = tmp_path / "stacks"
    two_columns(path)
    server = start.server()
    done, _ = upload(server, path.read_bytes(), "stacks.diff")
    assert done["state"] == "done", done
    session = done["session"]
    assert "import-two-sides" in {notice["code"] for notice in server.session(session)["notices"]}
    answer = server.get("/api/diff", session=session, tid=2, base_session=session, base_tid=1)
    lines = [line.rsplit(" ", 2) for line in path.read_text().splitlines()]
    assert answer["base"]["total"]["samples"] == sum(int(before) for _, before, _ in lines)
    assert answer["total"]["samples"] == sum(int(after) for _, _, after in lines)


def test_invalid_lines_are_counted(tmp_path):
    path = tmp_path / "stacks"
    path.write_text("# written by a script\nmain;a 3\nno number\nmain;b;c 4\n")
    widths, _, output = drawn(path)
    assert output == "Ignored 2 lines with invalid format\n"  # including the comment
    assert weights(path) == widths
    imported = json.loads(flamewire("import", path, "--data-dir", tmp_path / "data", "--json"))[0]
    assert imported["notices"][0] == "1 of 3 lines are not folded stacks and were skipped. The first is line 3."


@pytest.mark.parametrize("table", ["1 2\n3 4\n", "1 2 3\n4 5 6\n", "12:30:01 0.5 1e-5\n12:30:02 0.25 -3\n", "0.5\t7\n1.5\t8\n"])
def test_a_table_of_numbers_is_not_folded_stacks(tmp_path, table):
    (tmp_path / "table").write_text(table)
    flamewire("report", tmp_path / "table", code=1)
