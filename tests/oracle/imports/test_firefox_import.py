"""Profiles of all versions of the Firefox Profiler's format: its own code upgrades an old profile to the newest version, and importing either gives the same result."""
import copy
import json
import os
import pathlib
import struct
import subprocess

import pytest
from flamewire import BIN
from recording import PACKAGES, Recording

VIEWER = PACKAGES / "node_modules" / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"
KEEP = pathlib.Path(__file__).with_name("keep_profile.mjs")
NEWEST = 75
pytestmark = pytest.mark.skipif(not VIEWER.is_file(), reason="the packages of the browser tests are not installed (target flamewire_e2e_packages): nothing was compared")


def loaded(path):
    """The content of a profile after the Firefox Profiler has loaded the file."""
    kept = path.with_suffix(".kept.json")
    environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(path.parent), "HOME": str(path.parent), "FLAMEWIRE_KEPT_PROFILE": str(kept), "FLAMEWIRE_NEWEST_VERSION": str(NEWEST)}
    subprocess.run(["node", "--import", KEEP, VIEWER, "--daemon", path, "--session", "one"], check=True, capture_output=True, env=environment, timeout=240)
    return json.loads(kept.read_text())


def upgraded(path, profile):
    path.write_text(json.dumps(profile))
    newest = loaded(path)
    # If the package has a newer version, review the format's changes and update the version in the notice about newer versions.
    assert newest["meta"]["preprocessedProfileVersion"] == NEWEST
    assert "prefixOffset" in newest["shared"]["stackTable"] and "lib" not in newest["shared"]["resourceTable"] and "flags" in newest["shared"]["funcTable"]
    return newest


def imported(path, profile=None):
    """The imported file: everything that our exports contain, except the time of the import and the marks of return addresses."""
    if profile is not None:
        path.write_text(json.dumps(profile))
    run = [BIN / "flamewire", "export", path, "--format"]
    data = json.loads(subprocess.run([*run, "firefox"], check=True, capture_output=True, timeout=240).stdout)
    del data["meta"]["startTime"]
    for thread in data["threads"]:
        del thread["flamewire"]["returns"]
    table = json.loads(subprocess.run([*run, "json"], check=True, capture_output=True, timeout=240).stdout)
    return data, table["events"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    recorded = Recording(tmp_path_factory.mktemp("firefox"), "demo-workload", "3")
    return json.loads(recorded.export("firefox"))


def without_our_members(profile):
    profile = copy.deepcopy(profile)
    for thread in profile["threads"]:
        del thread["flamewire"]
    return profile


def of_version_40(profile):
    """The format before version 41: each thread has its own list of the libraries that it uses."""
    profile = without_our_members(profile)
    libraries = profile.pop("libs")
    profile["meta"]["preprocessedProfileVersion"] = 40
    for number, thread in enumerate(profile["threads"]):
        used = sorted(set(thread["resourceTable"]["lib"]), reverse=number % 2 == 1)
        # Libraries with the same name differ by their debug id.
        thread["libs"] = [{**libraries[one], "breakpadId": f"{one:032X}0"} for one in used]
        thread["resourceTable"]["lib"] = [used.index(one) for one in thread["resourceTable"]["lib"]]
        del thread["nativeSymbols"]["functionSize"]
    return profile


FORMS = {"as we write it": lambda profile: profile, "without our members": without_our_members, "of version 40": of_version_40}


@pytest.mark.parametrize("form", FORMS)
def test_the_newest_version_imports_like_the_old_one(exported, tmp_path, form):
    old = FORMS[form](exported)
    newest = upgraded(tmp_path / "old.json", old)
    first, second = imported(tmp_path / "old.json"), imported(tmp_path / "new.json", newest)
    assert first == second
    data, events = first
    # The profile has enough to compare: stacks, files, lines, modules and inlined frames.
    frames = [frame for event in events for frame in event["functions"]]
    assert max(len(thread["stackTable"]["prefix"]) for thread in data["threads"]) > 100
    assert len({frame.get("module") for frame in frames}) >= 4 and any(frame["kind"] == "inlined" for frame in frames)
    for column in (("funcTable", "fileName"), ("frameTable", "line")):
        assert sum(value is not None for thread in data["threads"] for value in thread[column[0]][column[1]]) > 20, column
    assert len(data["libs"]) >= 4


TYPES = {"b": 0, "B": 1, "h": 2, "H": 3, "i": 4, "I": 5, "f": 6, "d": 7}
JSON_SLAB = 10
COLUMNS = {
    ("stackTable", "frame"): "i", ("stackTable", "prefixOffset"): "i", ("frameTable", "flags"): "B", ("frameTable", "address"): "I", ("frameTable", "category"): "B",
    ("frameTable", "subcategory"): "B", ("frameTable", "func"): "i", ("frameTable", "lib"): "i", ("frameTable", "line"): "i", ("frameTable", "nativeSymbol"): "i",
    ("funcTable", "flags"): "B", ("funcTable", "name"): "i", ("funcTable", "source"): "i", ("funcTable", "resource"): "i", ("samples", "time"): "d",
}


def jslb(profile):
    """The container with binary columns in which samply saves profiles, written from its description (mstange/json-slabs, FORMAT.md)."""
    slabs = []

    def add(type, data):
        slabs.append((type, data))
        return {"$s": len(slabs) - 1}

    def packed(tables):
        return {name: {column: add(TYPES[COLUMNS[name, column]], struct.pack(f"<{len(values)}{COLUMNS[name, column]}", *values)) if (name, column) in COLUMNS else values
                       for column, values in table.items()} if isinstance(table, dict) else table for name, table in tables.items()}

    document = {**profile, "shared": add(JSON_SLAB, json.dumps(packed(profile["shared"])).encode()),
                "threads": [add(JSON_SLAB, json.dumps(packed(thread)).encode()) for thread in profile["threads"]]}
    add(JSON_SLAB, json.dumps(document).encode())
    entries, data, begin = b"", b"", 20 + 12 * len(slabs)
    for type, content in slabs:
        data += bytes(-(begin + len(data)) % 8)
        entries += struct.pack("<III", type, begin + len(data), len(content))
        data += content
    return b"\xdc\xdfJSLB\x01\0" + struct.pack("<III", 1, len(slabs), len(slabs) - 1) + entries + data


def test_a_jslb_file_is_its_json(exported, tmp_path):
    newest = upgraded(tmp_path / "old.json", without_our_members(exported))
    path = tmp_path / "profile.jslb"
    path.write_bytes(jslb(newest))
    # The Firefox Profiler reads the file written here as the same profile.
    assert loaded(path) == newest
    assert imported(path) == imported(tmp_path / "new.json", newest)
