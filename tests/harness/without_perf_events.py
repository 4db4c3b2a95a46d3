#!/usr/bin/python3
"""Runs a command that may not call perf_event_open(2), as in a container with a strict seccomp profile: without_perf_events.py [--errno NAME] [--only processes|cpus] COMMAND...
The call fails with EPERM or with the named error, as on other kernels. With --only, it fails only for events of processes, or only for events of whole CPUs (pid -1)."""
import ctypes
import errno
import os
import struct
import sys

ERROR = errno.EPERM
if sys.argv[1] == "--errno":
    ERROR = getattr(errno, sys.argv[2])
    del sys.argv[1:3]
ONLY = ""
if sys.argv[1] == "--only":
    ONLY = sys.argv[2]
    del sys.argv[1:3]
NUMBER = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06

# In struct seccomp_data, the first word is the call number and the arguments start at offset 16. The second argument is the pid.
PID_OFFSET, ANY_PID = 24, 0xFFFFFFFF
target_checks = {"": (), "processes": ((LOAD_WORD, 0, 0, PID_OFFSET), (JUMP_IF_EQUAL, 1, 0, ANY_PID)), "cpus": ((LOAD_WORD, 0, 0, PID_OFFSET), (JUMP_IF_EQUAL, 0, 1, ANY_PID))}[ONLY]
filters = b"".join(struct.pack("=HBBI", *one) for one in (
    (LOAD_WORD, 0, 0, 0),
    (JUMP_IF_EQUAL, 0, 1 + len(target_checks), NUMBER),
    *target_checks,
    (RETURN, 0, 0, SECCOMP_RET_ERRNO | ERROR),
    (RETURN, 0, 0, SECCOMP_RET_ALLOW),
))
text = ctypes.create_string_buffer(filters, len(filters))
program = struct.pack("@HP", len(filters) // 8, ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)):
    if libc.prctl(*call) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
