"""Our exports, read by speedscope's own page: the same functions, by thread and event, and the initially displayed profile."""
import collections
import json
import os
import re
import subprocess

import jsonschema
import pytest
from flamewire import ROOT
from recording import PACKAGES, Recording, functions

SPEEDSCOPE = PACKAGES / "node_modules" / "speedscope" / "dist" / "release"
pytestmark = pytest.mark.skipif(not SPEEDSCOPE.is_dir(), reason="the packages of the browser tests are not installed (target flamewire_e2e_packages): nothing was compared")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recording(tmp_path_factory.mktemp("speedscope"), "demo-workload", "3")


def read(recording, *files):
    answer = recording.directory / "read.json"
    subprocess.run(["node", ROOT / "tests" / "oracle" / "exports" / "speedscope.mjs", answer, *files], check=True, timeout=240,
                   env={**os.environ, "FLAMEWIRE_E2E_PACKAGES": str(PACKAGES)})
    answers = json.loads(answer.read_text())
    assert not any(one["errors"] for one in answers), answers
    return answers


def stacks_of(saved, profile):
    """Stack -> weight, from the frames that are open between two of the events that speedscope writes."""
    names = [frame["name"].replace(";", ":") for frame in saved["shared"]["frames"]]
    assert profile["type"] == "evented" and profile["startValue"] == 0
    stacks, opened, last = collections.Counter(), [], 0
    for event in profile["events"]:
        if event["at"] > last and opened:
            stacks["", tuple(names[frame] for frame in opened)] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            opened.append(event["frame"])
        else:
            assert opened.pop() == event["frame"]
    assert not opened and last == profile["endValue"]
    return stacks


def percent_of(cell):
    """speedscope prints shares above 99 % and below 0.01 % as ">99%" and "<0.01%"."""
    shown = re.search(r"\(([<>]?[\d.]+)%\)", cell)[1]
    bounds = {">99": 99.5, "<0.01": 0.0}
    return bounds[shown] if shown in bounds else float(shown)


def test_speedscope_reads_our_file(recorded):
    path = recorded.file("speedscope")
    path = path.rename(path.with_suffix(".json"))
    (answer,) = read(recorded, path)
    assert answer["imported"] == "Importing as speedscope json file"
    saved = answer["saved"]
    wanted = {}
    for event in recorded.events:
        for (comm, names), number in recorded.stacks(event, weights=True).items():
            wanted.setdefault((event, comm), collections.Counter())["", names] += number
    assert {comm for _, comm in wanted} == {"demo-workload", "city-1", "city-2", "logger"}
    found = {tuple(re.fullmatch(r"(\S+) (.*) \(\d+\)", one["name"]).groups()): one for one in saved["profiles"]}
    assert set(found) == set(wanted)
    for (event, comm), profile in found.items():
        assert profile["unit"] == ("nanoseconds" if recorded.events[event]["unit"] == "ns" else "none")
        assert stacks_of(saved, profile) == wanted[event, comm], (event, comm)
    # It opens the busiest thread of the first event. Each function has one row, however many of its lines were hit.
    first = next(iter(recorded.events))
    event, comm = list(found)[saved["activeProfileIndex"]]
    assert event == first and sum(wanted[event, comm].values()) == max(sum(wanted[one].values()) for one in wanted if one[0] == first)
    table = functions(wanted[event, comm])
    total = sum(own for own, _ in table.values())
    shown = [(name.replace(";", ":"), percent_of(own), percent_of(all_of)) for all_of, own, name in answer["rows"]]
    assert len(shown) >= 20
    # Two functions can have one name, for example inlined and not inlined, or in two files.
    names = collections.Counter(name for name, *_ in shown)
    places = collections.Counter(frame["name"].replace(";", ":") for frame in json.loads(path.read_text())["shared"]["frames"])
    checked = 0
    for name, own, all_of in shown[:20]:
        if places[name] > 1:
            continue
        checked += 1
        assert names[name] == 1, name
        assert own == pytest.approx(100 * table[name][0] / total, rel=0.06, abs=0.06), name
        assert all_of == pytest.approx(100 * table[name][1] / total, rel=0.06, abs=0.06), name
    assert checked >= 10
    assert [own for _, own, _ in shown] == sorted((own for _, own, _ in shown), reverse=True)


def test_the_format_as_published(recorded):
    """The schema that comes with speedscope."""
    schema = json.loads((SPEEDSCOPE / "file-format-schema.json").read_text())
    schema.pop("$ref", None)
    for options in ([], ["-e", "cpu-clock"]):
        jsonschema.Draft7Validator({**schema, "$ref": "#/definitions/FileFormat.File"}).validate(json.loads(recorded.export("speedscope", *options)))


def test_speedscope_reads_our_folded_stacks(recorded):
    path = recorded.file("collapsed", "-e", "cpu-clock")
    path = path.rename(path.with_name("folded.collapsedstack.txt"))
    (answer,) = read(recorded, path)
    assert answer["imported"] == "Importing as collapsed stack format"
    (profile,) = answer["saved"]["profiles"]
    assert stacks_of(answer["saved"], profile) == {("", (comm, *names)): number for (comm, names), number in recorded.stacks("cpu-clock", weights=False).items()}
