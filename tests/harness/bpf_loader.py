"""A program that loads, runs and unloads BPF programs on command, using only the system call."""
import json
import subprocess
import sys

# Reads "load NAME", "spin NAME SECONDS" and "drop NAME" from standard input and prints one line of JSON for each. "spin" calls
# BPF_PROG_TEST_RUN in a separate thread and measures that thread's CPU time. "overhead" is the share of this time that an empty program
# takes for the same number of runs.
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

def spin(name, seconds, report):
    runs = 0
    while time.thread_time() < seconds:
        run(name)
        runs += 1
    report["tid"], report["runs"], report["cpu_s"] = threading.get_native_id(), runs, time.thread_time()

def overhead(report):
    for _ in range(report["runs"]):
        run("none")
    report["overhead"] = time.thread_time() / report["cpu_s"]

for line in sys.stdin:
    word, name, *rest = line.split()
    report = {"did": word, "name": name}
    if word == "load":
        programs[name] = load(name)
        report["kallsyms"] = [field[2] for field in map(str.split, open("/proc/kallsyms")) if field[2].startswith("bpf_prog_") and field[2].endswith("_" + name)]
    elif word == "spin":
        for work in (lambda: spin(name, float(rest[0]), report), lambda: overhead(report)):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    else:
        os.close(programs.pop(name))
        # A worker of the kernel frees the program a moment later.
        for _ in range(200):
            if not any(f"_{name}\t" in symbol for symbol in open("/proc/kallsyms")):
                break
            time.sleep(0.02)
    print(json.dumps(report), flush=True)
"""


class Loader:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", LOADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def command(self, *words):
        """The loader's answer, with its measurements."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the loader ended"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
