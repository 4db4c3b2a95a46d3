"""Times of threads from the records that perf script prints."""
import pytest
import switches

# Thread 7 comes to CPU 0, goes, comes to CPU 1 and ends there, which takes its number away; 8 was there before the recording.
PERF = """
 swapper     0 [000]   100.000000000: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     7/7
       a     7 [000]   100.000000100: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
       b     8 [001]   100.000000150: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     0/0
       a     7 [000]   100.000000300: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     9/9
       c     9 [000]   100.000000300: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     7/7
       a     7 [001]   101.000000000: PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0
     :-1    -1 [001]   101.000000050: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0
       c     9 [000]   101.000000400: PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0
"""


def test_turns_of_threads():
    run = switches.OnCpus()
    switches.read_turns(run, PERF)
    assert run == {7: 200 + 50, 9: 1_000_000_100}
    assert run.span == {7: 999_999_950, 9: 1_000_000_100}


def test_a_life_begins_between_its_creation_and_its_first_moment_on_a_cpu():
    life = {"slept": 40, "preempted": 50, "late_ns": 30_000_000, "span_by_perf_ns": 3_000_000_000}
    for total in (2_999_000_000, 3_000_000_000, 3_031_000_000):
        assert switches.check_life(total, life) == 1_000_000
    for total in (2_998_999_999, 3_031_000_001):
        with pytest.raises(AssertionError):
            switches.check_life(total, life)
