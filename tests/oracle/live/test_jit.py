"""JIT code has the names that the program itself published, from the time when it did so, and the same names as in `perf`."""
import os
import pathlib
import shutil
import subprocess
import time

import bounds
import pytest
from flamewire import TESTS_BIN, Tree, cpu_seconds, share_of, wait_until
from jit import JIT, is_of, of_function, samples_of, self_shares, unknown_jit_share
from other_root import copy_with_libraries, loaded_child
from test_shares import ENOUGH, FREQUENCY, PERF, perf_profile

UNNAMED = bounds.Check("samples of JIT code without a name", times=8)
OWN = bounds.Check("samples in the function that takes the time", times=8)
PEER = bounds.Check("shares of compiled functions as perf sees them", times=3)
TOTAL = bounds.Check("samples, ours and perf's", times=1)

# Each function has its own code.
NO_INLINING = "--no-turbo-inlining"
# Rounds of various lengths: with equal ones, a sampler with a steady rate would hit the same part repeatedly for a while.
HOT = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) ^ i; return s; }
function warm(n) { let s = 0; for (let i = 0; i < n; i++) s += (i * 7) % 3; return s; }
function round() { const n = 100000 + 200000 * Math.random() | 0; return hot(2 * n) + warm(n); }
let x = 0;
// Measured in CPU time, so that starting is a small part of it even with other load.
const begin = process.cpuUsage();
while (process.cpuUsage(begin).user < 1e6 * process.argv[2]) x += round();
if (x === 1) console.log(x);
"""


@pytest.fixture(autouse=True)
def remove_new_perf_maps():
    """Perf maps are not removed automatically. This removes the maps of programs that a test started."""
    maps = pathlib.Path("/tmp")
    before = set(maps.glob("perf-*.map"))
    yield
    for left in set(maps.glob("perf-*.map")) - before:
        command = pathlib.Path("/proc", left.stem.removeprefix("perf-"), "cmdline")
        # A process that was not reaped has an empty command line.
        if not command.exists() or not command.read_bytes():
            left.unlink(missing_ok=True)


def check_named(tree):
    UNNAMED.at_most(samples_of(tree) * unknown_jit_share(tree), samples_of(tree), 0.005)


def check_own(tree, share, least):
    OWN.at_least(samples_of(tree) * share, samples_of(tree), least, detail=self_shares(tree).most_common(5))


def node(tmp_path, source):
    program = shutil.which("node")
    assert program, "node is needed: apt-get install nodejs"
    script = tmp_path / "program.js"
    script.write_text(source)
    return program, script


@pytest.mark.recording
@pytest.mark.parametrize("options", [["--perf-basic-prof"], ["--perf-prof"], ["--perf-prof", "--perf-prof-unwinding-info"]], ids=" ".join)
def test_node_from_its_start(start, tmp_path, options):
    """A launched Node program: its hot function is at the top by name, less than 1 % is unknown JIT code, and no stack ends in it."""
    program, script = node(tmp_path, HOT)
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--", program, *options, NO_INLINING, script, 3, cwd=tmp_path)
    assert agent.wait(60) == 0, agent.err
    session = server.wait_ended(seconds=60)
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    shares = self_shares(tree)
    top = shares.most_common(1)[0]
    assert is_of(top[0], "hot"), shares.most_common(5)
    check_own(tree, top[1], 0.45)
    kinds = {kind for name, kind, weight in zip(tree.names, tree.kind, tree.self_weight) if weight and is_of(name, "hot")}
    assert kinds == {JIT}
    check_named(tree)
    module = next(module for module in session["modules"] if module["kind"] == "jit")
    assert module["state"] == "recorded" and module["name"] == "[jit]"
    stacks = server.get(f"/api/export/session/{session['id']}", format="collapsed").decode().splitlines()
    # The outermost frames may be deeper than the copy. Everything in the copy is unwound.
    ending = [stack for stack in stacks if (frames := stack.rpartition(" ")[0].split(";"))[1] == "[incomplete]" and any(is_of(frame, "hot") for frame in frames)]
    assert not ending, ending


@pytest.mark.recording
def test_node_like_perf(start, tmp_path):
    """The same running process at the same time: its functions, compiled long before, as `perf record` names them."""
    program, script = node(tmp_path, HOT)
    target = start.process("node", [program, "--perf-basic-prof", NO_INLINING, script, 600], cwd=tmp_path)
    wait_until(lambda: cpu_seconds(target.pid) > 1.5, 60, "code that is compiled")
    server = start.server("--no-inline")
    data, enough = tmp_path / "perf.data", tmp_path / "enough"
    os.mkfifo(enough)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target.pid, "--frequency", FREQUENCY, "--events", "cpu-clock", "--unwind", "fp")
    wait_until(lambda: server.sessions(), 20, "a session")
    perf = start.process("perf", [PERF, "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", FREQUENCY, "--call-graph", "fp", "-p", target.pid, "-o", data, "--", "cat", enough])
    before = cpu_seconds(target.pid)
    wait_until(lambda: cpu_seconds(target.pid) > before + ENOUGH / FREQUENCY, 200, "enough CPU time")
    enough.write_bytes(b"")
    assert perf.wait(60) == 0, perf.err
    assert agent.stop() == 0
    start_s = server.wait_ended()["start_ns"] / 1e9
    functions = ("hot", "warm", "round")

    def short_name(name):
        return next((function for function in functions if is_of(name, function)), name)

    samples, _, first, last, theirs = perf_profile(data, short_name)
    answer = server.get("/api/flamegraph", min_share=0, start=(first - start_s) * 1000, end=(last - start_s) * 1000)
    tree = Tree(answer)
    # The range is cut at buckets of 10 ms, at both ends, on each of at most two CPUs.
    TOTAL.same_total(answer["total"]["samples"], samples, edges=4 * FREQUENCY * 0.01)
    check_named(tree)
    tree.names = [short_name(name) for name in tree.names]
    ours = tree.shares()
    for function in functions:
        assert theirs[function] > 0.1 * samples, (function, ours, theirs)
        PEER.same(samples_of(tree) * ours.get(function, 0), samples_of(tree), theirs[function], samples, detail=function)


PAGE = """
<script>
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) ^ i; return s; }
let x = 0;
function round() { for (let i = 0; i < 20; i++) x += hot(100000 + 200000 * Math.random() | 0); setTimeout(round); }
round();
</script>
"""


def renderer_of(page, browser):
    """The process that runs the page, after it has written a map of its compiled functions."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            if b"--type=renderer" in arguments and parent == browser.pid and f"hot {page.as_uri()}" in pathlib.Path(f"/tmp/perf-{folder.name}.map").read_text(encoding="utf-8"):
                return int(folder.name)
        except OSError:
            pass
    return None


@pytest.mark.recording
def test_chromium(start, tmp_path):
    """With the option in the table of runtimes, the functions of a page have names in every optimization state of V8."""
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    browser = start.process("chromium", ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                                         "--disable-sync", "--no-zygote", "--remote-debugging-port=0", f"--user-data-dir={tmp_path / 'profile'}", f"--js-flags=--perf-basic-prof {NO_INLINING} --no-maglev-inlining", page.as_uri()], cwd=tmp_path)
    renderer = wait_until(lambda: renderer_of(page, browser), 120, "the page")
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", renderer, "--frequency", 999)
    wait_until(lambda: server.sessions(), 20, "a session")
    used = cpu_seconds(renderer)
    wait_until(lambda: cpu_seconds(renderer) > used + 2, 120, "enough samples")
    assert agent.stop() == 0
    browser.stop()
    server.wait_ended()
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_own(tree, of_function(self_shares(tree), "hot"), 0.7)
    check_named(tree)


def test_names_come_while_the_target_sleeps(start, tmp_path):
    """The program ran for less than one round of the agent. Names must not need a later sample."""
    program, script = node(tmp_path, HOT.replace("process.argv[2]", "0.1") + "setTimeout(() => {}, 60000);")
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 4999, "--", program, "--perf-basic-prof", NO_INLINING, script, cwd=tmp_path)
    wait_until(lambda: server.sessions(), 20, "a session")

    def all_named():
        tree = Tree(server.get("/api/flamegraph", min_share=0))
        return tree.weight and of_function(tree.shares(), "hot") > 0.02 and unknown_jit_share(tree) < 0.005

    wait_until(all_named, 10, "names")
    agent.stop()


@pytest.mark.recording
def test_a_map_that_comes_late(start, tmp_path):
    """Without names, one message with a remedy is in the list of modules. Once a map exists, all earlier samples have names."""
    server = start.server()
    program, script = node(tmp_path, HOT)
    target = start.process("node", [program, script, 600], cwd=tmp_path)
    map_file = pathlib.Path(f"/tmp/perf-{target.pid}.map")
    # The start of node itself is not JIT code.
    wait_until(lambda: cpu_seconds(target.pid) > 1, 60, "code that is compiled")
    try:
        agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target.pid, "--frequency", 999)

        def jit_module():
            modules = [row["module"] for row in server.get("/api/modules")["modules"] if row["module"]["kind"] == "jit"] if server.sessions() else []
            return modules[0] if modules and modules[0]["problem"].startswith("node") else None

        module = wait_until(jit_module, 30, "the sentence about names")
        assert module["state"] == "unnamed"
        assert module["problem"] == f"node (process {target.pid}) runs code that it compiled itself, and there is no {map_file}: that code has no names"
        assert module["remedy"] == "start it with node --perf-basic-prof"
        assert next(notice for notice in server.only_session()["notices"] if notice["code"] == "jit-names-missing")["remedy"] == module["remedy"]
        # The code is in executable memory without a file.
        ranges = [line.split()[0].split("-") for line in pathlib.Path(f"/proc/{target.pid}/maps").read_text(encoding="ascii").splitlines() if "x" in line.split()[1] and len(line.split()) == 5]
        map_file.write_text("".join(f"{begin} {int(end, 16) - int(begin, 16):x} all_of_it\n" for begin, end in ranges), encoding="ascii")
        wait_until(lambda: server.only_session()["modules"] and next(m for m in server.only_session()["modules"] if m["kind"] == "jit")["state"] == "recorded", 30, "names")
        wait_until(lambda: not any(notice["code"] == "jit-names-missing" for notice in server.only_session()["notices"]), 10, "the end of the notice")
        assert agent.stop() == 0
        server.wait_ended()
        tree = Tree(server.get("/api/flamegraph", min_share=0))
        check_own(tree, share_of(tree.shares(), "all_of_it"), 0.92)
        check_named(tree)
    finally:
        map_file.unlink(missing_ok=True)


JAVA = """
public class Hot {
    static double hot(int n) { double s = 0; for (int i = 0; i < n; i++) s += Math.sqrt(i) * i; return s; }
    public static void main(String[] a) {
        double x = 0;
        for (long end = System.currentTimeMillis() + 60000; System.currentTimeMillis() < end;) x += hot(100000);
        System.out.println(x);
    }
}
"""


@pytest.mark.recording
def test_java_with_a_requested_map(start, tmp_path):
    """A JVM without any option for names: a notice has the remedy. The test requests a map during the recording."""
    assert shutil.which("javac") and shutil.which("jcmd"), "a JDK is needed: ./dev test installs it"
    (tmp_path / "Hot.java").write_text(JAVA)
    subprocess.run(["javac", "Hot.java"], cwd=tmp_path, check=True)
    target = start.process("java", ["java", "-XX:+PreserveFramePointer", "-cp", tmp_path, "Hot"])
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target.pid, "--frequency", 499)

    def remedies():
        return [notice["remedy"] for notice in server.only_session()["notices"] if notice["code"] == "jit-names-missing"] if server.sessions() else []

    (remedy,) = wait_until(remedies, 60, "the notice")
    asked = f"jcmd {target.pid} Compiler.perfmap"
    assert remedy.startswith(f"run {asked} (JDK 17 or later), or start it with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"), remedy
    wait_until(lambda: cpu_seconds(target.pid) > 3, 60, "code that is compiled")
    subprocess.run(asked.split(), check=True, capture_output=True, timeout=120)
    wait_until(lambda: not remedies(), 30, "names")
    used = cpu_seconds(target.pid)
    wait_until(lambda: cpu_seconds(target.pid) > used + 1.5, 60, "more samples")
    assert agent.stop() == 0
    server.wait_ended()
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    top = self_shares(tree).most_common(1)[0]
    assert "Hot" in top[0] and "hot" in top[0], top
    check_own(tree, top[1], 0.5)
    target.stop()


def python_with_perf():
    """A Python that can publish the names of its code (3.12 and later), or None."""
    for minor in range(12, 16):
        program = shutil.which(f"python3.{minor}")
        if program and subprocess.run([program, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"], capture_output=True, check=False).returncode == 0:
            return program
    return None


@pytest.mark.recording
@pytest.mark.skipif(python_with_perf() is None, reason="no Python 3.12 or later with -X perf: Python's map is not tested")
def test_python(start, tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import time\n\ndef hot(n):\n    s = 0\n    for i in range(n):\n        s += i * i\n    return s\n\nend = time.time() + 3\nwhile time.time() < end:\n    hot(20000)\n")
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--", python_with_perf(), "-X", "perf", script)
    assert agent.wait(60) == 0, agent.err
    server.wait_ended(seconds=60)
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_own(tree, share_of(tree.shares(), f"py::hot:{script}"), 0.82)
    check_named(tree)


@pytest.mark.recording
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces, chroot and files of others need root; CI runs as root")
def test_another_root_and_namespace(start, tmp_path):
    """A target that is process 1 of its own namespace with another root. Its map is the file in its own root, not this machine's file with that name."""
    root = tmp_path / "root"
    copy_with_libraries(TESTS_BIN / "jit-workload", root, "/inside")
    (root / "tmp").mkdir()
    launcher = start.process("unshare", ["unshare", "--fork", "--pid", "--mount", "--propagation", "unchanged", "--kill-child", "chroot", root, "/inside", "map", 30000])
    target = loaded_child(launcher, "inside", TESTS_BIN / "jit-workload")
    wait_until(lambda: (root / "tmp" / "perf-1.map").exists(), 10, "its map")
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target, "--frequency", 999)
    wait_until(lambda: server.sessions(), 20, "a session")
    time.sleep(2)
    assert agent.stop() == 0
    server.wait_ended()
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    check_own(tree, self_shares(tree)["first_function"], 0.9)
    check_named(tree)
