"""docs/troubleshooting/*.md: every entry is provoked, and the programs print its sentence. Changes to sysctls are undone at the end. Entries from
which root is exempt run as another user, and a filter of system calls replaces features that this kernel lacks."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest
from flamewire import BIN, ROOT, TESTS_BIN, Tree, free_port, wait_until
from sanitized import plain_build_only
from session_files import record_ends
from sysctls import sysctl
from test_disk_faults import fill
from test_pairing import OWN, WRONG

PROGRAM = TESTS_BIN / "shares-workload"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
UNKNOWN = 4  # the kind of a frame
WITHOUT_PERF = ROOT / "tests" / "harness" / "without_perf_events.py"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="switching to another user and changing sysctls need root; CI runs as root")


def entries():
    """title -> sentence"""
    found = {}
    for page in sorted((ROOT / "docs/troubleshooting").glob("*.md")):
        for part in re.split(r"^##+ ", page.read_text(), flags=re.M)[1:]:
            title, text = part.split("\n", 1)
            sentences = re.findall(r"^```text\n(.*?)\n```$", text, re.M | re.S)
            if not text.strip():
                continue  # the heading of a group
            assert len(sentences) == 1 and "\n" not in sentences[0], f"{title}: an entry has one sentence, in one line"
            assert title not in found, title
            found[title] = sentences[0]
    return found


def listed():
    """The titles of the entries that docs/troubleshooting.md links to."""
    return re.findall(r"\| \[([^\]]+)\]\(troubleshooting/\w+\.md#\S+\) \|$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)


def pattern(sentence):
    parts = re.split(r"(<number>|<text>)", sentence)
    return "".join({"<number>": r"\d+", "<text>": r"\S.*?"}.get(part, re.escape(part)) for part in parts)


class Place:
    """Where an entry is provoked: a folder, an agent that any user can run, and programs that end with the test."""

    def __init__(self, start, folder):
        self.start = start
        self.folder = pathlib.Path(folder)
        self.agent = self.folder / "flamewire-agent"
        shutil.copy(BIN / "flamewire-agent", self.agent)
        self.agent.chmod(0o755)

    def run(self, *arguments, nobody=False, before=()):
        """Runs the agent. Returns its exit code in the first line, then its output."""
        user = NOBODY if nobody else ()
        done = subprocess.run([str(word) for word in (*before, *user, self.agent, *arguments)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd="/", check=False)
        return f"{done.returncode}\n{done.stdout}{done.stderr}"

    def doctor(self, code=1, **options):
        output = self.run("--doctor", **options)
        assert output.startswith(f"{code}\n"), output
        for line in output.splitlines()[2:]:
            assert re.match(r"(ok |limited |missing )", line), line
            assert line.startswith("limited") == (". Try: " in line), line
        return output

    def dial(self, host, port, *arguments, before=()):
        agent = self.start.process("dialling", [*before, self.agent, "--server", host, "--port", port, *arguments])
        output = wait_until(lambda: re.search(r"^.*no server at.*$", agent.err, re.M), 30, "a message about the server")[0]
        agent.stop()
        return output

    def record(self, server, program, *arguments):
        """Records a program until it exits. Returns the session."""
        agent = self.start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 499, *arguments, "--", program, 1)
        assert agent.wait(60) == 0, agent.err
        return server.wait_ended()

    def module(self, program, *options):
        """Problem and remedy of the program's file, from a server with these options."""
        server = self.start.server(*options)
        self.record(server, program, "--no-module-upload")

        def problem():
            for module in (row["module"] for row in server.get("/api/modules")["modules"]):
                if module["path"] == str(program) and module.get("problem"):
                    return f"{module['problem']}: {module['remedy']}"
            return None

        return wait_until(problem, 20, "the module's problem")


def notice_of(server, code):
    """A notice of the only session, formatted as the programs print it."""
    found = wait_until(lambda: server.sessions() and [one for one in server.only_session()["notices"] if one["code"] == code], 30, f"the notice {code}")[0]
    return f"{found['text'].removesuffix('.')}. Try: {found['remedy']}"


def kernel_functions(place):
    with sysctl(perf_event_paranoid=2):
        return place.doctor(nobody=True)


def above_two(place):
    # Only some kernels support 3. On others, a system-call filter refuses.
    with sysctl(perf_event_paranoid=3):
        return place.doctor(nobody=True, before=(sys.executable, WITHOUT_PERF, "--errno", "EACCES"))


def seccomp(place):
    with sysctl(perf_event_paranoid=1):
        return place.doctor(nobody=True, before=(sys.executable, WITHOUT_PERF))


def another_user(place):
    program = place.start.workload("shares", 600)
    return place.run("--output", "-", "--pid", program.pid, nobody=True)


def unreadable_map(place):
    place.start.workload("shares", 600)
    server = place.start.server()
    with sysctl(perf_event_paranoid=-1):
        agent = place.start.process("nobodys", [*NOBODY, place.agent, "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "-a", "--frequency", 499])
        wait_until(lambda: server.sessions() and server.only_session()["samples"] > 500, 30, "samples")
        assert agent.stop() == 0, agent.err
    session = server.wait_ended()
    # Its samples count among those without a name.
    tree = Tree(server.get("/api/flamegraph", min_share=0))
    leaves = list(zip(tree.names, tree.kind, tree.answer["nodes"]["self_samples"]))
    unknown = sum(samples for name, _, samples in leaves if name == "[unknown process]")
    nameless = unknown + sum(samples for name, kind, samples in leaves if kind == UNKNOWN or name == "[no stack]")
    assert unknown > 50 and session["unresolved_percent"] == pytest.approx(100 * nameless / session["samples"]), (unknown, nameless, session["unresolved_percent"])
    return agent.err


def whole_system(place):
    with sysctl(perf_event_paranoid=2):
        return place.run("--output", "-", "-a", nobody=True)


def hidden_names(place):
    with sysctl(kptr_restrict=1, perf_event_paranoid=1):
        return place.doctor(nobody=True)


def names_hidden_by_paranoid(place):
    with sysctl(kptr_restrict=0, perf_event_paranoid=2):
        return place.doctor(nobody=True)


def in_namespace(script, *more):
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script}; exec "$@"', "sh", *more)


def no_tracefs(place):
    return place.doctor(before=in_namespace("umount -l /sys/kernel/debug /sys/kernel/tracing 2>/dev/null; mount -t tmpfs none /sys/kernel/tracing"))


def no_proc(place):
    return place.run("--doctor", before=in_namespace("mount -t tmpfs none /proc"))


def no_perf_events(place):
    return place.doctor(before=(sys.executable, WITHOUT_PERF, "--errno", "ENOSYS"))


def no_hardware(place):
    output = place.run("--doctor")
    if "The CPU's own counters can be used" in output:
        pytest.skip("NOT tested: this machine has hardware counters")
    return output


def locked_memory(place):
    with sysctl(perf_event_mlock_kb=16, perf_event_paranoid=1):
        return place.doctor(nobody=True, before=("prlimit", "--memlock=65536:65536"))


def few_files(place):
    return place.run("--output", place.folder / "never.flw", "--", PROGRAM, 1, before=("prlimit", "--nofile=20:20"))


def rate(place):
    # Far above the rates of other recordings on this machine.
    with sysctl(perf_event_max_sample_rate=50_000):
        return place.run("--output", place.folder / "fast.flw", "--frequency", 100_000, "--", "true")


def max_stack(place):
    return place.run("--output", place.folder / "deep.flw", "--unwind", "fp", "--max-depth", 4096, "--", PROGRAM, 1)


def refused(place):
    return place.dial("127.0.0.1", free_port())


def no_answer(place):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        # With a full queue, the kernel leaves further connections unanswered, as a firewall does.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        return place.dial("127.0.0.1", listener.getsockname()[1])


def unknown_name(place):
    return place.dial("no-such-host.invalid", 9999)


def no_way(place):
    return place.dial("192.0.2.1", 9999, before=("unshare", "--net"))


def no_code(place):
    return place.dial(OWN, place.start.server().port)


def wrong_code(place):
    return place.dial(OWN, place.start.server().port, "--pair", WRONG)


def withdrawn_code(place):
    server = place.start.server()
    code = server.pair()
    agent = place.start.agent("--server", OWN, "--port", server.port, "--pair", code)
    wait_until(lambda: "connected to" in agent.err, 20, "the connection")
    assert server.request("DELETE", "/api/pairing", id=code[:16])[0] == 200
    return wait_until(lambda: re.search(r"^.*was withdrawn.*$", agent.err, re.M), 40, "a message about the code")[0]


def port_taken(place, program, *options):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        command = [str(word).replace("PORT", str(other.getsockname()[1])) for word in (BIN / program, *options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1, done
    return done.stderr


def agents_port_taken(place):
    return port_taken(place, "flamewire-server", "--data-dir", place.folder / "data", "--port", "PORT", "--http-port", 0)


def page_port_taken(place):
    return port_taken(place, "flamewire-server", "--data-dir", place.folder / "data", "--port", 0, "--http-port", "PORT")


def listening_port_taken(place):
    return port_taken(place, "flamewire-agent", "--listen", "--port", "PORT")


def full_disk(place):
    data = place.folder / "data"
    data.mkdir()
    server = place.start.server(data_dir=data, program=in_namespace(f"mount -t tmpfs -o size=2m flamewire {data}") + (BIN / "flamewire-server",))
    program = place.start.workload("shares", 600)
    place.start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 100, 20, "samples")
    fill(server)
    return notice_of(server, "disk")


def full_disk_of_the_agent(place):
    return place.run("--output", place.folder / "disk" / "some.flw", "--", PROGRAM, 1,
                     before=in_namespace(f"mkdir {place.folder}/disk; mount -t tmpfs -o size=4k flamewire {place.folder}/disk; head -c 4096 /dev/zero > {place.folder}/disk/filler"))


def no_process(place):
    ended = subprocess.Popen(["true"])
    ended.wait()
    return place.run("--output", "-", "--pid", ended.pid)


def no_container(place):
    return place.run("--output", "-", "--container", "no-such-container")


def with_tracefs(place, *events):
    return place.run("--output", place.folder / "points.flw", "--events", *events, "--", PROGRAM, 1, before=in_namespace("mount -t tracefs tracefs /sys/kernel/tracing"))


def no_tracepoint(place):
    return with_tracefs(place, "sched:no_such_point")


def refused_filter(place):
    return with_tracefs(place, "sched:sched_switch", "--filter", "no_such_field > 1")


def no_sample(place):
    return place.run("--output", place.folder / "idle.flw", "--", "sleep", "0.2")


def compiled(place, name, *options):
    source = place.folder / "spin.c"
    # An exported function, next to those that strip removes.
    source.write_text("""#include <time.h>
static __attribute__((noinline)) unsigned turn(unsigned n) { for (unsigned i = 0; i < 100000; ++i) n = n * 1664525u + 1013904223u; return n; }
unsigned shown(unsigned n) { return turn(n) + 1; }
int main(void) { unsigned n = 1; time_t end = time(0) + 2; while (time(0) < end) n = shown(n); return n == 0; }
""")
    program = place.folder / name
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", *options, "-o", program, source], check=True)
    return program


def saved_file(place):
    """A recording of 2 s."""
    path = place.folder / "saved.flw"
    output = place.run("--output", path, "--frequency", 499, "--interval", 100, "--", PROGRAM, 2)
    assert output.startswith("0\n"), output
    return path, path.read_bytes()


def reported(path):
    """The first notice of a session file, formatted as the programs print it."""
    lines = subprocess.run([BIN / "flamewire", "report", path], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True).stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if "session file" in line)
    return f"{lines[first][2:].removesuffix('.')}. Try: {lines[first + 1].strip('# ')}"


def damaged_file(place):
    path, content = saved_file(place)
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes(byte ^ 0x55 for byte in content[middle:middle + 100]) + content[middle + 100:])
    return reported(path)


def cut_file(place):
    path, content = saved_file(place)
    ends = record_ends(content)
    path.write_bytes(content[:ends[len(ends) // 2] + 20])
    return reported(path)


def foreign_file(place):
    sessions = place.folder / "data" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "noise.flw").write_bytes(b"noise" * 1000)
    listed = subprocess.run([BIN / "flamewire", "list", "--data-dir", sessions.parent], capture_output=True, text=True, timeout=60, check=True).stdout
    return listed.splitlines()[-1][2:]


def stripped(place):
    return place.module(compiled(place, "stripped", "-s", "-rdynamic"))


def without_g(place):
    return place.module(compiled(place, "no-g", "-g0"))


def another_build(place):
    program = compiled(place, "app", "-s")
    (place.folder / "other").mkdir()
    other = compiled(place, "other/app", "-g", "-O2")
    program.rename(place.folder / "kept")
    program = (place.folder / "kept").rename(program)
    return place.module(program, "--binary", other)


def no_jit_names(place):
    if not shutil.which("node"):
        pytest.skip("NOT tested: Node is not installed (apt-get install nodejs)")
    server = place.start.server()
    script = "function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) ^ i; return s; } for (const end = Date.now() + 30000; Date.now() < end;) hot(300000);"
    program = place.start.process("node", ["node", "-e", script])
    place.start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999)
    return notice_of(server, "jit-names-missing")


def debuginfod_away(place):
    server = place.start.server("--debuginfod", f"http://127.0.0.1:{free_port()}")
    place.record(server, compiled(place, "lonely", "-s"))
    return notice_of(server, "debuginfod")


def source_outside(place):
    program = compiled(place, "outside", "-g")
    (place.folder / "elsewhere").mkdir()
    server = place.start.server("--source-dir", place.folder / "elsewhere")
    place.record(server, program)
    source = place.folder / "spin.c"
    status, _, answer = server.request("GET", "/api/source", file=source)
    assert status == 404 and answer["error"]["suggestion"] == "", answer
    # Only files that the profile names get this message, and its remedy works.
    assert "is not found on this machine" in server.request("GET", "/api/source", file="/etc/hostname")[2]["error"]["message"]
    folder = answer["error"]["message"].rsplit(" ", 1)[1]
    session = server.only_session()["id"]
    server.stop()
    again = place.start.server("--source-dir", folder, name="again", data_dir=server.data_dir)
    assert any(line["total"] for line in again.get("/api/source", session=session, file=source)["lines"])
    return answer["error"]["message"]


def no_source(place):
    program = compiled(place, "moved", "-g", f"-ffile-prefix-map={place.folder}=/somewhere/else")
    server = place.start.server()
    place.record(server, program)
    status, _, answer = server.request("GET", "/api/source", file="/somewhere/else/spin.c")
    assert status == 404 and answer["error"]["tried"] and answer["error"]["suggestion"].startswith("--path-map /somewhere/else="), answer
    return answer["error"]["message"]


PROVOCATIONS = {
    "Kernel functions are missing: perf_event_paranoid": kernel_functions,
    "Nothing can be sampled: perf_event_paranoid above 2": above_two,
    "Nothing can be sampled: a seccomp profile": seccomp,
    "A process of another user": another_user,
    "Frames of a process without names: its memory map": unreadable_map,
    "The whole system, or a control group": whole_system,
    "Kernel frames are addresses: kptr_restrict": hidden_names,
    "Kernel frames are addresses: perf_event_paranoid": names_hidden_by_paranoid,
    "Tracepoints are not there: tracefs": no_tracefs,
    "Nothing can be profiled: /proc": no_proc,
    "No perf events in the kernel": no_perf_events,
    "No hardware counters, as in most virtual machines": no_hardware,
    "Small rings: the limit on locked memory": locked_memory,
    "Too many files": few_files,
    "A higher rate than the kernel allows": rate,
    "Deep stacks are cut: perf_event_max_stack": max_stack,
    "The process is not there": no_process,
    "The container is not there": no_container,
    "The kernel has no such tracepoint": no_tracepoint,
    "The kernel refuses a filter": refused_filter,
    "No sample came": no_sample,
    "The server refuses": refused,
    "The server does not answer": no_answer,
    "The name is unknown": unknown_name,
    "There is no way to the server": no_way,
    "There is no pairing code": no_code,
    "The pairing code is wrong": wrong_code,
    "The pairing code was withdrawn": withdrawn_code,
    "The port for agents is in use": agents_port_taken,
    "The page's port is in use": page_port_taken,
    "The port of a listening agent is in use": listening_port_taken,
    "The server's disk is full": full_disk,
    "The agent's disk is full": full_disk_of_the_agent,
    "The session file is damaged": damaged_file,
    "The session file ends too early": cut_file,
    "A file in the data directory is not a session": foreign_file,
    "A stripped program": stripped,
    "A program without -g": without_g,
    "Another build": another_build,
    "Code made at run time has no names": no_jit_names,
    "The debuginfod server is away": debuginfod_away,
    "The source is not found": no_source,
    "The source is outside of what is shown": source_outside,
}


@plain_build_only("the sanitizer's type checks need their own descriptors")
@pytest.mark.parametrize("living", [False, True], ids=["launched", "living"])
def test_too_many_files_at_every_step_have_their_remedy(living, start):
    """From only the standard streams up to all files that a recording needs."""
    target = ["--pid", start.workload("shares", 600).pid, "--duration", "1"] if living else ["--", PROGRAM, "0.1"]
    with tempfile.TemporaryDirectory(prefix="flamewire-trouble-") as folder:
        place = Place(start, folder)
        outcomes = [place.run("--output", place.folder / "some.flw", "--force", *target, before=("prlimit", f"--nofile={files}:{files}"))
                    for files in (*range(4, 40, 3 if living else 1), 4096)]
    assert outcomes[-1].startswith("0\n") and "ulimit" not in outcomes[-1], outcomes[-1]
    for output in outcomes[:3 if living else 10]:
        assert output.startswith("1\n"), output
    for output in outcomes:
        assert output.startswith("0\n") or "Try: ulimit -n 65536 before starting" in output, output
        assert "not found" not in output and "does not exist" not in output, output


def test_every_entry_is_provoked():
    assert set(entries()) == set(PROVOCATIONS)
    assert sorted(listed()) == sorted(PROVOCATIONS)


@pytest.mark.parametrize("title", PROVOCATIONS)
def test_programs_print_the_sentence(title, start):
    with tempfile.TemporaryDirectory(prefix="flamewire-trouble-") as folder:
        os.chmod(folder, 0o755)
        output = PROVOCATIONS[title](Place(start, folder))
    expected = re.compile(rf"^(flamewire-(?:agent|server): |limited  |missing  )?{pattern(entries()[title])}$", re.M)
    assert expected.search(output), f"the document has:\n{entries()[title]}\nthe programs print:\n{output}"


def test_the_doctor_and_the_page_have_one_list(start):
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port)
    wait_until(lambda: any(entry["connected"] for entry in server.get("/api/agents")["agents"]), 30, "the agent")
    findings = server.command("reprobe")["findings"]
    done = subprocess.run([BIN / "flamewire-agent", "--doctor"], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()[1:]
    for finding in findings:
        if finding["code"] == "event":
            assert any(finding["name"] in line for line in lines), finding
            continue
        word = "ok" if finding["works"] else "limited" if finding["remedy"] else "missing"
        remedy = f". Try: {finding['remedy']}" if finding["remedy"] else ""
        assert f"{word:<9}{finding['text']}{remedy}" in lines, json.dumps(finding)
    assert done.returncode == (1 if any(line.startswith("limited") for line in lines) else 0)
    assert {"hardware", "sample-rate", "stack-depth", "locked-memory", "open-files", "kernel-names"} <= {finding["code"] for finding in findings}
