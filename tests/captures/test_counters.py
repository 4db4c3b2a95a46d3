"""Counters in the server's answers, compared with readings of /proc from the time of the capture."""
from looks import Looks


def test_counters_of_a_window(replayed, served):
    truth, (server, session) = replayed("phases").truth, served("phases")
    looks = Looks(0)
    looks.looks, looks.threads = [tuple(map(int, look.split())) for look in truth["looks"]], truth["threads"]
    (group,) = server.get("/api/counters", start=1000, end=6000)["groups"]
    counters = {counter["name"]: counter for counter in group["counters"]}
    clock = counters["task-clock"]
    # The window of 5 s has ten readings, with at most one more or less.
    elapsed = group["elapsed_ms"] / 1000
    assert 4.4 <= elapsed <= 5.6
    # CPU time of the same interval, from /proc.
    begin, end = (session["start_ns"] + clock["series"][name][place] * 1e6 for name, place in (("start_ms", 0), ("end_ms", -1)))
    least, most = looks.between(begin, end)
    assert 0 < least <= clock["value"] <= most, (clock, least, most)
    (utilized,) = [figure["value"] for figure in clock["derived"] if figure["label"] == "CPUs utilized"]
    assert abs(utilized - clock["value"] / 1e9 / elapsed) < 0.01
    assert 97 <= clock["coverage_percent"] <= 103
    for counter in counters.values():
        if counter["status"] == "counted":
            assert abs(sum(counter["series"]["value"]) - counter["value"]) <= 1e-9 * counter["value"], counter
            assert len(counter["series"]["value"]) == len(counter["series"]["end_ms"]) >= 9
        else:
            assert "value" not in counter and "per_second" not in counter and not counter["series"]["value"]
    assert counters["context-switches"]["status"] == "counted"
