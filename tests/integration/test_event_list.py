"""The lists of events that the page offers, against tracefs, readelf and nm; what a policy refuses; files that are no programs."""
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest
import test_probe_list
from flamewire import HttpError, wait_until
from test_probe_list import functions_by_readelf, names_by_nm, probes_by_readelf

program = test_probe_list.program
TRACEFS = pathlib.Path("/sys/kernel/tracing")
if not (TRACEFS / "events").exists():
    subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACEFS)], check=False)
pytestmark = pytest.mark.skipif(not os.access(TRACEFS / "uprobe_events", os.W_OK),
                                reason="the lists need root and tracefs: nothing of them is tested")

@pytest.fixture
def asked(start):
    """Starts an agent with these options; returns what lists its events."""
    server = start.server()

    def started(*options):
        start.agent("--server", "127.0.0.1", "--port", server.port, *options)
        wait_until(lambda: server.get("/api/agents")["agents"], what="the agent")
        return lambda kind, **parameters: server.get("/api/agent/events", kind=kind, **parameters)
    return started


def message(refused):
    """Why an agent refused."""
    assert (refused.status, refused.error["code"]) == (409, "agent_refused")
    return refused.error["message"]


def refusal(listing, *words, **parameters):
    with pytest.raises(HttpError) as refused:
        listing(*words, **parameters)
    return message(refused.value)


def names(answer):
    return [one["name"] for one in answer["events"]]


def test_tracepoints_are_those_of_tracefs(asked):
    listing = asked()
    kernel = {line for line in (TRACEFS / "available_events").read_text().split() if not line.startswith("flamewire_")}
    # Other tests create and remove probes meanwhile.
    fixed = {name for name in kernel if name.split(":")[0] in {"sched", "syscalls", "raw_syscalls", "irq", "timer", "kmem"}}
    found = listing("tracepoint", limit=500)
    assert found["total"] >= len(fixed) and found["more"] and len(found["events"]) == 500
    for system in {name.split(":")[0] for name in fixed}:
        wanted = sorted(name for name in fixed if name.startswith(f"{system}:"))
        answer = listing("tracepoint", q=f"{system}:", limit=500)
        exact = [name for name in names(answer) if name.startswith(f"{system}:")]
        assert answer["more"] or exact == wanted
        assert all(one["event"] == one["name"] for one in answer["events"])
    assert names(listing("tracepoint", q="SCHED_switch"))[0] == "sched:sched_switch"
    both = set(names(listing("tracepoint", q="sched wak", limit=500)))
    assert both == {name for name in kernel if re.search("sched.*wak", name)}
    described = listing("", describe="sched:sched_switch")["description"]
    fields = re.findall(r"field:(?:.*?)(\w+)(?:\[\d*\])?;", (TRACEFS / "events/sched/sched_switch/format").read_text())
    assert re.findall(r"^  (\w+): ", described, re.MULTILINE) == [name for name in fields if not name.startswith("common_")]


def test_functions_and_probes_of_a_process(asked, program, start, tmp_path):
    busy = start.workload("probes", "busy", 600)
    listing = asked()
    files = names(listing("file", pid=busy.pid, limit=500))
    mapped = {line.split(maxsplit=5)[5].strip() for line in pathlib.Path(f"/proc/{busy.pid}/maps").read_text().splitlines() if line.split()[1][2] == "x" and "/" in line}
    assert set(files) == mapped
    libc = next(path for path in files if "/libc.so" in path)
    for path in (libc, str(program)):
        real, mangled = functions_by_readelf(path), names_by_nm(path)
        for text in ("mem", "_s", "size", "in"):
            answer = listing("function", file=path, q=text, limit=500)
            wanted = {mangled[symbol] for symbol, _ in real if text in symbol.lower()}
            assert all(one in mangled.values() for one in names(answer)), (path, text)
            # Names of C++ contain the text, too, where their symbols abbreviate them.
            assert set(names(answer)) >= wanted if not answer["more"] else len(answer["events"]) == 500, (path, text)
    malloc = listing("function", file="libc", pid=busy.pid, q="malloc")["events"]
    assert malloc[0] == {"name": "malloc", "file": libc, "event": f'uprobe:malloc@"{libc}"'}
    described = listing("", describe=malloc[0]["event"], pid=busy.pid)["description"]
    assert re.search(r"  at offset 0x[0-9a-f]+ of \S+libc\.so\.6, about [0-9.]+ us per hit\n", described), described
    resolver = next(one for one in listing("function", file=libc, q="strlen")["events"] if one["name"] == "strlen")
    assert resolver["problem"] == "selects one of several functions when the program starts" and "event" not in resolver
    methods = listing("function", file=program, q="ns::Set::")
    assert {"ns::Set::Set()", "ns::Set::~Set()", "ns::Set::size() const"} <= set(names(methods))
    usdt = listing("usdt", file=program)
    assert {one["event"] for one in usdt["events"]} == {f'{event}@"{program}"' for event, *_ in probes_by_readelf(program)}
    assert usdt["total"] == len(usdt["events"]) and not usdt["more"]


def test_every_listed_event_can_be_described(asked, program):
    listing = asked()
    for kind in ("function", "usdt"):
        for one in listing(kind, file=program, limit=500)["events"]:
            described = listing("", describe=one["event"])["description"]
            assert described.startswith(one["event"] + ": probe\n  at offset "), one


def test_functions_of_one_name_are_offsets(asked, tmp_path):
    for part in ("one", "two"):
        (tmp_path / f"{part}.c").write_text(f"__attribute__((noinline, noipa)) static int same(int n) {{ return n + {len(part)}; }} int {part}(int n) {{ return same(n); }}\n")
    (tmp_path / "main.c").write_text("int one(int), two(int); int main(int n, char** v) { return one(n) + two(n); }\n")
    path = tmp_path / "same"
    subprocess.run(["gcc", "-O1", "-o", path, *(tmp_path / f"{part}.c" for part in ("one", "two", "main"))], check=True)
    listing = asked()
    offsets = {offset for symbol, offset in functions_by_readelf(path) if symbol == "same"}
    assert len(offsets) == 2
    assert {one["event"] for one in listing("function", file=path, q="same")["events"]} == {f'uprobe:{offset:#x}@"{path}"' for offset in offsets}


def test_a_policy_limits_the_files(asked, start, program):
    busy = start.workload("probes", "busy", 600)
    other = start.workload("probes", "busy", 600)
    listing = asked("--allow-pid", busy.pid)
    assert "malloc" in names(listing("function", file="libc", pid=busy.pid, q="malloc"))
    for kind, parameters in (("function", {"file": program, "pid": busy.pid}), ("usdt", {"file": "/etc/passwd", "pid": busy.pid}), ("function", {"file": "libc"}),
                             ("", {"describe": f'uprobe:main@"{program}"', "pid": busy.pid})):
        why = refusal(listing, kind, **parameters)
        assert "has code of" in why and "probe only what these use" in why, why
    for kind, parameters in (("file", {"pid": other.pid}), ("function", {"file": "libc", "pid": f"{busy.pid},{other.pid}"}), ("file", {"cgroup": "/"})):
        why = refusal(listing, kind, **parameters)
        assert "--allow-pid" in why, why


def test_functions_of_the_kernel_need_an_option(asked, start):
    refused = "this agent does not let servers probe the kernel; start it with --allow-kprobes"
    listing = asked()
    assert not listing("tracepoint", limit=1)["kernel_functions"]
    assert refusal(listing, "kernel-function", q="vfs_read") == refused
    assert refusal(listing, "", describe="kprobe:vfs_read") == refused
    assert "--allow-breakpoints" in refusal(listing, "", describe="mem:0x1000:w")


def test_allowed_functions_of_the_kernel_are_those_of_kallsyms(asked):
    listing = asked("--allow-kprobes")
    assert listing("tracepoint", limit=1)["kernel_functions"]
    wanted = {words[2] for words in (line.split() for line in pathlib.Path("/proc/kallsyms").open()) if words[1] in "tTwW" and "vfs_rea" in words[2] and not words[2].endswith(".cold")}
    answer = listing("kernel-function", q="vfs_rea")
    assert set(names(answer)) == wanted and "vfs_read" in wanted
    assert all(one.get("event") == f'kprobe:{one["name"]}' for one in answer["events"])


def test_hostile_files(asked, program, tmp_path):
    listing = asked()
    good = program.read_bytes()
    section = int.from_bytes(good[0x28:0x30], "little")
    for name, data in (("text", b"no program\n"), ("header", good[:64]), ("half", good[:len(good) // 2]), ("sections", good[:section] + b"\xff" * (len(good) - section)),
                       ("zero", b""), ("numbers", good[:0x20] + b"\xff" * 0x20 + good[0x40:])):
        path = tmp_path / name
        path.write_bytes(data)
        for kind in ("function", "usdt"):
            try:
                assert listing(kind, file=path)["total"] >= 0
            except HttpError as refused:
                assert message(refused).startswith(f"{path}: ")
    odd = tmp_path / 'quote".so'
    shutil.copy(program, odd)
    assert all(one["problem"] == "has a name that an event cannot have" for one in listing("usdt", file=odd)["events"])
    for path in (tmp_path, "/dev/zero", tmp_path / "none"):
        assert str(path) in refusal(listing, "function", file=path)
    assert "malloc" in names(listing("function", file="libc", q="malloc"))


@pytest.mark.parametrize("query, why", [
    ("", "kind must be one of"), ("kind=x", "kind must be one of"), ("kind=function", "file required"), ("kind=tracepoint&limit=501", "limit must be"),
    ("kind=tracepoint&limit=0", "limit must be"), ("kind=file&pid=x", "pid"), ("kind=file&pid=" + ",".join(["1"] * 257), "more than 256"),
    ("kind=tracepoint&q=" + "x" * 257, "search may have at most 256 bytes"), ("describe=" + "x" * 4097, "describe may have at most 4096 bytes"),
    ("describe=no:such_event", "this kernel has no tracepoint"), ("kind=file&pid=4194304", "not found")])
def test_wrong_requests(start, query, why):
    server = start.server()
    start.agent("--server", "127.0.0.1", "--port", server.port)
    wait_until(lambda: server.get("/api/agents")["agents"], what="the agent")
    status, _, body = server.request("GET", "/api/agent/events", **{name: value[-1] for name, value in urllib.parse.parse_qs(query, keep_blank_values=True).items()})
    assert status in (400, 409) and why in body["error"]["message"], body
