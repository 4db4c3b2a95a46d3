"""tests/checks/programs.py on small programs of gcc: it accepts a hardened program and reports what another one lacks."""
import pathlib
import platform
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import programs  # noqa: E402

SOURCE = """#include <stdio.h>
#include <string.h>
#ifdef WRITABLE_CODE
__asm__(".pushsection .odd,\\"awx\\"; .byte 0; .popsection");
#endif
int main(int argc, char** argv) {
    char name[32];
    strcpy(name, argv[argc - 1]);
    return puts(name) < 0;
}
"""
BRANCHES = {"x86_64": "-fcf-protection=full", "aarch64": "-mbranch-protection=standard"}.get(platform.machine(), "-O2")
HARDENED = ["-g1", "-O2", "-fPIE", "-fstack-protector-strong", "-fstack-clash-protection", BRANCHES, "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2",
            "-pie", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
STATIC = ["-static", "-no-pie", "-fno-pie"]


def findings(folder: pathlib.Path, *flags: str, source: str = "main.c") -> list[str]:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / source).parent.mkdir(parents=True, exist_ok=True)
    (folder / source).write_text(SOURCE)
    subprocess.run(["gcc", *HARDENED, *flags, source, "-o", "bin/program"], cwd=folder, check=True)
    return [finding.removeprefix(f"{folder}/bin/program: ") for finding in programs.check(folder / "bin" / "program")]


@pytest.mark.parametrize("flags", [[], STATIC, ["-Wl,-rpath,/opt/lib:$ORIGIN/../lib"], ["-s"]])
def test_hardened_programs(flags, tmp_path):
    assert findings(tmp_path, *flags) == []


@pytest.mark.parametrize("flags, finding", [
    (["-no-pie", "-fno-pie"], "it is not position-independent (PIE)"),
    (["-Wl,-z,norelro"], "no RELRO: nothing becomes read-only after the start"),
    ([*STATIC, "-Wl,-z,norelro"], "no RELRO: nothing becomes read-only after the start"),
    (["-Wl,-z,lazy"], "RELRO is not full: functions are bound when they are first called"),
    ([*STATIC, "-Wl,-z,lazy"], "RELRO is not full: .got.plt stays writable"),
    (["-Wl,-z,execstack"], "the stack is executable"),
    ([*STATIC, "-Wl,-z,execstack"], "the stack is executable"),
    (["-DWRITABLE_CODE"], "a segment is writable and executable"),
    (["-Wl,-rpath,"], "RUNPATH has an empty or relative element: ''"),
    (["-Wl,-rpath,/opt/lib:lib"], "RUNPATH has an empty or relative element: '/opt/lib:lib'"),
    (["-Wl,-rpath,/opt/lib:"], "RUNPATH has an empty or relative element: '/opt/lib:'"),
    (["-fno-stack-protector"], "no function has a stack protector"),
    (["-fno-stack-protector"], "main.c is compiled without -fstack-protector-strong"),
    (["-fno-stack-clash-protection"], "main.c is compiled without -fstack-clash-protection"),
    (["-U_FORTIFY_SOURCE"], "no call is checked by _FORTIFY_SOURCE"),
    pytest.param(["-fcf-protection=none"], "main.c is compiled without -fcf-protection=full",
                 marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="CET exists on x86 only")),
])
def test_missing_hardening(flags, finding, tmp_path):
    assert finding in findings(tmp_path, *flags)


@pytest.mark.parametrize("source, decodes", [
    ("src/wire/frame.c", True), ("/mbedtls/library/ssl_msg.c", True), ("src/agent/CMakeFiles/flamewire_agent_commands_agent.dir/Unity/unit.c", True),
    ("src/agent/recording/recorder.c", False)])
def test_the_agent_protects_the_stacks_of_decoders(source, decodes, tmp_path):
    source = source if source[0] != "/" else f"{tmp_path}{source}"
    expected = [f"{source} is compiled without -fstack-protector-strong"] if decodes or platform.machine() != "x86_64" else []
    assert findings(tmp_path, *STATIC, "-fno-stack-protector", source=source) == expected


def test_checked_calls_of_a_stripped_static_program(tmp_path):
    """The symbols are in a file beside the program."""
    assert findings(tmp_path, *STATIC, "-Wl,--build-id") == []
    program = tmp_path / "bin" / "program"

    def strip():
        subprocess.run(["objcopy", "--only-keep-debug", program, f"{program}.debug"], check=True)
        subprocess.run(["objcopy", "--strip-all", program], check=True)

    strip()
    assert programs.check(program) == []
    findings(tmp_path, *STATIC, "-U_FORTIFY_SOURCE")
    strip()
    assert programs.check(program) == [f"{program}: no call is checked by _FORTIFY_SOURCE"]


def test_checked_calls_of_each_unit(tmp_path):
    """Libraries may contain checked calls, so a single one in the program proves nothing."""
    commands = tmp_path / "compile_commands.json"
    commands.write_text('[{"file": "main.c", "command": "gcc -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 main.c"}]')
    assert findings(tmp_path) == []
    for flags in ("-O2", "-D_FORTIFY_SOURCE=2 -U_FORTIFY_SOURCE"):
        commands.write_text(f'[{{"file": "main.c", "command": "gcc {flags} main.c"}}]')
        assert findings(tmp_path) == ["main.c is compiled without _FORTIFY_SOURCE"]
    assert findings(tmp_path, "-g0") == ["its debug information has no unit of this build"]


def test_libraries(tmp_path):
    """The program decides how libraries are bound, but the search paths of libraries are checked, too."""
    library = ["-fPIC", "-shared", "-Wl,-soname,libmain.so", "-Wl,-z,lazy"]
    assert findings(tmp_path, *library) == []
    assert findings(tmp_path, *library, "-Wl,-rpath,lib", "-Wl,-z,execstack") == ["the stack is executable", "RUNPATH has an empty or relative element: 'lib'"]


def test_all_programs_of_the_command_line(tmp_path, capsys):
    assert findings(tmp_path) == [] and programs.main([str(tmp_path / "bin" / "program")]) == 0
    assert findings(tmp_path, "-Wl,-z,norelro", "-no-pie") and programs.main([str(tmp_path / "bin" / "program"), "/bin/true"]) == 1
    out = capsys.readouterr().out
    assert "norelro" not in out and "no RELRO" in out and "not position-independent" in out
