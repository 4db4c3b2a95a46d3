"""The command line of `./dev bench`, and its handling of invalid figures. The benches themselves run under ctest as bench_NAME."""
import importlib.util
import math
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def bench(monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_run", HERE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SMOKE", True)
    return module


def run(*arguments):
    return subprocess.run([sys.executable, HERE / "run.py", *arguments], capture_output=True, text=True, timeout=60)


def test_help_lists_one_bench_per_line(bench):
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.split("benches:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == list(bench.BENCHES)
    assert all(len(line.split()) > 4 for line in lines)
    assert "--write" in done.stdout and "--smoke" in done.stdout


@pytest.mark.parametrize("arguments, sentence", [
    (["nothing", "agent"], "no bench is named nothing. The benches are: cli, agent,"),
    (["a", "b"], "no bench is named a or b."),
    (["agent", "--smoke", "--write"], "--write cannot be combined with --smoke, whose figures mean nothing. Omit one of them."),
])
def test_mistakes_are_one_sentence_and_run_nothing(arguments, sentence):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"bench: {sentence}") and done.stderr.count("\n") == 1


def test_each_bench_has_a_smoke_run(bench):
    listed = re.search(r"^set\(benches ([^)]*)\)", (HERE / "CMakeLists.txt").read_text(), re.M)[1].split()
    assert listed == sorted(bench.BENCHES)


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "12"])
def test_a_figure_is_a_finite_number(bench, value):
    with pytest.raises(SystemExit, match="cost: .* is not a finite number"):
        bench.result("cost", value, 1)
    assert bench.RESULTS == []


def test_a_bench_reports_figures(bench, monkeypatch):
    monkeypatch.setitem(bench.BENCHES, "silent", lambda directory: None)
    with pytest.raises(SystemExit, match="silent reported no figure"):
        bench.run_bench("silent")
    monkeypatch.setitem(bench.BENCHES, "reporting", lambda directory: bench.result("cost", 2, None, "ms"))
    bench.run_bench("reporting")
    assert bench.RESULTS == [("cost", 2, "ms", None, "")]


@pytest.mark.parametrize("line", ['{"figure": "cost", "value": , "bar": null}', '{"figure": "cost", "value": NaN}', '{"figure": "cost", "value": nan}'])
def test_lines_of_a_program_are_json_with_numbers(bench, monkeypatch, tmp_path, line):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    with pytest.raises((ValueError, SystemExit)):
        bench.bench_program(tmp_path, program)
    program.write_text('#!/bin/sh\necho "$1" >&2\nexit 1\n')
    with pytest.raises(SystemExit, match="program failed"):
        bench.bench_program(tmp_path, program)
    program.write_text('#!/bin/sh\necho text\necho \'{"figure": "cost", "value": 1.5, "unit": "ns", "bar": 3, "peer": "other"}\'\n')
    bench.bench_program(tmp_path, program)
    assert bench.RESULTS == [("cost", 1.5, "ns", 3, "other")]
