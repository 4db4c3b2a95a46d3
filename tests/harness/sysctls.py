"""Kernel settings, changed for the duration of a test."""
import contextlib
import pathlib

KERNEL = pathlib.Path("/proc/sys/kernel")


@contextlib.contextmanager
def sysctl(**values):
    before = {name: (KERNEL / name).read_text() for name in values}
    try:
        for name, value in values.items():
            (KERNEL / name).write_text(f"{value}\n")
        yield
    finally:
        for name, value in before.items():
            (KERNEL / name).write_text(value)
