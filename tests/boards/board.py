"""Emulated Arm boards: QEMU's `virt` machine with Debian's kernel, an initial RAM disk of busybox, the agent and workloads, and a
script for the board. The board reaches the host at 10.0.2.2."""

import base64
import contextlib
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))

from flamewire import ROOT, Process, wait_until  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
HOST = "10.0.2.2"
FRAME_POINTERS = {"fp": "-fno-omit-frame-pointer", "no-fp": "-fomit-frame-pointer"}
AGENTS = pathlib.Path(os.environ.get("FLAMEWIRE_AGENTS", ROOT))

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /sbin
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for module in $(cat /modules/order); do insmod /modules/$module; done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 'board: up'
. /run.sh
echo 'board: done'
sync
poweroff -f
"""


class Kind:
    """A machine: `triplet` of its programs, `image` of its kernel, QEMU's arguments."""

    def __init__(self, name, triplet, image, machine, cpus, icount, pmu=True, agent=None):
        self.name, self.triplet, self.image = name, triplet, image
        self.machine, self.cpus, self.icount, self.pmu = machine, cpus, icount, pmu
        self.agent = agent or {"aarch64-linux-gnu": "aarch64", "arm-linux-gnueabihf": "armv7"}[triplet]


KINDS = {
    kind.name: kind
    for kind in [
        Kind("arm64", "aarch64-linux-gnu", "arm64", "cortex-a57", 1, True),
        Kind("arm64-threads", "aarch64-linux-gnu", "arm64", "cortex-a57", 2, False),
        Kind("armhf", "arm-linux-gnueabihf", "armhf", "cortex-a15", 1, True),
        Kind("armhf-no-pmu", "arm-linux-gnueabihf", "armhf", "cortex-a15", 1, True, pmu=False),
        Kind("arm64-32bit", "arm-linux-gnueabihf", "arm64", "cortex-a57", 1, True),
    ]
}


class Lab:
    """The parts of boards, built once for a run of the tests: kernels, workloads, device trees."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.images = {}

    def image(self, architecture):
        if architecture not in self.images:
            done = subprocess.run([HERE / "images.sh", architecture], check=True, stdout=subprocess.PIPE, text=True)
            self.images[architecture] = pathlib.Path(done.stdout.strip())
        return self.images[architecture]

    def agent(self, kind):
        return AGENTS / f"build-agent-{kind.agent}" / "bin" / "flamewire-agent"

    def workload(self, kind, source, name, *options):
        """A static program for the board with debug info. Returns the unstripped file; boards get a stripped copy."""
        target = self.directory / kind.triplet / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            compiler = f"{kind.triplet}-{'gcc' if source.endswith('.c') else 'g++'}"
            language = [] if source.endswith(".c") else ["-std=c++20"]
            subprocess.run([compiler, *language, "-O2", "-g", "-Wno-psabi", "-static", "-Wl,--build-id", *options, ROOT / source, "-o", target], check=True)
        return target

    def shares(self, kind, frames):
        """The workload with known shares of the CPU time; `frames`: a key of FRAME_POINTERS."""
        return self.workload(kind, "tests/workloads/shares.cc", f"shares-{frames}", FRAME_POINTERS[frames], "-pthread")

    def stripped(self, kind, program):
        target = program.with_name(program.name + ".stripped")
        if not target.exists():
            subprocess.run([f"{kind.triplet}-strip", program, "-o", target], check=True)
        return target

    def device_tree(self, kind):
        """QEMU's device tree of a 32-bit machine has no PMU, although the CPU has one."""
        tree = self.directory / f"{kind.machine}-{kind.cpus}.dtb"
        if not tree.exists():
            subprocess.run(["qemu-system-arm", "-M", f"virt,dumpdtb={tree}", "-cpu", kind.machine, "-smp", str(kind.cpus), "-m", "256", "-nodefaults", "-display", "none"], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run(["fdtput", "-t", "s", tree, "/pmu", "compatible", "arm,cortex-a15-pmu"], check=True)
            # A private level-triggered interrupt for each of the CPUs.
            subprocess.run(["fdtput", "-t", "x", tree, "/pmu", "interrupts", "1", "7", f"{((1 << kind.cpus) - 1) << 8 | 4:x}"], check=True)
        return tree

    def kernel(self, kind):
        """Unpacking the XZ of a 32-bit kernel takes the board seconds. It is unpacked here and wrapped as U-Boot would load it."""
        image = self.image(kind.image)
        if kind.image != "armhf":
            return image / "vmlinuz"
        target = self.directory / "armhf.uimage"
        if not target.exists():
            packed = (image / "vmlinuz").read_bytes()
            start = packed.rindex(b"\xfd7zXZ\0")  # the decompressor before it contains the same bytes
            unpacked = subprocess.run(["xz", "-dc", "--single-stream"], input=packed[start:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
            assert len(unpacked) > len(packed), "this kernel is not packed as expected"
            target.write_bytes(legacy_uimage(unpacked, 0x40208000))
        return target


def legacy_uimage(data, load):
    """U-Boot's legacy format: a header of 64 bytes, big-endian, with two CRCs."""
    import struct
    import zlib

    fields = [0x27051956, 0, 0, len(data), load, load, zlib.crc32(data)]
    tail = struct.pack(">BBBB32s", 5, 2, 2, 0, b"linux")  # Linux, ARM, kernel, not compressed
    header = struct.pack(">7I", *fields) + tail
    fields[1] = zlib.crc32(header)
    return struct.pack(">7I", *fields) + tail + data


def print_file(path):
    """Shell commands that print a file of the board on the board's console."""
    return f"echo 'file {path}:'; base64 {path}; echo 'end of {path}'\n"


def printed_file(text, path):
    """The bytes of a file that print_file printed."""
    return base64.b64decode(re.search(rf"^file {path}:\n(.*)^end of {path}$", text, re.M | re.S)[1])


class Board:
    """One boot. `files`: path on the board -> file here, or text. `text` has the script's output."""

    def __init__(self, lab, kind, directory, script, files=(), sleep=True, name="board"):
        self.directory = pathlib.Path(directory) / name
        self.kind = kind
        root = self.directory / "root"
        (root / "bin").mkdir(parents=True)
        image = lab.image(kind.image)
        shutil.copy(image / "busybox", root / "bin" / "busybox")
        shutil.copytree(image / "modules", root / "modules")
        everything = {"/init": INIT, "/run.sh": script, "/bin/flamewire-agent": lab.agent(kind), **dict(files)}
        for path, what in everything.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(what, pathlib.Path):
                shutil.copy(what, target)
            else:
                target.write_text(what)
            target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        names = subprocess.run(["find", "."], cwd=root, stdout=subprocess.PIPE, check=True).stdout
        packed = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names, stdout=subprocess.PIPE, check=True).stdout
        ramdisk = self.directory / "initrd.gz"
        ramdisk.write_bytes(gzip.compress(packed, 1))
        self.process = Process("qemu", self._command(lab, ramdisk, sleep), self.directory)

    def _command(self, lab, ramdisk, sleep):
        kind = self.kind
        wide = kind.image == "arm64"
        command = ["qemu-system-aarch64" if wide else "qemu-system-arm", "-M", "virt,dtb-randomness=off", "-cpu", kind.machine, "-smp", kind.cpus, "-m", 256,
                   "-accel", "tcg" if kind.icount else "tcg,thread=multi", "-rtc", "base=2026-01-01,clock=vm", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
                   "-kernel", lab.kernel(kind), "-initrd", ramdisk, "-append", "console=ttyAMA0 panic=-1 quiet nokaslr norandmaps", "-seed", 1,
                   "-netdev", "user,id=n0", "-device", "virtio-net-device,netdev=n0"]
        if kind.icount:
            # With sleep=off, a waiting board skips the time: every run is the same, but there is no time for a network.
            command += ["-icount", f"shift=2,sleep={'on' if sleep else 'off'}"]
        if not wide and kind.pmu:
            command += ["-dtb", lab.device_tree(kind)]
        return command

    @property
    def text(self):
        return self.process.out.replace("\r", "")

    def until(self, pattern, seconds=300):
        """Waits until the board has printed the pattern. Returns the match."""
        def found():
            match = re.search(pattern, self.text, re.M)
            if not match and not self.process.alive():
                match = re.search(pattern, self.text, re.M)
                if not match:
                    raise AssertionError(f"the board ended without {pattern!r}:\n{self.text[-4000:]}\n{self.process.err[-2000:]}")
            return match

        try:
            return wait_until(found, seconds, f"{pattern!r} from the board")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text[-4000:]}\n{self.process.err[-2000:]}") from None

    def starved(self):
        """The total seconds for which QEMU's threads waited for a CPU of this machine, or this machine waited for its host (steal time)."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, IndexError):
                total += int(task.read_text().split()[1]) / 1e9
        steal = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]
        return total + int(steal) / os.sysconf("SC_CLK_TCK")

    def finish(self, seconds=400):
        self.until(r"^board: done$", seconds)
        self.process.wait(120)
        return self.text

    def stop(self):
        if self.process.alive():
            self.process.stop()
