"""Off-CPU time, wake-ups and thread states in stored captures, compared with perf's records of the same run and with the workload's own log."""
import json
import re
import subprocess

import pytest
from flamewire import BIN
from scheduling import AWAY, SWITCH_NS, WAKERS, Thread, check_queue, check_states, check_switches, check_wakers, recorded_ns, waker_function
from switches import table

STATES = ("run", "runnable", "blocked", "io_wait")
WAKING_SCENES = ["waits", "waits-attached", "waits-cgroup"]
PERF_SCENES = [*WAKING_SCENES, "switches", "switches-attached", "two-profilers", "two-profilers-second"]


def threads_of(replay):
    perf = {key: {int(tid): number for tid, number in value.items()} for key, value in replay.truth.items() if isinstance(value, dict)}
    perf["wakings"] = {(waker, woken): count for waker, woken, count in replay.truth.get("wakings", ())}
    lives = (json.loads(line) for line in replay.truth["output"] if line.startswith("{"))
    return {life["thread"]: Thread(life, replay.threads[str(life["tid"])], [(event, *row) for event, comm, *row in replay.rows if comm == life["thread"]], perf) for life in lives}


@pytest.mark.parametrize("thread, function", [("sleeper", "sleep_a_while"), ("pipe-reader", "read_from_pipe"), ("pipe-writer", "sleep_a_while"),
                                              ("mutex-waiter", "wait_for_mutex")])
def test_waits_are_as_long_as_measured_with_their_stacks(replayed, thread, function):
    """The program reads its clock before and after each wait: the difference is two calls, or one switch."""
    one = threads_of(replayed("waits"))[thread]
    found = one.weight(function)
    assert abs(found - one.life["waited_ns"]) <= SWITCH_NS * (one.slept + one.preempted), (found, one)


@pytest.mark.parametrize("name", PERF_SCENES)
def test_every_switch_is_counted_once(replayed, name):
    for one in threads_of(replayed(name)).values():
        check_switches(one)


@pytest.mark.parametrize("name, attached", [("switches", False), ("switches-attached", True)])
def test_every_switch_is_reported_once_with_its_stack(replayed, name, attached):
    """Two events count the same switches, and the first thread after attaching has two sets of them. The kernel gives all of their samples one id."""
    replay = replayed(name)
    assert ("duplicates 0 " not in replay.output) == attached, replay.output
    for one in threads_of(replay).values():
        assert one.count("context-switches") == one.perf_turns - 1, one
        assert one.weight("[not seen leaving]") == 0, one


@pytest.mark.parametrize("name", PERF_SCENES)
def test_states_add_up_to_the_life_by_perf(replayed, name):
    for one in threads_of(replayed(name)).values():
        check_states(one)


def test_disk_waits_are_io_waits(replayed):
    threads = threads_of(replayed("waits"))
    disk = threads.pop("disk-reader")
    # Some reads hit the disk's cache and do not block, so the program's waits include more than I/O waits.
    assert disk.life["waited_ns"] >= disk.weight("read_from_disk", "io-wait") > 0 and disk.blocked == 0, disk
    assert all(one.io_wait == 0 == one.weight("", "io-wait") for one in threads.values()), threads


def test_an_ended_thread_is_not_another_thread(replayed):
    """Records of whole CPUs have no thread id if a thread leaves its CPU for the last time."""
    replay = replayed("waits-cgroup")
    own = {str(one.tid) for one in threads_of(replay).values()}
    assert len(set(replay.threads) - own) == 1, replay.threads


@pytest.mark.parametrize("name", PERF_SCENES)
def test_threads_that_only_compute_never_sleep(replayed, name):
    for thread in ("burner-1", "burner-2"):
        assert replayed(name).weight(thread, "burn(", ["off-cpu", "io-wait"]) == 0


@pytest.mark.parametrize("name", WAKING_SCENES)
def test_each_sleep_has_its_waker(replayed, name):
    threads = threads_of(replayed(name))
    check_wakers(threads, dwarf=name != "waits-cgroup")
    for thread in ("sleeper", "mutex-holder", "idler"):
        assert set(threads[thread].wakings()) <= {"[woken by an interrupt]", "[not seen waking]"}, threads[thread].wakings()
    for woken, waker in WAKERS.items():
        found = threads[woken].wakings()
        assert set(found) == {f"[woken by {waker}]"}, found
        assert name == "waits-cgroup" or threads[woken].count("woken-by", waker_function(waker)) == found.total(), threads[woken].rows


@pytest.mark.parametrize("name", WAKING_SCENES)
def test_a_woken_thread_waits_for_a_cpu(replayed, name):
    for one in threads_of(replayed(name)).values():
        check_queue(one)


def test_two_profilers_are_reported(replayed):
    """The kernel gives the samples of both profilers one id. Stacks are then missing, but no time is lost, and the agent reports it."""
    one, two = replayed("two-profilers"), replayed("two-profilers-second")
    assert any("Another profiler takes samples of the same events" in replay.output for replay in (one, two)), (one.output, two.output)
    first, second = threads_of(one), threads_of(two)
    for thread in first:
        for kind in AWAY:
            # For a switch, the kernel writes one record after the other, each with its own time.
            apart = abs(first[thread].weight("", kind) - second[thread].weight("", kind))
            assert apart <= SWITCH_NS * (first[thread].slept + first[thread].preempted + 1), (thread, kind, apart)


def test_only_the_event_asked_for(replayed):
    replay = replayed("run-queue")
    assert {event for event, *_ in replay.rows} == {"run-queue"}
    exported = json.loads(flamewire("export", replay.session, "--format", "json"))
    assert [event["name"] for event in exported["events"]] == ["run-queue"]
    # --no-kernel
    assert not any("schedule" in line for line in flamewire("export", replay.session, "--format", "collapsed").splitlines())


def flamewire(*words):
    return subprocess.run([str(word) for word in (BIN / "flamewire", *words)], check=True, capture_output=True, text=True, timeout=60).stdout


# The views of the server and the command line.

def opened(start, replay):
    server = start.server("--import", replay.session)
    server.wait_ended()
    return server


def states(server, **parameters):
    answer = server.get("/api/thread-states", **parameters)
    assert answer["known"]
    return answer, {one["comm"]: one for one in answer["threads"]}


def ms(ns):
    """Times are ns, converted to ms. A double has enough digits."""
    return pytest.approx(ns / 1e6, rel=1e-9)


def test_states_in_slices_and_ranges(replayed, start):
    replay = replayed("waits")
    threads = threads_of(replay)
    server = opened(start, replay)
    whole, found = states(server, slices=40)
    length = (whole["end_ms"] - whole["start_ms"]) / 40
    for thread, one in threads.items():
        answer = found[thread]
        assert [answer[state] for state in STATES] == [ms(ns) for ns in (one.run, one.runnable, one.blocked, one.io_wait)], one
        for state in STATES:
            assert sum(answer[f"{state}_slices"]) == pytest.approx(answer[state], rel=1e-9)
        for i in range(40):
            assert sum(answer[f"{state}_slices"][i] for state in STATES) <= length * (1 + 1e-9)
    middle = (whole["start_ms"] + whole["end_ms"]) / 2
    (_, first), (_, second) = states(server, end=middle), states(server, start=middle)
    for thread, one in found.items():
        for state in STATES:
            assert sum(half[thread][state] for half in (first, second) if thread in half) == pytest.approx(one[state], rel=1e-9), thread
    assert list(states(server, tid=found["sleeper"]["tid"])[1]) == ["sleeper"]


def test_turns_and_switches_of_the_scheduling_view(replayed, start):
    threads = threads_of(replayed("waits"))
    answer = opened(start, replayed("waits")).get("/api/scheduling")
    assert answer["known"]
    found = {one["comm"]: one for one in answer["threads"]}
    for thread, one in threads.items():
        row = found[thread]
        assert row["preempted"] == one.perf_preempted and row["slept"] + row["io_waits"] == one.perf_turns - 1 - one.perf_preempted, (row, one)
        # The last turn is not a slice: the thread exits in it and then leaves its CPU forever.
        assert row["slice"]["count"] == one.perf_turns - 1 and 0 < one.run - 1e6 * row["slice"]["sum"] <= one.perf_last_ns + SWITCH_NS, (row, one)
        # Waits for a CPU: of a new thread, after each preemption and after each wake-up that was recorded.
        waits = 1 + one.perf_turns - 1 - one.wakings()["[not seen waking]"]
        assert row["latency"]["count"] == waits and row["latency"]["sum"] == ms(one.runnable), (row, one)
        for lengths in (row["slice"], row["latency"]):
            assert lengths["min"] <= lengths["p50"] <= lengths["p95"] <= lengths["p99"] <= lengths["max"] <= lengths["sum"] * (1 + 1e-9), lengths
    for total, of_thread in ((answer["all"]["preempted"], lambda row: row["preempted"]), (answer["all"]["slice"]["count"], lambda row: row["slice"]["count"])):
        assert total == sum(of_thread(row) for row in answer["threads"])


def test_scheduling_report_is_a_table(replayed):
    replay = replayed("waits")
    report = flamewire("report", "--sched", replay.session)
    assert "record woken-by" not in report  # wake-ups were recorded
    found = table(report)
    for thread, one in threads_of(replay).items():
        numbers = found[thread]
        assert len(numbers) == 4 + 3 + 5 + 5, numbers
        # The table rounds to tenths.
        assert numbers[:4] == [pytest.approx(ns / 1e6, abs=0.05 + 1e-9) for ns in (one.run, one.runnable, one.blocked, one.io_wait)], (numbers, one)
        assert numbers[4] == one.perf_preempted and numbers[5] + numbers[6] == one.perf_turns - 1 - one.perf_preempted, (numbers, one)
    cut = flamewire("report", "--sched", "--limit", "2", replay.session)
    assert len(table(cut)) == 2 and re.search(r"^… and \d+ more$", cut, re.M), cut


def test_scheduling_report_of_other_events_reports_what_to_record(replayed):
    outcome = subprocess.run([BIN / "flamewire", "report", "--sched", replayed("exec").session], capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 1 and "--events off-cpu" in outcome.stderr, outcome


def test_time_is_recorded_until_pauses_and_over_changes(replayed, start):
    """Threads sleep, compute and wait over a pause, new events and another unwind mode: each has all of the recorded time, and all have the same."""
    replay = replayed("pauses")
    least, most = recorded_ns(replay.truth["commands"])
    totals = {line.split()[1]: sum(map(int, re.findall(r"(?:run|runnable|blocked|io-wait) (\d+)", line))) for line in replay.lines if line.startswith("thread ")}
    whole = totals["idler"]
    assert least <= whole <= most, (least, whole, most)
    assert replay.weight("idler", "", ["off-cpu"]) == whole
    # In this capture, none of these threads is on a CPU while events are replaced.
    for thread in ("waits-workload", "sleeper", "pipe-reader", "pipe-writer", "mutex-holder", "mutex-waiter"):
        assert totals[thread] == whole, (thread, totals)
    # A thread that is on a CPU while events are replaced has an unknown state until its next switch.
    assert all(least <= totals[thread] <= whole for thread in ("burner-1", "burner-2")), totals
    server = opened(start, replay)
    answer, found = states(server)
    summary = {event: {one["comm"]: one["weight"] for one in server.get("/api/thread-summary", event=event)["threads"]} for event in AWAY}
    assert summary["off-cpu"]["idler"] == whole
    for thread, one in found.items():
        assert sum(one[state] for state in STATES) == ms(totals[thread])
    (_, paused_from, _), (_, _, paused_until) = (next(command for command in replay.truth["commands"] if command[0] == name) for name in ("pause", "resume"))
    assert answer["end_ms"] - answer["start_ms"] > (whole + paused_until - paused_from) / 1e6 - (most - least) / 1e6


def rows_of(server, **parameters):
    return {row["tid"]: row for row in server.get("/api/thread-summary", **parameters)["threads"]}


def test_cpu_time_of_threads_from_clock_samples_and_counters(replayed, start):
    server = opened(start, replayed("thread-counters"))
    groups = {group["thread"]["tid"]: next(one["series"] for one in group["counters"] if one["name"] == "task-clock")
              for group in server.get("/api/counters", by="thread", slices=2000)["groups"]}
    assert len(groups) == 2
    times = next(iter(groups.values()))
    # Samples of a clock measure CPU time. The range ends before counters by thread began.
    end = times["start_ms"][0] // 100 * 100
    sampled = rows_of(server, start=0, end=end, slices=20)
    assert set(sampled) == set(groups)
    for row in sampled.values():
        assert row["state"] == "alive" and row["cpu_from"] == "clock_samples"
        assert row["cpu_percent"] == pytest.approx(100 * row["weight"] / (end * 1e6), rel=1e-9)
        assert len(row["slices"]) == 20 and sum(row["slices"]) == row["samples"]
    assert all("slices" not in row for row in rows_of(server).values())
    # With counters by thread, CPU time is the counted time. The range ends with a reading.
    first, last = times["start_ms"][0], times["end_ms"][-2]
    for tid, row in rows_of(server, start=first, end=last).items():
        assert row["cpu_from"] == "counted"
        assert row["cpu_percent"] == pytest.approx(100 * sum(groups[tid]["value"][:-1]) / 1e6 / (last - first), rel=1e-9), row


def test_threads_of_other_events_have_their_share_of_what_was_counted(replayed, start):
    """Switches do not measure CPU time. Threads get their share of the target's task-clock according to their switches."""
    server = opened(start, replayed("switches"))
    clock = next(one["series"] for one in server.get("/api/counters", slices=2000)["groups"][0]["counters"] if one["name"] == "task-clock")
    whole = 100 * sum(clock["value"]) / 1e6 / (clock["end_ms"][-1] - clock["start_ms"][0])
    answer = rows_of(server, event="context-switches")
    weight = sum(row["weight"] for row in answer.values())
    assert len(answer) > 5
    for row in answer.values():
        assert row["cpu_from"] == "share" and row["cpu_percent"] == pytest.approx(whole * row["weight"] / weight, rel=1e-9), row
