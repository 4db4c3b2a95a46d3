"""gdb decides about samples in which our frames and perf's differ: each becomes a core file with its registers and copied stack bytes, and gdb
unwinds it. As a program, it prints the results for a recording. Usage: judge.py REPLAY CORES PERF_DATA"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import compare

GDB_SCRIPT = """
import gdb, struct

def restore(core):
    '''In an epilogue, tables may describe a register as saved below the stack pointer, which no copy contains. The previous instruction
    restored the register from there, so its value is the saved one. The room below has words that are their own addresses: if the caller's
    register has such a value, it is saved at that place. Returns True if a value was filled in.'''
    frame = gdb.newest_frame()
    caller = frame.older()
    with open(core, "r+b") as file:
        file.seek(64 + 56)  # the second program header: offset in the file at 8, address at 16
        offset, address = struct.unpack_from("<QQ", file.read(56), 8)
        filled = False
        for name in ("rbx", "rbp", "r12", "r13", "r14", "r15"):
            at = int(caller.read_register(name)) & (1 << 64) - 1
            own = int(frame.read_register(name)) & (1 << 64) - 1
            # A register that was not saved may also point there. It is the same in both frames.
            if own != at and at % 8 == 0 and address <= at < int(frame.read_register("rsp")):
                file.seek(offset + at - address)
                file.write(struct.pack("<Q", own))
                filled = True
    return filled

for line in open({keys!r}):
    key, core = line.split()
    gdb.execute("core-file " + core, to_string=True)
    frames = []
    try:
        if restore(core):
            gdb.execute("core-file " + core, to_string=True)
    except (gdb.error, AttributeError):
        pass  # no caller, or its registers are above the copied bytes
    try:
        frame = gdb.newest_frame()
        while frame is not None and len(frames) < 5000:
            if frame.type() != gdb.INLINE_FRAME:
                frames.append(frame.pc())
            frame = frame.older()
    except gdb.error as error:
        pass
    print("FRAMES", key, *(format(pc, "x") for pc in frames), flush=True)
"""
SETTINGS = ("set pagination off", "set confirm off", "set debuginfod enabled off", "set backtrace past-main on", "set backtrace past-entry on", "set backtrace limit unlimited",
            "set auto-load off", "set auto-solib-add off")

Case = collections.namedtuple("Case", "ours gdb perf files")


def frames_of_gdb(directory, keys, files):
    """key -> runtime pcs, innermost first. `files`: (bias, path) of the process's files."""
    listed = directory / "keys"
    listed.write_text("".join(f"{tid}-{time} {directory / f'{tid}-{time}.core'}\n" for tid, time in keys))
    script = directory / "judge_gdb.py"
    script.write_text(GDB_SCRIPT.format(keys=str(listed)))
    # If a program is at its link address, gdb may also read its code.
    load = [f"file {path}" if int(bias, 16) == 0 else f"add-symbol-file {path} -o {bias}" for bias, path in files]
    commands = [*SETTINGS, *load, f"source {script}"]
    arguments = [part for command in commands for part in ("-ex", command)]
    text = subprocess.run(["gdb", "-nx", "-q", "-batch", *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    frames = {}
    for line in text.splitlines():
        if line.startswith("FRAMES "):
            _, key, *addresses = line.split()
            tid, time = key.split("-")
            frames[int(tid), int(time)] = [int(address, 16) for address in addresses]
    return frames


def judge(cores, comparison, data):
    """key -> Case, for all samples that differ."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        text = subprocess.run([cores, data, directory], check=True, capture_output=True, text=True, input="".join(f"{tid} {time}\n" for tid, time in comparison.different)).stdout
        ours, by_files = {}, collections.defaultdict(list)
        for line in text.splitlines():
            tid, time, *rest = line.split("\t")
            middle = rest.index("files")
            key = int(tid), int(time)
            ours[key] = [int(address, 16) for address in rest[:middle]]
            by_files[tuple(tuple(file.split("=", 1)) for file in rest[middle + 1:])].append(key)
        # One gdb for all samples in files with the same addresses: a process's files do not move.
        everything = sorted({file for files in by_files for file in files})
        paths = [path for _, path in everything]
        groups = {tuple(everything): list(ours)} if len(set(paths)) == len(paths) else by_files
        gdb = {}
        for files, keys in groups.items():
            existing = [("0x" + bias, path) for bias, path in files if pathlib.Path(path).exists()]
            gdb |= frames_of_gdb(directory, keys, existing)
    return {key: Case(frames, gdb.get(key, []), comparison.perf[key], comparison.ours[key].frames) for key, frames in ours.items()}


def in_start_files(frame):
    """Whether a frame in perf's format ("c5016:/usr/lib/libcrypto.so.3") is in .init or .fini: assembly of the C library without a table."""
    offset, _, path = frame.partition(":")
    if not pathlib.Path(path).exists():
        return False
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    for name, start, size in re.findall(r"\] (\.init|\.fini) +PROGBITS +\w+ (\w+) (\w+)", sections):
        if int(start, 16) <= int(offset, 16) < int(start, 16) + int(size, 16):
            return True
    return False


def has_table(frame):
    """Whether .eh_frame or .debug_frame has an entry for a frame in perf's format."""
    offset, _, path = frame.partition(":")
    if not pathlib.Path(path).exists():
        return True
    entries = subprocess.run(["readelf", "--wide", "--debug-dump=frames", path], capture_output=True, text=True).stdout
    return any(int(start, 16) <= int(offset, 16) < int(end, 16) for start, end in re.findall(r" pc=(\w+)\.\.(\w+)", entries))


def disassembly(path, start, size):
    return subprocess.run(["objdump", "-d", f"--start-address={start:#x}", f"--stop-address={start + size:#x}", path],
                          capture_output=True, text=True).stdout


def calls(caller, callee):
    """Whether the instruction before the caller's address is a direct call of the callee's function, possibly through the PLT."""
    address, _, path = caller.partition(":")
    inside, _, other = callee.partition(":")
    if not (pathlib.Path(path).exists() and pathlib.Path(other).exists()):
        return False
    size = 5  # e8 and the distance
    target = re.search(r"\tcall +\w+ <([^>@+]+)(?:@plt)?>", disassembly(path, int(address, 16) - size, size))
    function = re.search(r"^\w+ <([^>@+]+)[^>]*>:", disassembly(other, int(inside, 16), 1), re.MULTILINE)
    return bool(target and function) and target[1] == function[1]


def verdict(case):
    """Kernel frames are the same in both and not part of gdb's stacks."""
    perf = sum(1 for frame in case.perf if not frame.endswith(":kernel"))
    common = 0
    while common < min(len(case.ours), len(case.gdb)) and case.ours[common] == case.gdb[common]:
        common += 1
    # Where perf stops, gdb guesses that nothing was pushed. Only the dynamic linker calls that code.
    if 0 < common == perf < min(len(case.ours), len(case.gdb)) and in_start_files(case.perf[-1]):
        return "called by the dynamic linker; perf stops early" if "/ld-" in case.files[len(case.perf)] else "not called by the dynamic linker"
    # In assembly without a table, gdb guesses too. The call instruction identifies the caller.
    if 0 < common < len(case.ours):
        callee, caller = case.files[len(case.files) - len(case.ours) + common - 1:][:2]
        if not has_table(callee) and calls(caller, callee):
            return "called by our caller; gdb guesses"
    if common < len(case.ours):
        return "gdb has other frames" if common < len(case.gdb) else "gdb stops before us"
    if perf < len(case.ours):
        return "as gdb; perf stops early"
    return "as gdb; perf has other frames" if len(case.gdb) == len(case.ours) else "gdb continues"


def main():
    replay, cores, data = sys.argv[1:]
    comparison = compare.Comparison(replay, data)
    cases = judge(cores, comparison, data)
    print(f"{comparison.total} samples, {len(comparison.different)} different from perf's")
    for what, number in collections.Counter(verdict(case) for case in cases.values()).most_common():
        print(f"{number:6} {what}")
    for key, case in cases.items():
        if not verdict(case).startswith("as gdb"):
            print(*key, verdict(case), "ours", len(case.ours), "gdb", len(case.gdb), "perf", len(case.perf))


if __name__ == "__main__":
    main()
