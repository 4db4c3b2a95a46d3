"""Names for modules that this machine does not have at the target's path."""
import shutil
import subprocess

from flamewire import TESTS_BIN, Tree, wait_until


def names(server, **parameters):
    return set(Tree(server.get("/api/flamegraph", min_share=0, **parameters)).names)


def module_of(server, name):
    return next(module for module in server.only_session()["modules"] if module["name"] == name)


def stripped_copy(folder, name="shares-workload", *options):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", *options, "-o", folder / name, TESTS_BIN / name], check=True)
    return folder / name


def test_the_sysroot_of_a_toolchain_live_and_in_replay(start, tmp_path):
    """The prefix of a cross compiler, given while it runs: names in the live session, and in the same one replayed."""
    program = stripped_copy(tmp_path / "target")
    sysroot = tmp_path / "sdk" / "root"
    (sysroot / program.relative_to("/")).parent.mkdir(parents=True)
    shutil.copy(TESTS_BIN / "shares-workload", sysroot / program.relative_to("/"))
    compiler = tmp_path / "sdk" / "bin" / "arm-sdk-gcc"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\n[ "$*" = -print-sysroot ] && echo {sysroot}\n')
    compiler.chmod(0o700)
    server = start.server()
    workload = start.process("stripped", [program, "60"])
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 30, "samples")
    assert not any("burn_" in name for name in names(server))

    refused = server.request("POST", "/api/config/toolchain", body={"toolchain_prefix": str(tmp_path / "none-")})
    assert refused[0] == 400 and "none-gcc cannot be started" in refused[2]["error"]["message"], refused
    prefix = str(tmp_path / "sdk" / "bin" / "arm-sdk-")
    status, _, config = server.request("POST", "/api/config/toolchain", body={"toolchain_prefix": prefix})
    assert status == 200 and config["sysroot"] == str(sysroot) and config["toolchain_prefix"] == prefix, config
    assert server.get("/api/config/toolchain")["sysroot"] == str(sysroot)
    wait_until(lambda: any("burn_40" in name for name in names(server)), 30, "names")
    assert module_of(server, "shares-workload")["file"] == str(sysroot / program.relative_to("/"))

    assert agent.stop() == 0
    server.stop()
    again = start.server(name="again", data_dir=server.data_dir)
    session = again.sessions()[0]["id"]
    assert not any("burn_" in name for name in names(again, session=session))
    assert again.request("POST", "/api/config/toolchain", body={"toolchain_prefix": prefix})[0] == 200
    wait_until(lambda: any("burn_40" in name for name in names(again, session=session)), 30, "names in replay")
    again.stop()
    told = start.server("--toolchain-prefix", prefix, name="told", data_dir=server.data_dir)
    assert f"its sysroot {sysroot} is used" in told.err
    wait_until(lambda: any("burn_40" in name for name in names(told, session=session)), 30, "names from the start")
    told.stop()
    silent = start.server("--toolchain-prefix", tmp_path / "none-", name="silent", data_dir=server.data_dir)
    assert "none-gcc cannot be started" in silent.err and "--sysroot" in silent.err


def test_a_linker_map_names_a_program_without_symbols(start, tmp_path):
    """A map given while it runs, for the module that its name or MODULE= says; used for none is said, too."""
    source = tmp_path / "spin.c"
    source.write_text("""
static __attribute__((noinline)) void hidden(unsigned long n) { for (volatile unsigned long i = 0; i < n; ++i) {} }
__attribute__((noinline)) void shown(unsigned long n) { for (volatile unsigned long i = 0; i < n; ++i) {} }
int main(void) { for (;;) { hidden(1000000); shown(1000000); } }
""")
    program = tmp_path / "spin"
    subprocess.run(["cc", "-O1", "-ffunction-sections", "-fno-omit-frame-pointer", "-s", source, "-o", program, f"-Wl,-Map={tmp_path / 'other.map'}"], check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    server = start.server()
    workload = start.process("spin", [program])
    start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", workload.pid, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 300, 30, "samples")
    text = (tmp_path / "other.map").read_text()
    (tmp_path / "other.map").write_text(text.replace(f"OUTPUT({program} ", "OUTPUT(elsewhere "))

    def give(**change):
        status, _, answer = server.request("PATCH", "/api/config", body=change)
        assert status == 200, answer
        return answer

    assert server.request("PATCH", "/api/config", body={"map": str(source)})[0] == 400
    answer = give(map=str(tmp_path / "other.map"))
    assert answer["maps"] == [str(tmp_path / "other.map")] and any("used for no module" in note for note in answer["notes"]), answer
    assert not {"hidden", "shown"} & names(server)
    answer = give(maps=[f"spin={tmp_path / 'other.map'}"])
    assert answer["notes"] == [f"{tmp_path / 'other.map'} is used for {program}"]
    wait_until(lambda: {"hidden", "shown", "main"} <= names(server), 30, "names of the map")
    module = module_of(server, "spin")
    assert module["quality"] == "linker_map" and "no lines" in module["problem"] and "--binary" in module["remedy"], module
    give(map="")
    wait_until(lambda: not {"hidden", "shown"} & names(server), 30, "no names")
    (tmp_path / "other.map").rename(tmp_path / "spin.map")  # beside the file: found by itself
    give(map="")
    wait_until(lambda: {"hidden", "shown", "main"} <= names(server), 30, "names of the map beside")
