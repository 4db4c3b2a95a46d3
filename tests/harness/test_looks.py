"""CPU time between two moments, for made-up readings and for a process that reads its own clock."""
import subprocess
import sys

import looks


def test_bounds_come_from_the_looks_around_a_moment():
    these = looks.Looks(1)
    these.looks = [(0, 10, 100), (1000, 1010, 200), (2000, 2010, 500), (3000, 3010, 700)]
    assert these.between(1500, 2500) == (500 - 500, 700 - 200)
    assert these.between(1010, 3000) == (500 - 500, 700 - 200)
    assert these.between(500, 2999) == (500 - 200, 700 - 100)
    these.threads = 2
    assert these.between(500, 2999) == (max(0, 300 - 2 * looks.TICK_NS), 600 + 2 * looks.TICK_NS)


CHILD = """
import threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def say():
    print(time.monotonic_ns(), time.process_time_ns(), flush=True)
def burn_and_stay():
    burn(0.2)
    done.wait()
done = threading.Event()
other = threading.Thread(target=burn_and_stay)
time.sleep(0.1)
say()
other.start()
burn(0.3)
say()
input()
done.set()
"""


def test_a_process_that_reads_its_own_clock():
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with looks.Looks(child.pid) as these:
        (begin, before), (end, after) = (map(int, child.stdout.readline().split()) for _ in range(2))
    child.communicate("\n")
    least, most = these.between(begin, end)
    assert 0.3e9 <= after - before and least <= after - before <= most, (least, after - before, most)
