"""System calls of the agent's sampler thread must go through base/system.h or agent/perf/kernel.h: captures record only these."""
import re

from files import text_of

SAMPLER = ("src/agent/perf/", "src/agent/process/", "src/agent/pipeline/", "src/agent/recording/", "src/agent/counting",
           "src/unwind/", "src/elf/", "src/base/clock.cc")
# The two interfaces; memory that is mapped to test page faults; the thread of the JIT reader; the wake-up eventfd.
ALLOWED = {"src/agent/perf/kernel.h": {"sysconf"}, "src/agent/perf/kernel.cc": {"syscall", "ioctl", "read", "mmap", "poll"},
           "src/agent/perf/event_probe.cc": {"mmap"}, "src/agent/process/jit_reader.cc": {"poll", "read"}, "src/agent/recording/recorder_mailbox.cc": {"read"}}
CALL = re.compile(r"(?<![\w>:])::(access|clock_gettime|fstat|geteuid|getpid|getrandom|ioctl|lstat|mmap|open|openat|opendir|poll|pread|"
                  r"process_vm_readv|read|readdir|readlink|stat|statfs|syscall|sysconf)\(")


def direct_calls(name: str, text: str) -> list[str]:
    if not name.startswith(SAMPLER):
        return []
    allowed = ALLOWED.get(name, set())
    return [f"{name}:{number}: {call[1]}() is called directly; use System::current() (base/system.h), so that captures record it"
            for number, line in enumerate(text.splitlines(), 1) for call in CALL.finditer(line) if call[1] not in allowed]


def check(names: list[str]) -> list[str]:
    return [finding for name in names if name.endswith((".cc", ".h")) for finding in direct_calls(name, text_of(name))]
