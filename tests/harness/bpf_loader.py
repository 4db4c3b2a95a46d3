"""A program that loads, runs and drops BPF programs on command, by the system call alone."""
import json
import subprocess
import sys

# Reads "load NAME", "spin NAME SECONDS" and "drop NAME" on standard input and prints a line of JSON for each. Spinning is
# BPF_PROG_TEST_RUN, in a thread of its own, timed by that thread's clock. "overhead" is the share of this time that a program without
# work takes for as many runs.
LOADER = r"""
import ctypes, json, os, platform, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBER = {"x86_64": 321, "aarch64": 280, "armv7l": 386}[platform.machine()]

def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(144, b"\0"), 144)
    answer = libc.syscall(NUMBER, command, buffer, 144)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return answer

def load(name, rounds=2000):
    insns = struct.pack("<BBhi", 0xb7, 0, 0, 1)
    for i in range(rounds):
        insns += struct.pack("<BBhi", 0x27, 0, 0, 3 + i) + struct.pack("<BBhi", 0x07, 0, 0, 7)
    insns += struct.pack("<BBhi", 0x95, 0, 0, 0)
    code, license = ctypes.create_string_buffer(insns), ctypes.create_string_buffer(b"GPL")
    return bpf(5, struct.pack("<IIQQIIQII16s", 1, len(insns) // 8, ctypes.addressof(code), ctypes.addressof(license), 0, 0, 0, 0, 0, name.encode()))

data = ctypes.create_string_buffer(64)
programs = {"none": load("flw_none", 0)}

def run(name):
    bpf(10, struct.pack("<IIIIQQII", programs[name], 0, 64, 0, ctypes.addressof(data), 0, 5000, 0))

def spin(name, seconds, said):
    runs = 0
    while time.thread_time() < seconds:
        run(name)
        runs += 1
    said["tid"], said["runs"], said["cpu_s"] = threading.get_native_id(), runs, time.thread_time()

def overhead(said):
    for _ in range(said["runs"]):
        run("none")
    said["overhead"] = time.thread_time() / said["cpu_s"]

for line in sys.stdin:
    word, name, *rest = line.split()
    said = {"did": word, "name": name}
    if word == "load":
        programs[name] = load(name)
        said["kallsyms"] = [field[2] for field in map(str.split, open("/proc/kallsyms")) if field[2].startswith("bpf_prog_") and field[2].endswith("_" + name)]
    elif word == "spin":
        for work in (lambda: spin(name, float(rest[0]), said), lambda: overhead(said)):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
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
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", LOADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def command(self, *words):
        """What it did, with its own figures."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the loader ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
