"""`flamewire probe list` on a program built here and on real libraries, compared with nm and readelf."""
import collections
import glob
import json
import pathlib
import re
import subprocess

import pytest
from flamewire import BIN

SOURCE = r"""
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <algorithm>
#include <vector>
extern "C" { unsigned short app_watched_semaphore __attribute__((section(".probes"))); unsigned short app_done_semaphore __attribute__((section(".probes"))); }
namespace ns {
namespace { __attribute__((noinline)) int hidden(int n) { return n * 3; } struct Tag { int n; }; }
struct Set { Set(); ~Set(); int size() const; bool operator<(const Set&) const; operator int() const; int n = 1; };
Set::Set() { STAP_PROBE1(app, watched, n); }
Set::~Set() { STAP_PROBE(app, done); }
int Set::size() const { return hidden(n); }
bool Set::operator<(const Set& other) const { return n < other.n; }
Set::operator int() const { return n; }
template <class T> __attribute__((noinline, noipa)) Tag tagged(T n) { return {n}; }
template <class T> __attribute__((noinline)) T twice(T n) { STAP_PROBE2(app, watched, n, &n); return n + n; }
}
extern "C" int plain_c(int n) { return n; }
int main(int argc, char**) { ns::Set s; std::vector<int> v(argc, 3); std::sort(v.begin(), v.end()); return s.size() + ns::tagged(argc).n + ns::twice(argc) + ns::twice(1.5) + plain_c(v[0]); }
"""
NAMES = {"ns::Set::Set()", "ns::Set::~Set()", "ns::Set::size() const", "ns::Set::operator<(ns::Set const&) const",
         "ns::Set::operator int() const", "ns::(anonymous namespace)::Tag ns::tagged<int>(int)",
         "ns::(anonymous namespace)::hidden(int)", "int ns::twice<int>(int)", "double ns::twice<double>(double)"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "a.cc").write_text(SOURCE)
    subprocess.run(["g++", "-O1", "-o", "app", "a.cc"], cwd=folder, check=True)
    return folder / "app"


def output(*words, **options):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True, timeout=120, **options).stdout


def listed(*words):
    return json.loads(output(BIN / "flamewire", "probe", "list", *words, "--json"))


def offset_of(path):
    """A function: virtual address → file offset in the executable segment, from readelf."""
    loads = [line.split() for line in output("readelf", "--wide", "--segments", path).splitlines() if line.split()[:1] == ["LOAD"]]
    code = [(int(words[1], 16), int(words[2], 16), int(words[4], 16)) for words in loads if "E" in "".join(words[6:-1])]

    def convert(address):
        offsets = [address - vaddr + offset for offset, vaddr, size in code if vaddr <= address < vaddr + size]
        return offsets[0] if offsets else None

    return convert


def functions_by_readelf(path):
    """(symbol, offset) → size of all defined functions."""
    convert = offset_of(path)
    found = collections.defaultdict(int)
    for line in output("readelf", "--wide", "--syms", "--dyn-syms", path).splitlines():
        words = re.sub(r"\[.*?\]", "", line).split()
        if len(words) < 8 or words[3] not in ("FUNC", "IFUNC") or words[6] in ("UND", "ABS"):
            continue
        key = (words[7].split("@")[0], convert(int(words[1], 16)))
        if key[1] is not None:
            found[key] = max(found[key], int(words[2], 0))
    return found


def names_by_nm(path):
    """symbol → demangled name."""
    found = {}
    for table in ([], ["--dynamic"]):
        command = ["nm", "--no-sort", "--defined-only", "--without-symbol-versions", *table, path]
        for mangled, demangled in zip(output(*command).splitlines(), output(*command, "--demangle").splitlines(), strict=True):
            found[mangled.split()[2]] = demangled.split(maxsplit=2)[2]
    return found


def probes_by_readelf(path):
    """(event without the file, offset, has a semaphore, arguments), in the order of the file."""
    convert = offset_of(path)
    notes = output("readelf", "--notes", path)
    return [(f"usdt:{provider}:{name}", convert(int(location, 16)), int(semaphore, 16) != 0, arguments) for provider, name, location, semaphore, arguments in
            re.findall(r"Provider: (\S+)\n\s+Name: (\S+)\n\s+Location: (\S+), Base: \S+, Semaphore: (\S+)\n\s+Arguments: (.*)\n", notes)]


def real_files():
    return [path for pattern in ("/usr/bin/python3.[0-9]*", "/usr/lib/*/libstdc++.so.6", "/usr/lib/*/libc.so.6") for path in glob.glob(pattern)
            if re.fullmatch(r".*(\.\d+|python3\.\d+)", path)]


def test_functions_and_probes_are_those_of_readelf(program):
    paths = [str(program), *real_files()]
    assert len(paths) >= 3, paths
    for path in paths:
        found = listed(path)
        real = str(pathlib.Path(path).resolve())
        assert found["file"] == real
        assert {(one["symbol"], one["offset"]): one["size"] for one in found["functions"]} == functions_by_readelf(path), path
        names = names_by_nm(path)
        assert [one["name"] for one in found["functions"]] == sorted(names[one["symbol"]] for one in found["functions"]), path
        assert all(one["event"] == f'uprobe:{one["symbol"]}@"{real}"' for one in found["functions"])
        assert [(one["event"].removesuffix(f'@"{real}"'), one["offset"], one["semaphore"], one["arguments"]) for one in found["probes"]] == probes_by_readelf(path), path


@pytest.mark.parametrize("pattern, names", [
    ("main", {"main"}),
    ("plain", {"plain_c"}),
    ("ns::Set::", {"ns::Set::Set()", "ns::Set::~Set()", "ns::Set::size() const", "ns::Set::operator<(ns::Set const&) const", "ns::Set::operator int() const"}),
    ("int()", set()),
    ("ns::tagged", {"ns::(anonymous namespace)::Tag ns::tagged<int>(int)"}),
    ("ns::tw", {"int ns::twice<int>(int)", "double ns::twice<double>(double)"}),
    ("int ns::tw", {"int ns::twice<int>(int)"}),
    ("ns::twice<d", {"double ns::twice<double>(double)"}),
    ("ns::(anonymous", {"ns::(anonymous namespace)::hidden(int)", "ns::(anonymous namespace)::Tag ns::tagged<int>(int)"}),
    ("ns::Set::operator<", {"ns::Set::operator<(ns::Set const&) const"}),
    ("_ZNK2ns3Set4sizeEv", {"ns::Set::size() const"}),
    ("_ZNK2ns3Set4size", set()),
    ("size", set()),
    ("ns::*size*", {"ns::Set::size() const"}),
    ("*::twice<*>(int)", {"int ns::twice<int>(int)"}),
    ("ns::*", NAMES),
    ("*", None),
])
def test_patterns_select_functions(program, pattern, names):
    everything = {one["name"] for one in listed(program)["functions"]}
    assert {one["name"] for one in listed(program, pattern)["functions"]} == (everything if names is None else names)
    assert everything > NAMES | {"main", "plain_c"}


def test_patterns_select_probes(program):
    events = [one["event"].split("@")[0] for one in listed(program)["probes"]]
    assert set(events) == {"usdt:app:watched", "usdt:app:done"} and events.count("usdt:app:watched") >= 3
    for pattern, wanted in (("app:", events), ("usdt:app:w", [one for one in events if "watched" in one]), ("*done", ["usdt:app:done"] * events.count("usdt:app:done")), ("main", [])):
        assert [one["event"].split("@")[0] for one in listed(program, pattern)["probes"]] == wanted, pattern


def test_text_has_the_same_lines(program):
    found = listed(program)
    lines = output(BIN / "flamewire", "probe", "list", program).splitlines()
    assert lines[0].startswith("#") and lines[len(found["probes"]) + 1].startswith("#")
    probes, functions = lines[1:len(found["probes"]) + 1], lines[len(found["probes"]) + 2:]
    for line, one in zip(probes, found["probes"], strict=True):
        assert line.split() == [hex(one["offset"]), "yes" if one["semaphore"] else "no", one["event"], *one["arguments"].split()]
    for line, one in zip(functions, found["functions"], strict=True):
        offset, size, rest = line.split(maxsplit=2)
        assert (int(offset, 16), int(size), rest) == (one["offset"], one["size"], f'{one["name"]}  {one["event"]}')
    assert output(BIN / "flamewire", "probe", "list", program, "no such function") == "# no static probes\n# no functions\n"


def test_resolvers_are_marked(tmp_path):
    (tmp_path / "a.c").write_text('int now(int n) { return n; }\nstatic void* choose(void) { return now; }\nint chosen(int n) __attribute__((ifunc("choose")));\n')
    subprocess.run(["gcc", "-shared", "-fpic", "-o", "a.so", "a.c"], cwd=tmp_path, check=True)
    assert {one["symbol"]: one["resolver"] for one in listed(tmp_path / "a.so")["functions"] if one["symbol"] in ("now", "chosen")} == {"now": False, "chosen": True}
    assert "  chosen [resolver]  uprobe:chosen@" in output(BIN / "flamewire", "probe", "list", tmp_path / "a.so", "chosen")


def test_mistakes_are_one_sentence(tmp_path):
    (tmp_path / "text").write_text("not a program")
    for words, code, message in ((["list", tmp_path / "text"], 1, f"flamewire probe: {tmp_path}/text: not an ELF file\n"),
                                 (["list", tmp_path / "none"], 1, f"flamewire probe: open {tmp_path}/none: No such file or directory\n"),
                                 (["list", tmp_path], 1, f"flamewire probe: {tmp_path}: read: Is a directory\n")):
        done = subprocess.run([BIN / "flamewire", "probe", *words], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (code, message)
    for words in ([], ["list"], ["add", "x"]):
        done = subprocess.run([BIN / "flamewire", "probe", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "see flamewire probe --help" in done.stderr
