"""Long-lived and short-lived processes for tests of the whole machine. Each process names itself after its pid (in /proc and to the kernel), so the
expected name is known for each pid."""
import sys

import flamewire

# `old` processes stay: every 100th is always busy, the others run for 2 ms per second. Per second, `young` processes start that take 30 ms of CPU time
# each, and `programs` processes start that execute another program and take about as much.
PROGRAM = """
import ctypes, os, sys, time
old, young, programs, nice = (int(word) for word in sys.argv[1:5])
libc = ctypes.CDLL(None)
os.nice(nice)
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(200))
def live(letter, seconds, pause=0):
    if os.fork() == 0:
        libc.prctl(15, f"{letter}{os.getpid()}".encode(), 0, 0, 0)
        libc.prctl(1, 9)
        if letter == "x":
            os.execv("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"])
        burn(seconds)
        while pause:
            time.sleep(pause)
            burn(seconds)
        os._exit(0)
for number in range(old):
    live("o", 1000 if number % 100 == 0 else 0.002, 1)
print("ready", flush=True)
alive = 0
due = time.monotonic()
born = 0
while True:
    # On a busy machine there are fewer of them, so that their number does not grow.
    if young + programs and time.monotonic() > due and alive < 8:
        live("x" if born % (young + programs) < programs else "y", 0.03)
        born += 1
        alive += 1
        due = max(due + 1 / (young + programs), time.monotonic() - 0.1)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            alive -= 1
    except ChildProcessError:
        pass
    time.sleep(0.01)
"""


def command(old, young=0, programs=0, nice=10):
    return [sys.executable, "-c", PROGRAM, str(old), str(young), str(programs), str(nice)]


def ready(process):
    flamewire.wait_until(lambda: "ready" in process.out, 60, "the processes")
    return process
