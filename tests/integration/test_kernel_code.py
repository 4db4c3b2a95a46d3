"""Code of the kernel that comes and goes: BPF programs, loaded and unloaded while a recording runs, under the names that /proc/kallsyms had for them."""
import json
import re
import subprocess
import sys
import time

import pytest
from flamewire import BIN, Tree, wait_until

# Loads BPF programs by the system call alone, as the target's user would, and tells what it did: at "load NAME", "spin NAME SECONDS" and
# "drop NAME" on standard input. Spinning is BPF_PROG_TEST_RUN, timed by the thread's own clock.
LOADER = r"""
import ctypes, json, os, platform, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBER = {"x86_64": 321, "aarch64": 280, "armv7l": 386}[platform.machine()]

def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(144, b"\0"), 144)
    answer = libc.syscall(NUMBER, command, buffer, 144)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return answer

def load(name):
    insns = struct.pack("<BBhi", 0xb7, 0, 0, 1)
    for i in range(2000):
        insns += struct.pack("<BBhi", 0x27, 0, 0, 3 + i) + struct.pack("<BBhi", 0x07, 0, 0, 7)
    insns += struct.pack("<BBhi", 0x95, 0, 0, 0)
    code, license = ctypes.create_string_buffer(insns), ctypes.create_string_buffer(b"GPL")
    return bpf(5, struct.pack("<IIQQIIQII16s", 1, len(insns) // 8, ctypes.addressof(code), ctypes.addressof(license), 0, 0, 0, 0, 0, name.encode()))

data = ctypes.create_string_buffer(64)
programs = {}
for line in sys.stdin:
    word, name, *rest = line.split()
    said = {"did": word, "name": name}
    if word == "load":
        programs[name] = load(name)
        said["kallsyms"] = [field[2] for field in map(str.split, open("/proc/kallsyms")) if field[2].startswith("bpf_prog_") and field[2].endswith("_" + name)]
    elif word == "spin":
        begin = time.thread_time()
        while time.thread_time() - begin < float(rest[0]):
            bpf(10, struct.pack("<IIIIQQII", programs[name], 0, 64, 0, ctypes.addressof(data), 0, 5000, 0))
        said["cpu_s"] = time.thread_time() - begin
    else:
        os.close(programs.pop(name))
        # Freed a moment later, by a worker of the kernel.
        for _ in range(200):
            if not any(f"_{name}\t" in symbol for symbol in open("/proc/kallsyms")):
                break
            time.sleep(0.02)
    print(json.dumps(said), flush=True)
"""


class Loader:
    def __init__(self, start, tmp_path):
        script = tmp_path / "loader.py"
        script.write_text(LOADER)
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the loader ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def loader(start, tmp_path):
    one = Loader(start, tmp_path)
    yield one
    one.close()


def programs_in(tree):
    """Full name of each BPF program -> its own weight, ns."""
    found = {}
    for name, module, weight in zip(tree.names, tree.modules, tree.self_weight):
        if re.match(r"bpf_prog_[0-9a-f]{16}_", name):
            assert module == "[bpf]", (name, module)
            found[name] = found.get(name, 0) + weight
    return found


def checked(found, names, seconds):
    """Each program has the time that its loader measured, less what the system call around it takes."""
    assert set(names.values()) <= set(found), (names, found)
    for short, full in names.items():
        assert 0.7 * seconds[short] < found[full] / 1e9 < 1.15 * seconds[short], (short, found[full] / 1e9, seconds[short])


def life(loader, names, seconds):
    """One that was there before is used and goes; then others take its place, one after the other."""
    for name in ("flw_early", "flw_second", "flw_third"):
        if name not in names:
            [names[name]] = loader.tell("load", name)["kallsyms"]
        seconds[name] = loader.tell("spin", name, 1.0)["cpu_s"]
        loader.tell("drop", name)


@pytest.mark.parametrize("scope", ["pid", "system"])
def test_programs_that_come_and_go_are_named_live(start, loader, scope):
    server = start.server()
    names, seconds = {}, {}
    [names["flw_early"]] = loader.tell("load", "flw_early")["kallsyms"]
    assert re.fullmatch(r"bpf_prog_[0-9a-f]{16}_flw_early", names["flw_early"])
    target = ("--pid", loader.pid) if scope == "pid" else ("-a",)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, *target, "--frequency", 999)
    wait_until(lambda: server.sessions() and server.only_session()["state"] == "live", 20, "the recording")
    # Other programs than the target's own are told, too: this one loads without being sampled.
    life(loader, names, seconds)
    time.sleep(1)
    assert agent.stop() == 0
    session = server.wait_ended()["id"]
    pids = {} if scope == "pid" else {"pid": loader.pid}
    checked(programs_in(Tree(server.get("/api/flamegraph", session=session, min_share=0, **pids))), names, seconds)
    server.stop()
    # Where nothing of this is in /proc/kallsyms any more.
    again = start.server(name="again", data_dir=server.data_dir)
    checked(programs_in(Tree(again.get("/api/flamegraph", session=session, min_share=0, **pids))), names, seconds)


def test_programs_are_named_in_a_file(start, loader, tmp_path):
    names, seconds = {}, {}
    path = tmp_path / "some.flw"
    [names["flw_early"]] = loader.tell("load", "flw_early")["kallsyms"]
    agent = start.agent("--output", path, "--pid", loader.pid, "--frequency", 999)
    wait_until(lambda: path.exists() and path.stat().st_size > 500, 20, "the recording")
    life(loader, names, seconds)
    assert agent.stop() == 0
    text = subprocess.run([BIN / "flamewire", "export", path, "--format", "collapsed", "--weights", "--data-dir", tmp_path / "home"], check=True, capture_output=True, text=True).stdout
    found = {}
    for stack, weight in (line.rsplit(" ", 1) for line in text.splitlines()):
        found[stack.rsplit(";", 1)[1]] = found.get(stack.rsplit(";", 1)[1], 0) + int(weight)
    checked(found, names, seconds)
