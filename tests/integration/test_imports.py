"""Files of other tools become sessions through --import and through uploads. A few lines of Python, without our code, compute the
expected values from the files."""

import collections
import json
import os
import random
import re
import subprocess

from flamewire import BIN, TESTS_BIN, Tree, wait_until


def folded_file(path, seed=3, stacks=3000):
    generator = random.Random(seed)
    lines = []
    for _ in range(stacks):
        depth = generator.randrange(1, 30)
        lines.append(";".join(f"ns::function_{generator.randrange(40)}(int, char const*)" for _ in range(depth)) + f" {generator.randrange(1, 50)}")
    path.write_text("\n".join(lines) + "\n")
    return lines


def totals(lines):
    """Samples of each function, self and total. A recursive function counts once per stack."""
    own, total, sum_ = collections.Counter(), collections.Counter(), 0
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        frames = stack.split(";")
        own[frames[-1]] += int(count)
        for name in set(frames):
            total[name] += int(count)
        sum_ += int(count)
    return own, total, sum_


def check(server, session, lines):
    own, total, sum_ = totals(lines)
    answer = server.get("/api/functions", session=session, limit=1000)
    assert answer["total"]["samples"] == sum_
    assert {one["name"]: (one["self"], one["total"]) for one in answer["functions"]} == {name: (own[name], total[name]) for name in total}
    status, _, text = server.request("GET", f"/api/export/session/{session}", format="collapsed")
    assert status == 200
    merged = collections.Counter()
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        merged[stack] += int(count)
    assert sorted(text.decode().splitlines()) == sorted(f"{stack} {count}" for stack, count in merged.items())


def upload(server, data, name, slice_bytes=1 << 20):
    identifier = f"test-{os.urandom(8).hex()}"
    for offset in range(0, len(data), slice_bytes):
        status, _, body = server.request("PUT", f"/api/uploads/{identifier}", data[offset : offset + slice_bytes], offset=offset, size=len(data))
        assert status == 200, body
    status, _, begun = server.request("POST", "/api/imports", {"upload": identifier, "name": name})
    assert status == 200, begun

    def ended():
        return next((one for one in server.get("/api/imports")["imports"] if one["id"] == begun["id"] and one["state"] != "running"), None)

    return wait_until(ended, 60, "the end of the import"), identifier


def test_folded_stacks_at_the_start_and_by_an_upload(start, tmp_path):
    lines = folded_file(tmp_path / "stacks.folded")
    server = start.server("--import", tmp_path / "stacks.folded")
    server.wait_ended()
    session = server.only_session()
    assert session["target"] == "stacks.folded" and session["end_reason"] == "imported", session
    assert [notice["code"] for notice in session["notices"]] == ["import-no-times"], session["notices"]
    check(server, session["id"], lines)

    # Uploaded in slices, as the page does, without the last line break.
    other = folded_file(tmp_path / "other.txt", seed=4)
    done, identifier = upload(server, "\n".join(other).encode(), "C:\\files/other.txt", slice_bytes=100_000)
    assert done["state"] == "done" and done["name"] == "other.txt" and done["problem"] == "", done
    check(server, done["session"], other)
    # The upload is not kept in addition to the session.
    assert server.request("GET", f"/api/uploads/{identifier}")[0] == 404
    # It is a session like any other: a restarted server still has it.
    data = server.data_dir
    server.stop()
    again = start.server(data_dir=data, name="again")
    check(again, done["session"], other)
    assert again.request("DELETE", f"/api/sessions/{done['session']}")[0] == 200


def test_a_recording_of_the_agent_is_imported_whole(start, tmp_path):
    recording = tmp_path / "board.flw"
    subprocess.run([BIN / "flamewire-agent", "--output", recording, "--events", "cpu-clock", "--", TESTS_BIN / "shares-workload", "2"], check=True, timeout=60)
    server = start.server("--import", recording)
    session = wait_until(lambda: server.sessions() and server.sessions()[0], 30, "the import")
    assert "board" in session["id"] and session["samples"] > 0
    assert Tree(server.get("/api/flamegraph", session=session["id"])).weight > 0
    assert recording.exists()


def test_an_import_is_cancelled(start, tmp_path):
    """Cancels a running import, a waiting one and a finished one. The server's exit cuts another one short."""
    large = tmp_path / "large.folded"
    with large.open("w") as out:
        for line in range(120_000):
            out.write(";".join(f"f{line}_{depth}" for depth in range(12)) + " 1\n")
    content = large.read_bytes()
    server = start.server()

    def upload(name, data=content):
        for offset in range(0, len(data), 1 << 20):
            assert server.request("PUT", f"/api/uploads/{name}", data[offset : offset + (1 << 20)], offset=offset, size=len(data))[0] == 200

    def begin(name):
        return server.post("/api/imports", {"upload": name, "name": f"{name}.folded"})["id"]

    def state(number):
        return server.get(f"/api/imports/{number}")["state"]

    def cancel(number):
        return server.request("DELETE", f"/api/imports/{number}")

    # Prepare everything slow first, because the import runs meanwhile.
    upload("running-import")
    upload("waiting-import")
    running, waiting = begin("running-import"), begin("waiting-import")
    wait_until(lambda: server.get(f"/api/imports/{running}")["read_bytes"] > 0, 60, "the import to run")
    # The waiting import is cancelled before the answer is sent, although its turn has not come.
    status, _, answer = cancel(waiting)
    assert status == 200 and answer["state"] == "cancelled" and answer["problem"] == "" and state(running) == "running", answer
    assert server.request("GET", "/api/uploads/waiting-import")[0] == 404
    status, _, answer = cancel(running)
    assert status == 200 and answer["id"] == running, answer
    wait_until(lambda: state(running) == "cancelled", 60, "the end of the import")
    assert [one["state"] for one in server.get("/api/imports")["imports"]] == ["cancelled", "cancelled"]
    assert server.request("GET", "/api/uploads/running-import")[0] == 404
    assert server.sessions() == [] and not list((server.data_dir / "sessions").iterdir())
    # The state of a finished import does not change.
    upload("short-import", b"main;work 3\n")
    done = begin("short-import")
    wait_until(lambda: state(done) == "done", 60, "the import")
    for number, expected, words in ((done, 409, "delete its session"), (running, 409, "has ended already"), ("77", 404, "there is no import 77")):
        status, _, answer = cancel(number)
        assert status == expected and words in answer["error"]["message"], answer
    assert len(server.sessions()) == 1
    assert server.request("DELETE", f"/api/imports/{done}", headers={"Origin": "http://elsewhere.example"})[0] == 403
    # A server that is stopped does not continue reading.
    upload("unfinished-import")
    last = begin("unfinished-import")
    wait_until(lambda: server.get(f"/api/imports/{last}")["read_bytes"] > 0, 60, "the import to run")
    data = server.data_dir
    server.stop()
    assert [one.name for one in (data / "sessions").iterdir()] == [one["id"] for one in start.server(data_dir=data, name="again").sessions()]


def test_files_that_cannot_be_imported_are_reported(start, tmp_path):
    server = start.server()
    for data, words in [(b"\x7fELF\x02\x01\x01" + b"\0" * 100, "not in a format that can be imported"),
                        (b"hello world\n", "not in a format that can be imported"),
                        (b"FLMWIRE\nbroken", "version|no batch|session"),
                        (b"{}", "not in a format that can be imported")]:
        done, identifier = upload(server, data, "file.bin")
        assert done["state"] == "failed" and re.search(words, done["problem"]), done
        assert server.request("GET", f"/api/uploads/{identifier}")[0] == 404
    assert server.sessions() == []
    for body, status in [({"upload": "nowhere-12345"}, 404), ({"name": "x"}, 400), ([], 400)]:
        assert server.request("POST", "/api/imports", body)[0] == status, body
    assert server.request("POST", "/api/imports", {"upload": "nowhere-12345"}, headers={"Origin": "http://elsewhere.example"})[0] == 403


def test_a_server_that_cannot_import_does_not_start_or_says_why(start, tmp_path):
    (tmp_path / "noise").write_bytes(os.urandom(5000))
    server = start.server("--import", tmp_path / "noise")
    wait_until(lambda: "noise was not imported: noise is not in a format" in server.err, 20, "the message")
    assert server.sessions() == []


def plain(name):
    """A function's own name: without namespaces, parameters and suffixes that a compiler adds."""
    return re.split(r"[(<\[]", name.replace("(anonymous namespace)::", ""))[0].strip().split(" ")[-1].split("::")[-1].split(".")[0]


def text_symbols(program):
    """Address -> names of the program's own functions that are larger than 8 bytes."""
    names = collections.defaultdict(set)
    for line in subprocess.run(["nm", "-CS", "--defined-only", program], check=True, capture_output=True, text=True).stdout.splitlines():
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and fields[2] in "tTwW" and int(fields[1], 16) > 8 and not fields[3].startswith("_"):
            names[int(fields[0], 16)].add(plain(fields[3]))
    return names


def unsymbolized(program, addresses, code_id, debug_id):
    """A profile as samply writes it, before symbolization: one stack per address, relative to the first segment."""
    count = len(addresses)
    return {
        "meta": {"version": 24, "preprocessedProfileVersion": 75, "product": "app", "startTime": 1700000000000, "symbolicated": False, "interval": 1},
        "libs": [{"name": program.name, "path": str(program), "debugName": program.name, "debugPath": str(program), "breakpadId": debug_id, "codeId": code_id, "arch": None}],
        "threads": [{"name": "A", "pid": "1", "tid": "1", "samples": {"length": count, "stack": list(range(count)), "time": list(range(count)), "weight": None, "weightType": "samples"}}],
        "shared": {
            "stackTable": {"length": count, "prefixOffset": [0] * count, "frame": list(range(count))},
            "frameTable": {"length": count, "flags": [2] * count, "func": list(range(count)), "address": addresses, "lib": [0] * count, "line": [0] * count, "nativeSymbol": [0] * count},
            "funcTable": {"length": count, "flags": [4] * count, "name": list(range(1, count + 1)), "resource": [0] * count, "source": [0] * count},
            "resourceTable": {"length": 1, "name": [0], "type": [1]},
            "nativeSymbols": {"length": 0, "libIndex": []},
            "sources": {"length": 0, "filename": []},
            "stringArray": [program.name, *(f"0x{address:x}" for address in addresses)],
        },
    }


def test_addresses_of_firefox_profiles_are_symbolized(tmp_path):
    bases = set()
    for name in ("shares-workload", "unwind-scenes-nopie-workload"):
        program = TESTS_BIN / name
        headers = subprocess.run(["readelf", "-lnW", program], check=True, capture_output=True, text=True).stdout
        base = int(re.search(r"^ +LOAD +0x\w+ (0x\w+)", headers, re.M)[1], 16)
        build_id = re.search(r"Build ID: (\w+)", headers)[1]
        bases.add(base)
        symbols = text_symbols(program)
        assert "main" in set().union(*symbols.values()) and len(symbols) > 8
        addresses = [address + 1 - base for address in symbols]
        raw = bytes.fromhex(build_id)
        debug_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:16]).hex().upper() + "0"
        other = "00" * 20
        for code_id, debug, found in ((build_id, "", True), (None, debug_id, True), (other, "", False), (None, "1" * 33, False)):
            path = tmp_path / "profile.json"
            path.write_text(json.dumps(unsymbolized(program, addresses, code_id, debug)))
            lines = subprocess.run([BIN / "flamewire", "export", path, "--format", "collapsed"], check=True, capture_output=True, text=True, timeout=120).stdout.splitlines()
            outermost = {line.rsplit(" ", 1)[0].split(";")[1] for line in lines}
            if found:
                assert {plain(function) for function in outermost} == set().union(*symbols.values())
            else:
                # The names of another build are not used.
                assert outermost == {f"[{name}+0x{address:x}]" for address in addresses}
    assert min(bases) == 0 and max(bases) > 0
