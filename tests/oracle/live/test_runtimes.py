"""The content of profiles of runtimes, without and with the option that provides names: the rows of the table in docs/processes/runtimes.md. test_jit.py
and test_go.py cover Node, Java, Python 3.12 and Go."""
import shutil

import bounds
import pytest
from flamewire import Tree
from jit import samples_of, unknown_jit_share

ROOTED = bounds.Check("samples below the interpreter's main loop", times=3)
NAMES = bounds.Check("samples of JIT code with or without names", times=3)

PYTHON = """
import sys, time
def hot(n):
    s = 0
    for i in range(n):
        s = (s * 31 + i) % 1000003
    return s
while time.process_time() < float(sys.argv[1]):
    hot(20000)
"""
PERL = """
sub hot { my $s = 0; for my $i (0 .. $_[0]) { $s = ($s * 31 + $i) % 1000003 } $s }
while ((times)[0] < $ARGV[0]) { hot(20000) }
"""
PHP = """<?php
function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s * 31 + $i) % 1000003; return $s; }
while (getrusage()['ru_utime.tv_sec'] < (int) $argv[1]) hot(20000);
"""
# So little code that all samples have a few addresses.
LUA = """
local function hot(n) local a = 1; for i = 1, n do a = (a * 31 + i) % 1000003 end; return a end
while os.clock() < tonumber(arg[1]) do hot(20000) end
"""
# PHP would not compile a file that was just written.
PHP_JIT = ["-d", "opcache.enable_cli=1", "-d", "opcache.file_update_protection=0", "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=tracing"]


def record(start, tmp_path, program, source, *options):
    """(session, tree) of two seconds of CPU time, without the kernel."""
    found = shutil.which(program)
    assert found, f"{program} is needed: ./dev test installs it"
    script, path = tmp_path / "script", tmp_path / "runtime.flw"
    script.write_text(source, encoding="utf-8")
    agent = start.agent("--output", path, "--frequency", 499, "--events", "cpu-clock:u", "--", found, *options, script, 2)
    assert agent.wait(120) == 0, agent.err
    server = start.server("--import", path)
    session = server.wait_ended()
    return session, Tree(server.get("/api/flamegraph", min_share=0))


def unnamed_code(session):
    return [notice for notice in session["notices"] if notice["code"] == "jit-names-missing"]


@pytest.mark.recording
@pytest.mark.parametrize("program, source, loop", [
    pytest.param("/usr/bin/python3", PYTHON, "_PyEval_EvalFrameDefault", id="python"),
    pytest.param("perl", PERL, "Perl_runops_standard", id="perl"),
    pytest.param("php", PHP, "execute_ex", id="php"),
])
def test_interpreters_show_their_own_functions(start, tmp_path, program, source, loop):
    session, tree = record(start, tmp_path, program, source)
    shares = tree.shares()
    # Startup and exit take part of the time.
    ROOTED.at_least(samples_of(tree) * shares.get(loop, 0), samples_of(tree), 0.8, detail=loop)
    assert shares.get("[incomplete]", 0) < 0.05, shares
    assert not unnamed_code(session)


@pytest.mark.recording
@pytest.mark.parametrize("program, source, options, remedy", [
    pytest.param("php", PHP, PHP_JIT, "start it with php -d opcache.jit_debug=16", id="php"),
    pytest.param("luajit", LUA, [], "build it with -DLUAJIT_USE_PERFTOOLS", id="luajit"),
])
def test_compiled_code_without_names_has_the_remedy_of_its_runtime(start, tmp_path, program, source, options, remedy):
    session, tree = record(start, tmp_path, program, source, *options)
    NAMES.at_least(samples_of(tree) * unknown_jit_share(tree), samples_of(tree), 0.8, detail=program)
    assert [notice["remedy"] for notice in unnamed_code(session)] == [remedy]


@pytest.mark.recording
def test_php_publishes_names(start, tmp_path):
    session, tree = record(start, tmp_path, "php", PHP, *PHP_JIT, "-d", "opcache.jit_debug=16")
    NAMES.at_least(samples_of(tree) * sum(share for name, share in tree.self_shares().items() if "$hot$" in name), samples_of(tree), 0.8, detail=tree.self_shares())
    assert not unnamed_code(session)
