"""Stripped Go programs, named by the table of their linker, against the debug info and the symbols of the same build before it was stripped: every kind of build."""
import collections
import json
import os
import pathlib
import random
import re
import subprocess

import pytest
from compare_symbolizers import ours, text_section, theirs
from flamewire import TESTS_BIN

DUMP = TESTS_BIN / "symbolize_dump"
LLVM = "llvm-symbolizer-16"
KINDS = {"pure": [], "pure_pie": ["-buildmode=pie"], "cgo": [], "cgo_pie": ["-buildmode=pie"]}
MAIN = """package main

IMPORT_C
import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/template"
)

type Shape interface{ Area() float64 }
type Square struct{ Side float64 }
type Named struct {
	Square
	Name string
}

func (s Square) Area() float64      { return s.Side * s.Side }
func (n *Named) Rename(name string) { n.Name = strings.TrimSpace(name) + clip(name) }
func clip(s string) string          { return first(s, 3) }
func first(s string, n int) string  { return s[:lesser(len(s), n)] }
func lesser(a, b int) int {
	if a < b {
		return a
	}
	return b
}

type Number interface{ ~int | ~float64 }

func Sum[T Number](values []T) (sum T) {
	for _, value := range values {
		sum += twice(value)
	}
	return
}
func twice[T Number](value T) T { return value + value }
func Map[A, B any](values []A, f func(A) B) []B {
	out := make([]B, 0, len(values))
	for _, value := range values {
		out = append(out, f(value))
	}
	return out
}

type Stack[T any] struct{ items []T }

func (s *Stack[T]) Push(item T) { s.items = append(s.items, item) }
func (s *Stack[T]) Len() int    { return len(s.items) }

func counter() func() int {
	count := 0
	return func() int {
		defer func() { count++ }()
		return count
	}
}

func main() {
	words := regexp.MustCompile(`[a-z]+`).FindAllString(strings.Join(os.Args, " "), -1)
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	var shapes []Shape
	for range words {
		named := &Named{Square{2}, "x"}
		named.Rename(" square ")
		shapes = append(shapes, named)
	}
	var stack Stack[Shape]
	for _, shape := range shapes {
		stack.Push(shape)
	}
	var out bytes.Buffer
	template.Must(template.New("t").Parse("{{range .}}{{.Area}}\\n{{end}}")).Execute(&out, stack.items)
	text, _ := json.Marshal(Map(words, func(word string) int { return len(word) }))
	next := counter()
	fmt.Println(out.String(), string(text), Sum([]int{1, 2}), Sum([]float64{1, 2}), stack.Len(), next())
	CALL_C
}
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


class Builds:
    """The programs, each built once: NAME with symbols and debug info, NAME.flags and NAME.strip without."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GO")} | {"GO111MODULE": "off", "GOCACHE": str(folder / "cache"), "GOPATH": str(folder / "path"), "GOFLAGS": ""}
        (folder / "pure.go").write_text(MAIN.replace("IMPORT_C", "").replace("CALL_C", ""))
        (folder / "cgo.go").write_text(MAIN.replace("IMPORT_C", "// int triple(int n) { return n * 3; }\nimport \"C\"").replace("CALL_C", "fmt.Println(C.triple(4))"))

    def whole(self, kind):
        return self.build(kind, kind)

    def stripped(self, kind, how):
        if how == "flags":
            return self.build(kind, f"{kind}.flags", "-ldflags=-s -w")
        program = self.folder / f"{kind}.strip"
        run("strip", "-o", program, self.whole(kind))
        return program

    def build(self, kind, name, *options):
        if not (self.folder / name).exists():
            cgo = "1" if kind.startswith("cgo") else "0"
            run("go", "build", *KINDS[kind], *options, "-o", name, f"{kind.partition('_')[0]}.go", cwd=self.folder, env=self.environment | {"CGO_ENABLED": cgo})
        return self.folder / name


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    return Builds(tmp_path_factory.mktemp("go"))


def functions(program):
    """[(start, end, name)] of code by `nm`, as the program was linked."""
    rows = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (.+)$", run("nm", "-S", "--defined-only", program), re.M)
    return sorted((int(start, 16), int(start, 16) + int(size, 16), name) for start, size, name in rows if int(size, 16))


def samples(found, seed, count):
    chosen = random.Random(seed)
    return sorted({chosen.randrange(start, end) for start, end, _ in found for _ in range(count)})


def in_table_words(frames):
    """As the table spells it: no type arguments, no ABI, and no folder for files that are none."""
    return [(re.sub(r"\[.*\]", "[...]", name).removesuffix(".abi0"), re.sub(r"^(\./)+(?=<auto|_cgo_)", "", file), line) for name, file, line in frames]


def of_c(frames):
    """Also C code in the comment before `import "C"`: it has no package."""
    name, file, _ = frames[-1]
    return not file.endswith((".go", ".s", "<autogenerated>")) or (file.endswith(".go") and "." not in name)


def calls_as_the_source_says(frames):
    """Whether each call's line has the name of what was inlined there, in a file that cgo rewrote: there the debug info's line of a call is another one."""
    lines = pathlib.Path(frames[-1][1]).read_text(encoding="utf-8").splitlines()
    return 'import "C"' in lines and all(name.rpartition(".")[2] + "(" in lines[line - 1] for (name, _, _), (_, _, line) in zip(frames, frames[1:]))


def kind_of_difference(mine, other):
    if mine == other:
        return "equal"
    if of_c(other):
        return "C code"
    # The debug info of methods that the compiler made for pointers and embedded types does not say what was inlined there.
    if len(other) == 1 and len(mine) > 1 and mine[-1] == (other[0][0], "<autogenerated>", 1) and mine[0][1:] == other[0][1:]:
        return "generated method"
    if [frame[:2] for frame in mine] == [frame[:2] for frame in other] and mine[0] == other[0] and calls_as_the_source_says(mine):
        return "line of a call in a file that cgo wrote"
    return "other"


@pytest.mark.parametrize("how", ["flags", "strip"])
@pytest.mark.parametrize("kind", KINDS)
def test_names_lines_and_inlined_calls_are_those_of_the_debug_info(builds, kind, how):
    whole, stripped = builds.whole(kind), builds.stripped(kind, how)
    assert text_section(whole) == text_section(stripped)
    assert "no symbols" in subprocess.run(["nm", stripped], capture_output=True, text=True).stderr
    addresses = samples(functions(whole), kind, 3)
    assert len(addresses) > 5000
    expected = theirs(LLVM, whole, addresses)
    found = ours(DUMP, stripped, addresses)
    differences = collections.Counter()
    for address, mine, other in zip(addresses, map(in_table_words, found), map(in_table_words, expected)):
        difference = kind_of_difference(mine, other) if other else "no debug info"
        differences[difference] += 1
        assert difference != "other", (hex(address), mine, other)
    total = len(addresses) - differences["C code"] - differences["no debug info"]
    print(f"{kind} {how}: {100 * differences['equal'] / total:.2f} % of {total} equal; {dict(differences)}")
    assert differences["equal"] > 0.99 * total
    assert differences["C code"] + differences["no debug info"] < 0.02 * len(addresses) and (kind.startswith("cgo") or not differences["C code"])
    depths = collections.Counter(len(frames) for frames in expected)
    assert sum(depths.values()) - depths[1] > 500 and sum(depths.values()) - depths[1] - depths[2] > 50, ("inlined calls were not tested", depths)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_begin_and_end_where_the_symbols_said(builds, kind):
    whole, stripped = builds.whole(kind), builds.stripped(kind, "flags")
    of_go = [entry for entry in functions(whole) if re.search(r"^(main|runtime|fmt|regexp|encoding/json|type\.)\.", entry[2])]
    assert len(of_go) > 1400
    first = ours(DUMP, stripped, [start for start, _, _ in of_go])
    last = ours(DUMP, stripped, [end - 1 for _, end, _ in of_go])
    starts = {start for start, _, _ in functions(whole)}
    behind = [end for _, end, _ in of_go if end not in starts]
    for (start, _, name), begins, ends in zip(of_go, first, last):
        want = in_table_words([(name, "", 0)])[0][0]
        assert in_table_words(begins)[-1][0] == want and in_table_words(ends)[-1][0] == want, (hex(start), name)
    assert len(behind) > 1000 and not any(ours(DUMP, stripped, behind)), "padding has no function"


def test_go_says_the_same_files_and_lines(builds):
    """`go tool addr2line` reads the same table by Go's own code."""
    whole, stripped = builds.whole("pure"), builds.stripped("pure", "flags")
    addresses = samples(functions(whole), 1, 1)
    said = subprocess.run(["go", "tool", "addr2line", whole], input="".join(f"{address:#x}\n" for address in addresses), capture_output=True, text=True, check=True, env=builds.environment).stdout.splitlines()
    assert len(said) == 2 * len(addresses)
    for address, frames, function, place in zip(addresses, ours(DUMP, stripped, addresses), said[::2], said[1::2]):
        file, _, line = place.rpartition(":")
        assert frames[0][1:] == (file, int(line)), (hex(address), frames, place)
        assert in_table_words(frames)[-1][0] == in_table_words([(function, "", 0)])[0][0], (hex(address), frames, function)


def test_symbols_stay_in_front_of_the_table(builds):
    """Without debug info but with symbols, functions have the linker's names and the table's lines."""
    whole, plain = builds.whole("pure"), builds.build("pure", "pure.symbols", "-ldflags=-w")
    found = functions(whole)
    addresses = samples(found, 2, 1)
    names = {start: name for start, _, name in functions(plain)}
    for (start, _, _), frames, other in zip(found, ours(DUMP, plain, addresses), theirs(LLVM, whole, addresses)):
        assert frames[-1][0] == names[start]
        if kind_of_difference(in_table_words(frames), in_table_words(other)) != "generated method":
            assert in_table_words(frames)[0] == in_table_words(other)[0]


def test_debug_info_stays_in_front_of_the_table(builds):
    whole = builds.whole("cgo_pie")
    addresses = samples(functions(whole), 3, 1)
    without = builds.folder / "without_table"
    data = bytearray(pathlib.Path(whole).read_bytes())
    for start in [match.start() for match in re.finditer(rb"\xf0\xff\xff\xff\0\0\x01\x08", data)]:
        data[start:start + 4] = bytes(4)
    without.write_bytes(data)
    assert ours(DUMP, whole, addresses) == ours(DUMP, without, addresses)


def test_the_report_says_where_names_come_from(builds):
    result = subprocess.run([DUMP, builds.stripped("pure", "flags")], input="0\n", check=True, capture_output=True, text=True)
    assert "names, lines and inlined functions come from Go's function table in" in result.stderr
    assert json.loads(result.stdout) == []
