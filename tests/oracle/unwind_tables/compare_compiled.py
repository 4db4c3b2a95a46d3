#!/usr/bin/python3
"""The rows of one source, compiled and linked in many ways, compared with llvm-dwarfdump's: architectures, byte orders, linkers, sections.

compare_compiled.py --dump dump_rows
Exit code 1: rows differ. Cases without an installed cross compiler are listed.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

from compare_dwarfdump import compare

HERE = pathlib.Path(__file__).parent
LIBRARY = "-shared -nostdlib -fPIC"
# Linking needs neither a C library nor an unwinder, so that every target works.
CROSS = LIBRARY + " -fno-exceptions -DNO_EXCEPTIONS -fasynchronous-unwind-tables"
DEBUG = "-g -fno-exceptions -DNO_EXCEPTIONS -fno-asynchronous-unwind-tables"

# name: (compiler, options, section)
CASES = {
    "library": ("g++", LIBRARY + " -O2", ".eh_frame"),
    "optimized for size": ("g++", LIBRARY + " -Os", ".eh_frame"),
    "with frame pointers": ("g++", LIBRARY + " -O1 -fno-omit-frame-pointer", ".eh_frame"),
    "not optimized": ("g++", LIBRARY + " -O0", ".eh_frame"),
    "at a high address": ("g++", LIBRARY + " -O2 -Wl,-Ttext-segment=0x123450000000", ".eh_frame"),
    "without a search table": ("g++", LIBRARY + " -O2 -Wl,--no-eh-frame-hdr", ".eh_frame"),
    "linked by gold": ("g++", LIBRARY + " -O2 -fuse-ld=gold -Wl,--eh-frame-hdr", ".eh_frame"),
    "clang": ("clang++-19", LIBRARY + " -O2", ".eh_frame"),
    "large model": ("g++", "-shared -nostdlib -fPIC -mcmodel=large -O2", ".eh_frame"),
    "large model, fixed addresses": ("g++", "-static -nostdlib -fno-pic -mcmodel=large -O2 -Wl,--unresolved-symbols=ignore-all "
                                     "-Wl,-e,saves",
                                     ".eh_frame"),
    "debug_frame": ("g++", LIBRARY + " -O2 " + DEBUG, ".debug_frame"),
    "debug_frame, DWARF 2": ("g++", LIBRARY + " -O2 -gdwarf-2 " + DEBUG, ".debug_frame"),
    "debug_frame, clang": ("clang++-19", LIBRARY + " -O2 " + DEBUG, ".debug_frame"),
    "debug_frame, 64-bit DWARF": ("clang++-19", LIBRARY + " -O2 -gdwarf64 -gdwarf-5 " + DEBUG, ".debug_frame"),
    "debug_frame, functions dropped": ("g++", LIBRARY + " -O2 -ffunction-sections -fvisibility=hidden -Wl,--gc-sections -Wl,-u,saves "
                                       "-Wl,-e,saves " + DEBUG, ".debug_frame"),
    "debug_frame, zstd": ("g++", LIBRARY + " -O2 -gz=none " + DEBUG, ".debug_frame"),
    "debug_frame, zlib": ("g++", LIBRARY + " -O2 -gz=zlib " + DEBUG, ".debug_frame"),
    "debug_frame, zlib as in older files": ("g++", LIBRARY + " -O2 -gz=zlib-gnu " + DEBUG, ".debug_frame"),
    "arm, debug_frame, zlib": ("arm-linux-gnueabihf-g++", LIBRARY + " -O2 -marm -gz=zlib " + DEBUG, ".debug_frame"),
    "i386": ("clang++-19", CROSS + " --target=i686-linux-gnu -O2 -fuse-ld=lld", ".eh_frame"),
    "i386, debug_frame": ("clang++-19", LIBRARY + " --target=i686-linux-gnu -O2 -fuse-ld=lld " + DEBUG, ".debug_frame"),
    "aarch64": ("aarch64-linux-gnu-g++", CROSS + " -O2", ".eh_frame"),
    "aarch64, signed": ("aarch64-linux-gnu-g++", CROSS + " -O2 -mbranch-protection=standard", ".eh_frame"),
    "aarch64, signed with key B": ("clang++-19", CROSS + " --target=aarch64-linux-gnu -O2 -mbranch-protection=pac-ret+b-key "
                                   "-fuse-ld=lld", ".eh_frame"),
    "aarch64, big-endian": ("aarch64-linux-gnu-g++", CROSS + " -O2 -mbig-endian", ".eh_frame"),
    "aarch64, debug_frame": ("aarch64-linux-gnu-g++", LIBRARY + " -O2 -fno-unwind-tables " + DEBUG, ".debug_frame"),
    "arm, debug_frame": ("arm-linux-gnueabihf-g++", LIBRARY + " -O2 -marm " + DEBUG, ".debug_frame"),
    "thumb, debug_frame": ("arm-linux-gnueabihf-g++", LIBRARY + " -O2 -mthumb " + DEBUG, ".debug_frame"),
    "arm, debug_frame, big-endian": ("arm-linux-gnueabihf-g++", LIBRARY + " -O2 -marm -mbig-endian -mbe8 " + DEBUG, ".debug_frame"),
}

# g++ links static programs without a search table.
STATIC_PROGRAM = """
#include <iostream>
#include <map>
#include <string>
int main(int argc, char** argv) {
    std::map<std::string, int> counts;
    for (int i = 0; i < argc; ++i) ++counts[argv[i]];
    for (const auto& [word, count] : counts) std::cout << word << ' ' << count << std::endl;
}
"""


def vdso():
    """This process's own vDSO, from memory."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb") as memory:
                memory.seek(start)
                return memory.read(end - start)
    return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dump", required=True)
    arguments.add_argument("--dwarfdump", default="llvm-dwarfdump-16")
    options = arguments.parse_args()
    wrong, absent = 0, set()
    with tempfile.TemporaryDirectory() as directory:
        def check(compiler, flags, source, name, section):
            path = str(pathlib.Path(directory, name))
            subprocess.run([compiler, *flags.split(), str(HERE / source), "-o", path], check=True)
            if "zstd" in name:
                subprocess.run(["objcopy", "--compress-debug-sections=zstd", path], check=True)
            if "older files" in name:
                # llvm-dwarfdump does not support .zdebug_frame.
                subprocess.run(["objcopy", "--decompress-debug-sections", path, path + " plain"], check=True)
                return compare(options.dump, options.dwarfdump, path, section, path + " plain")
            return compare(options.dump, options.dwarfdump, path, section)

        for name, (compiler, flags, section) in CASES.items():
            if shutil.which(compiler) is None:
                absent.add(compiler)
                continue
            wrong += check(compiler, flags, "functions.cc", name, section)
        wrong += check("gcc", LIBRARY, "frames.s", "assembly", ".eh_frame")
        wrong += check("gcc", LIBRARY + " -Wl,--no-eh-frame-hdr", "frames.s", "assembly without a search table", ".eh_frame")
        static = pathlib.Path(directory, "static C++ program")
        static.with_suffix(".cc").write_text(STATIC_PROGRAM)
        subprocess.run(["g++", "-static", "-O2", str(static.with_suffix(".cc")), "-o", str(static)], check=True)
        if "GNU_EH_FRAME" in subprocess.run(["readelf", "-lW", str(static)], capture_output=True, text=True, check=True).stdout:
            print("g++ gives static programs a search table now")
        wrong += compare(options.dump, options.dwarfdump, str(static))
        if image := vdso():
            pathlib.Path(directory, "vdso").write_bytes(image)
            wrong += compare(options.dump, options.dwarfdump, str(pathlib.Path(directory, "vdso")))
        else:
            print("this machine has no vDSO")
    for compiler in sorted(absent):
        print(f"not compared, because it is not installed: {compiler}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
