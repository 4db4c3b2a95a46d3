"""CPU time between moments, of made-up looks and of this process."""
import os
import threading
import time

import looks


def test_bounds_come_from_the_looks_around_a_moment():
    these = looks.Looks(1)
    these.looks = [(0, 10, 100), (1000, 1010, 200), (2000, 2010, 500), (3000, 3010, 700)]
    assert these.between(1500, 2500) == (500 - 500, 700 - 200)
    assert these.between(1010, 3000) == (500 - 500, 700 - 200)
    assert these.between(500, 2999) == (500 - 200, 700 - 100)
    these.threads = 2
    assert these.between(500, 2999) == (max(0, 300 - 2 * looks.TICK_NS), 600 + 2 * looks.TICK_NS)


def test_own_time():
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    done = threading.Event()

    def burn_and_stay():
        burn(0.2)
        done.wait()

    with looks.Looks(os.getpid()) as these:
        begin, before = time.monotonic_ns(), time.process_time_ns()
        other = threading.Thread(target=burn_and_stay)
        other.start()
        burn(0.3)
        end, after = time.monotonic_ns(), time.process_time_ns()
    done.set()
    other.join()
    least, most = these.between(begin, end)
    assert least <= after - before <= most and most > 0.3e9, (least, after - before, most)
