"""The agents of other architectures, under qemu's user mode, connect to this machine's server: host names are resolved, messages are decoded
regardless of the byte order, and the lack of perf_event_open (in qemu's user mode) is reported in one sentence."""
import os
import pathlib

import flamewire
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("preset, arch, endian, emulator", [
    ("agent-aarch64", "aarch64", "little", "qemu-aarch64-static"),
    ("agent-armv7", "armv7l", "little", "qemu-arm-static"),
    ("agent-s390x", "s390x", "big", "qemu-s390x-static"),
])
def test_agent_and_server(start, preset, arch, endian, emulator):
    server = start.server()
    agent = start.process("agent", [emulator, SOURCE / f"build-{preset}/bin/flamewire-agent", "--server", "localhost", "--pair", server.code, "--port", server.port])
    listed = flamewire.wait_until(lambda: server.get("/api/agents")["agents"], what="the agent's hello")
    assert len(listed) == 1 and listed[0]["connected"], listed
    platform = listed[0]["hello"]["platform"]
    assert platform["arch"] == arch and platform["endian"] == endian, platform
    assert platform["page_size"] == os.sysconf("SC_PAGESIZE") and platform["kernel"] == os.uname().release, platform

    status = server.command("status")
    assert status["ok"] and status["state"] == "idle" and status["platform"]["arch"] == arch, status
    assert status["capabilities"]["perf_events"] is False, status
    processes = server.command("list_processes")["processes"]
    mine = [process for process in processes if process["pid"] == os.getpid()]
    assert len(mine) == 1 and "pytest" in mine[0]["cmdline"], mine
    refused = server.command("start", pid=os.getpid())
    assert not refused["ok"] and refused["error"].startswith("this kernel has no perf_event_open"), refused
    assert agent.stop() == 0
