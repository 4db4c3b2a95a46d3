"""With an SDK for a board, the agent is built with the SDK's own toolchain file (docs/cross-compiling.md)."""
import pathlib
import subprocess

import pytest
import sdk

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("sdk")
    assert (sdk.sysroot_of_debian() / ".complete").exists(), f"no sysroot: run toolchains/sysroot.sh {sdk.TRIPLET}"
    return sdk.make(root)


def configure(tree, build, *options):
    script, toolchain, _ = tree
    return sdk.run(script, ["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release",
                            "-DFLAMEWIRE_SERVER=OFF", "-DFLAMEWIRE_TESTS=OFF", *options])


def test_the_agent_is_built_with_the_sdk(tree, tmp_path):
    script, _, target = tree
    answer = configure(tree, tmp_path)
    assert answer.returncode == 0, answer.stdout
    # Only some of the libraries are built. Other tests build the whole agent with our own toolchain files.
    answer = sdk.run(script, ["cmake", "--build", tmp_path, "--target", "flamewire_base_agent", "flamewire_wire_agent", "-v"])
    assert answer.returncode == 0, answer.stdout
    compiled = [line for line in answer.stdout.splitlines() if " -c " in line]
    assert compiled
    for line in compiled:
        assert f"{sdk.TARGET}-g++" in line and "-mcpu=cortex-a53" in line and f"--sysroot={target}" in line, line
        assert "/usr/include" not in line.replace(str(target), ""), line
    library = next(tmp_path.rglob("libflamewire_base_agent.a"))
    header = subprocess.run(["readelf", "-h", library], text=True, capture_output=True, check=True).stdout
    assert "AArch64" in header and "X86-64" not in header


@pytest.mark.parametrize("missing, package", [("usr/lib/libzstd.a", "libzstd-dev"), ("usr/lib/libc.a", "libc6-dev"),
                                              ("usr/lib/libunwind-aarch64.a", "libunwind-dev")])
def test_a_missing_library_is_named(tree, tmp_path, missing, package):
    _, _, target = tree
    archive = target / missing
    archive.rename(archive.with_suffix(".away"))
    try:
        answer = configure(tree, tmp_path)
    finally:
        archive.with_suffix(".away").rename(archive)
    assert answer.returncode != 0
    assert f"install {package}" in " ".join(answer.stdout.split()) and archive.name in answer.stdout, answer.stdout


def test_libunwind_can_be_left_out(tree, tmp_path):
    _, _, target = tree
    archive = target / "usr/lib/libunwind-aarch64.a"
    archive.rename(archive.with_suffix(".away"))
    try:
        answer = configure(tree, tmp_path, "-DFLAMEWIRE_LIBUNWIND=OFF")
    finally:
        archive.with_suffix(".away").rename(archive)
    assert answer.returncode == 0, answer.stdout
