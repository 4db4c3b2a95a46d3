"""Machine code over HTTP: the instructions are those of objdump, their weights add up to the function's, and a missing file is reported."""
import re
import shutil
import subprocess

import pytest
from flamewire import HttpError, TESTS_BIN, wait_until


def record(start, program, *server_options):
    server = start.server(*server_options)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--frequency", 999, "--", program, 2)
    assert agent.wait() == 0
    server.wait_ended()
    return server


def heaviest(server, module):
    return next(row for row in server.get("/api/functions")["functions"] if row["module"] == module)


def disassembled(program, first, last):
    text = subprocess.run(["objdump", "-d", f"--start-address={first}", f"--stop-address={last}", program], capture_output=True, text=True, check=True).stdout
    return [int(match[1], 16) for match in re.finditer(r"^\s*([0-9a-f]+):\t[0-9a-f]{2} .*\t", text, re.MULTILINE)]


def test_instructions_and_weights(start, tmp_path):
    program = tmp_path / "lines-workload"
    shutil.copy(TESTS_BIN / "lines-workload", program)
    server = record(start, program)
    function = heaviest(server, "lines-workload")
    code = server.get("/api/disasm", function=function["name"], module="lines-workload")
    assert code["problem"] == "" and code["file"] == str(program), code["problem"]
    copy, rows = code["copies"][code["chosen"]], code["instructions"]
    assert rows["address"][0] == copy["address"] and rows["address"][-1] + rows["size"][-1] == copy["address"] + copy["size"]
    assert rows["address"] == disassembled(program, copy["address"], copy["address"] + copy["size"])
    # Each sample of the function is at one instruction of one copy.
    assert sum(entry["self_samples"] for entry in code["copies"]) >= function["self_samples"] > 0
    assert sum(rows["self_samples"]) == copy["self_samples"] and sum(rows["self"]) == copy["self"]
    hottest = max(range(len(rows["self"])), key=lambda i: rows["self"][i])
    place = code["places"][rows["place"][hottest]]
    assert code["strings"][place[-2]].endswith("lines.cc") and place[-1] > 0
    # The targets of jumps are instructions.
    for target, address in zip(rows["target"], rows["target_address"]):
        assert target == -1 or rows["address"][target] == address

    # The same result by line, by address, and with a filter that excludes all samples.
    by_line = server.get("/api/disasm", file=code["strings"][place[-2]], line=place[-1])
    assert copy["address"] in [entry["address"] for entry in by_line["copies"]]
    by_address = server.get("/api/disasm", module="lines-workload", address=rows["address"][-1])
    assert by_address["copies"][0]["address"] == copy["address"]
    nothing = server.get("/api/disasm", function=function["name"], tid=1)
    assert sum(nothing["instructions"]["self"]) == 0 and nothing["instructions"]["text"] == rows["text"]
    for wrong, status in (({"function": "no_such_function"}, 404), ({}, 400), ({"module": "lines-workload"}, 400), ({"function": "main", "at": "x"}, 400)):
        with pytest.raises(HttpError) as error:
            server.get("/api/disasm", **wrong)
        assert error.value.status == status

    # Without the file, the answer has a message and its remedy. With another copy of the file, the instructions are back.
    moved = tmp_path / "elsewhere" / "lines-workload"
    moved.parent.mkdir()
    program.rename(moved)
    assert server.request("PATCH", "/api/config", body={"sysroot": ""})[0] == 200
    gone = server.get("/api/disasm", module="lines-workload", address=copy["address"])
    assert gone["instructions"]["address"] == [] and "lines-workload" in gone["problem"] and "--binary" in gone["remedy"], gone
    assert server.request("PATCH", "/api/config", body={"binaries": [str(moved)]})[0] == 200
    wait_until(lambda: server.get("/api/disasm", module="lines-workload", address=copy["address"])["problem"] == "", 20, "the code")


def test_missing_kernel_code_is_reported(start):
    server = record(start, TESTS_BIN / "lines-workload")
    kernel = next((row for row in server.get("/api/functions")["functions"] if row["kind"] == "kernel"), None)
    if kernel is None:  # without the permission to sample the kernel, there is nothing to report
        return
    code = server.get("/api/disasm", function=kernel["name"])
    assert code["instructions"]["address"] == [] or code["file"]
    assert code["file"] or "kernel" in code["problem"] and "vmlinux" in code["remedy"]
