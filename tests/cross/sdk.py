"""Makes a folder like the installed SDK of a board's distribution: a cross compiler with its own name at its own place, a sysroot without Debian's
folders per architecture, a script that sets the environment, with flags inside CC and CXX (as Yocto does), and a CMake toolchain file that
reads that environment. The compiler is a moved copy of Debian's. The libraries come from the sysroot that toolchains/sysroot.sh made."""
import os
import pathlib
import shutil
import subprocess

TRIPLET = "aarch64-linux-gnu"  # Debian's triplet, built into the compiler
TARGET = "aarch64-acme-linux"  # the triplet of the SDK

ENVIRONMENT = """\
export SDKTARGETSYSROOT={root}/sysroots/cortexa53-acme-linux
export OECORE_NATIVE_SYSROOT={root}/sysroots/x86_64-acmesdk-linux
export OECORE_TARGET_SYSROOT="$SDKTARGETSYSROOT"
export PATH="$OECORE_NATIVE_SYSROOT/usr/bin:$PATH"
export PKG_CONFIG_SYSROOT_DIR="$SDKTARGETSYSROOT"
export PKG_CONFIG_PATH="$SDKTARGETSYSROOT/usr/lib/pkgconfig:$SDKTARGETSYSROOT/usr/share/pkgconfig"
export CC="{target}-gcc -mcpu=cortex-a53 -mbranch-protection=standard -fstack-protector-strong --sysroot=$SDKTARGETSYSROOT"
export CXX="{target}-g++ -mcpu=cortex-a53 -mbranch-protection=standard -fstack-protector-strong --sysroot=$SDKTARGETSYSROOT"
export AR={target}-ar RANLIB={target}-ranlib STRIP={target}-strip OBJCOPY={target}-objcopy NM={target}-nm READELF={target}-readelf
export CFLAGS="-O2 -pipe -g" CXXFLAGS="-O2 -pipe -g"
export LDFLAGS="-Wl,-O1 -Wl,--hash-style=gnu -Wl,--as-needed -Wl,-z,relro,-z,now"
export CROSS_COMPILE={target}- ARCH=arm64 OECORE_TARGET_ARCH=aarch64
"""

# A short version of the file from meta/recipes-devtools/cmake.
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{OECORE_TARGET_ARCH})
set(CMAKE_SYSROOT $ENV{OECORE_TARGET_SYSROOT})
set(CMAKE_FIND_ROOT_PATH $ENV{OECORE_TARGET_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
"""


def merge(source, target, ignore=()):
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns(*ignore))


def make_compiler(native):
    """The driver finds its parts relative to its own path, so the folders keep their relative places."""
    parts = native / "usr/lib/gcc-cross" / TRIPLET
    parts.mkdir(parents=True)
    merge(f"/usr/lib/gcc-cross/{TRIPLET}", parts, ignore=["lto1", "*san*", "*gomp*", "*itm*", "*atomic.so", "libstdc++.so"])
    merge(f"/usr/lib/gcc-cross/{TRIPLET}/12/include", parts / "12/include")
    headers = native / "usr" / TRIPLET / "include/c++"
    headers.parent.mkdir(parents=True)
    merge(f"/usr/{TRIPLET}/include/c++", headers)
    binaries, tools = native / "usr/bin", native / "usr" / TRIPLET / "bin"
    binaries.mkdir()
    tools.mkdir()
    for name in ("gcc", "g++"):
        shutil.copy(os.path.realpath(f"/usr/bin/{TRIPLET}-{name}"), binaries / f"{TARGET}-{name}")
    for name in ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip"):
        shutil.copy(os.path.realpath(f"/usr/bin/{TRIPLET}-{name}"), binaries / f"{TARGET}-{name}")
        (tools / name).symlink_to(f"../../bin/{TARGET}-{name}")


def make_sysroot(debian, root):
    """lib and include as on a system with a single architecture."""
    for folder in ("usr/lib", "lib", "usr/include"):
        (root / folder).mkdir(parents=True)
        merge(debian / folder / TRIPLET, root / folder)
    script = root / "usr/lib/libc.so"  # the linker script, which contains the folders
    script.write_text(script.read_text().replace(f"/{TRIPLET}", ""))
    # Of the other headers, copy all except Debian's libraries, some of which a board does not have.
    merge(debian / "usr/include", root / "usr/include", ignore=[TRIPLET, "asio*", "fmt", "protozero", "rapidjson", "catch2"])


def sysroot_of_debian():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("FLAMEWIRE_SYSROOTS") or f"{cache}/flamewire/sysroots") / TRIPLET


def make(root):
    """Returns (environment script, CMake toolchain file, target sysroot)."""
    native, target = root / "sysroots/x86_64-acmesdk-linux", root / "sysroots/cortexa53-acme-linux"
    make_compiler(native)
    make_sysroot(sysroot_of_debian(), target)
    script = root / "environment-setup-cortexa53-acme-linux"
    script.write_text(ENVIRONMENT.format(root=root, target=TARGET))
    toolchain = native / "usr/share/cmake/OEToolchainConfig.cmake"
    toolchain.parent.mkdir(parents=True)
    toolchain.write_text(TOOLCHAIN)
    return script, toolchain, target


def run(script, command, **options):
    """Runs a command in the SDK's environment, without this test's environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C"}
    return subprocess.run(["bash", "-c", '. "$0" && exec "$@"', str(script), *map(str, command)], env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
