"""Times of threads from records that perf script prints."""
import pytest
import switches

# Thread 7 runs on CPU 0, leaves, runs on CPU 1 and exits there. The record of its leaving has no thread id. Thread 8 existed before the recording.
PERF = """
 swapper     0 [000]    99.999999000: sched:sched_waking: comm=a pid=7 prio=120 target_cpu=000
 swapper     0 [000]   100.000000000: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     7/7
       a     7 [000]   100.000000100: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
       b     8 [001]   100.000000150: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     0/0
       a     7 [000]   100.000000300: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     9/9
       c     9 [000]   100.000000300: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     7/7
 two words    9 [000]   100.999999500: sched:sched_waking: comm=a pid=7 prio=120 target_cpu=001
       a     7 [001]   101.000000000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
       a     7 [001]   101.000000040: PERF_RECORD_EXIT(7:7):(1:1)
     :-1    -1 [001]   101.000000050: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0
       c     9 [000]   101.000000400: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     0/0
 swapper     0 [000]   101.000000450: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     9/9
       c     9 [000]   101.000000450: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
       b     8 [001]   101.000000500: sched:sched_waking: comm=c pid=9 prio=120 target_cpu=000
       c     9 [000]   101.000000600: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     0/0
"""


def test_turns_and_wake_ups_of_threads():
    found = switches.Scheduling()
    switches.read_records(found, PERF)
    assert found.run_ns == {7: 200 + 40, 9: 1_000_000_100 + 150}
    assert found.span_ns == {7: 999_999_940, 9: 1_000_000_300} and found.last_ns == {7: 40, 9: 150}
    assert found.turns == {7: 2, 9: 2}
    # Waits since its wake-ups and since its preemption. The wait after the last preemption is not counted.
    assert found.queued_ns == {7: 1100 + 500, 9: 50} and +found.preempted == {9: 1}
    assert found.wakings == {(0, 7): 1, (9, 7): 1, (8, 9): 1} and found.early == {9: 1}


def test_a_last_turn_that_may_begin_after_the_threads_own_events():
    """Only a short turn after a preemption counts."""
    def ending(way, ns):
        found = switches.Scheduling()
        switches.read_records(found, "".join(f" a     7 [001]   {at // 10**9}.{at % 10**9:09}: PERF_RECORD_{record}\n" for at, record in (
            (10**9, "SWITCH_CPU_WIDE IN           prev pid/tid:     0/0"), (10**9 + 500, f"SWITCH_CPU_WIDE {way}  next pid/tid:     0/0"),
            (10**9 + 900, "SWITCH_CPU_WIDE IN           prev pid/tid:     0/0"), (10**9 + 900 + ns, "EXIT(7:7):(1:1)"))))
        assert found.turns == {7: 2}
        return found.ending[7]

    assert [ending("OUT preempt", 99_999), ending("OUT preempt", 100_000), ending("OUT", 1)] == [1, 0, 0]


def test_a_life_begins_between_its_creation_and_its_first_moment_on_a_cpu():
    life = {"slept": 40, "preempted": 50, "late_ns": 30_000_000, "span_by_perf_ns": 3_000_000_000}
    for total in (2_999_000_000, 3_000_000_000, 3_031_000_000):
        assert switches.check_life(total, life) == 1_000_000
    for total in (2_998_999_999, 3_031_000_001):
        with pytest.raises(AssertionError):
            switches.check_life(total, life)
