"""The mutator: the changes that it makes, the code that it skips, and the outcomes of mutants."""
import json
import pathlib
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import areas  # noqa: E402
import mutants  # noqa: E402
import mutate  # noqa: E402


def changed(text, path="src/base/a.cc", operator=None):
    """Lines after each mutation, without surrounding blanks."""
    return {mutant.after.strip() for line in mutants.mutants_of(path, text).values() for mutant in line if operator in (None, mutant.operator)}


@pytest.mark.parametrize("line, operator, expected", [
    ("if (a < b) go();", "relational", {"if (a <= b) go();"}),
    ("return a >= b;", "relational", {"return a > b;"}),
    ("x = a == b;", "relational", {"x = a != b;"}),
    ("if (a && b || c) go();", "logical", {"if (a || b || c) go();", "if (a && b && c) go();"}),
    ("if (a && b) go();", "negation", {"if (!(a && b)) go();"}),
    ("if (const auto x = find(a); x != end()) go();", "negation", {"if (const auto x = find(a); !(x != end())) go();"}),
    ("while (a(b)) {", "negation", {"while (!(a(b))) {"}),
    ("x = a + b - c;", "arithmetic", {"x = a - b - c;", "x = a + b + c;"}),
    ("x += a % b;", "arithmetic", {"x -= a % b;", "x += a * b;"}),
    ("++x;", "arithmetic", {"--x;"}),
    ("x = a << 3;", "arithmetic", {"x = a >> 3;"}),
    ("f(7, 0x10u, 0);", "constant", {"f(8, 0x10u, 0);", "f(6, 0x10u, 0);", "f(7, 0x11u, 0);", "f(7, 0xfu, 0);", "f(7, 0x10u, 1);"}),
    ("x = 1'000;", "constant", {"x = 1001;", "x = 999;"}),
    ("x = 2.5;", "constant", {"x = 3.5;"}),
    ("bool x = true;", "constant", {"bool x = false;"}),
    ("return size_of(a);", "return", {"return {};"}),
    ("go(a, b);", "deletion", {";"}),
    ("a.b->c = d;", "deletion", {";"}),
    ("continue;", "deletion", {";"}),
])
def test_each_operator(line, operator, expected):
    assert changed("{\n" + line + "\n}", operator=operator) == expected


@pytest.mark.parametrize("text", [
    "#include <a 1>", "#define A 1 + 2", "#if A > 1 && \\\n    B < 2", "// if (a < 1)", "/* a\n + 1 */", 'auto x = "a < 1 + \\" 2";', 'auto x = R"(a\n < 1)" "b";', "auto x = 'a';",
    "static_assert(sizeof(x) == 8);", 'spdlog::info("{} of {}", a + 1,\n             b < 2);', "assert(a < 1);", "using a = b<1>;", "std::vector<int> x;", "template <class T>",
    "void f(const T& a, T&& b, T* c);", "[[maybe_unused]] int x;", "return {};", "int32_t x1;", "std::map<a::b, c> x;",
])
def test_code_that_is_not_changed(text):
    assert changed("{\n" + text + "\n}") == set()


def test_declarations_and_parts_of_statements_are_not_deleted():
    assert changed("int x = f(1);", operator="deletion") == set()
    assert changed("Foo foo(x);", operator="deletion") == set()
    assert changed("a = b +\n    f(c);", operator="deletion") == set()
    # A constructor in a class looks like a call.
    assert changed("{\nFoo(int x);\n}", path="src/base/a.h", operator="deletion") == set()
    # Digits with separators are not characters.
    assert changed("x = 1'000'000 + y;", operator="arithmetic") == {"x = 1'000'000 - y;"}


def test_a_mutant_is_one_line_of_the_file():
    text = "int f(int a) {\n    // a < 1\n    if (a < 1) return 2;\n    return a;\n}\n"
    found = mutants.mutants_of("src/base/a.cc", text)
    assert set(found) == {3, 4}
    for mutant in found[3] + found[4]:
        before, after = text.split("\n"), mutants.apply(text, mutant).split("\n")
        assert [number for number in range(len(before)) if before[number] != after[number]] == [mutant.line - 1]
    with pytest.raises(ValueError, match="has changed"):
        mutants.apply(text.replace("a < 1) return 2", "a < 1) return 3"), found[3][0])


def test_the_key_depends_on_the_content_and_not_the_place():
    one = mutants.Mutant("src/a.cc", 3, "constant", "  x = 1;", "  x = 2;")
    assert one.key == mutants.Mutant("src/a.cc", 9, "constant", "x = 1;", "x = 2;").key
    assert len({one.key, mutants.Mutant("src/b.cc", 3, "constant", "x = 1;", "x = 2;").key, mutants.Mutant("src/a.cc", 3, "constant", "x = 1;", "x = 0;").key}) == 3


def test_the_same_seed_draws_the_same_mutants():
    lines = mutate.candidates(ROOT, "base")
    first = list(mutate.drawn(lines, 1))
    assert first == list(mutate.drawn(lines, 1)) != list(mutate.drawn(lines, 2))
    assert len({(mutant.path, mutant.line) for mutant in first}) == len(first) == len(lines) > 100
    assert all(mutant.path.startswith("src/base/") for mutant in first)


def test_each_file_of_the_sources_has_an_area():
    for path in (ROOT / "src").rglob("*.cc"):
        assert areas.area_of(str(path.relative_to(ROOT))), path
    assert areas.area_of("src/agent/perf/decode.cc").name == "agent_perf" and areas.area_of("src/agent/recording/recorder.cc").name == "agent"
    assert areas.area_of("web/src/a.ts") is None


def test_equivalent_mutants_have_the_key_of_their_content_and_a_reason(tmp_path):
    entries = json.loads((HERE / "equivalent.json").read_text())
    assert len(mutate.load_equivalent()) == len(entries)
    for entry in entries:
        assert entry["before"] in (ROOT / entry["file"]).read_text(), entry
    for wrong in ({"key": "0" * 16}, {"before": "other"}, {"reason": " "}):
        path = tmp_path / "equivalent.json"
        path.write_text(json.dumps([{**entries[0], **wrong}]))
        with pytest.raises(ValueError, match="is not the key of its content"):
            mutate.load_equivalent(path)


def test_the_copy_becomes_equal_and_keeps_times_of_equal_files(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for name, text in (("a/same", "1"), ("a/other", "2"), ("new", "3")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    mutate.copy_tree(["a/same", "a/other"], source, target)
    (target / "a/other").write_text("mutated")
    (target / "gone").write_text("4")
    before = (target / "a/same").stat().st_mtime_ns
    mutate.copy_tree(["a/same", "a/other", "new"], source, target)
    assert {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()} == {"a/same": "1", "a/other": "2", "new": "3"}
    assert (target / "a/same").stat().st_mtime_ns == before and (source / "a/other").read_text() == "2"


def test_a_hang_ends_with_all_its_processes():
    began = time.monotonic()
    assert mutate.run(["sh", "-c", "sleep 60 & echo $!; sleep 60"], 0.5)[0] == "hung"
    assert time.monotonic() - began < 10
    assert mutate.run(["sh", "-c", "echo out; exit 3"], 10) == (3, "out\n")


def test_the_test_that_failed_is_named():
    assert mutate.first_failure("x\n-------\na case, of Catch2\n-------\nfile:3\n") == "a case, of Catch2"
    assert mutate.first_failure("---- server.err ----\nlog\nFAILED tests/a.py::test_b - Error\n") == "tests/a.py::test_b"
    assert mutate.first_failure("Segmentation fault\n") == ""


class Scripted(mutate.Workspace):
    """A workspace whose build and tests return what a test needs."""

    def __init__(self, tree, builds, tests, sums):
        super().__init__()
        self.builds, self.tests, self.sums_of, self.tree, self.seen = iter(builds), iter(tests), iter(sums), tree, []
        self.baseline = {command: 1 for area in areas.AREAS for command in area.commands}

    def build(self, area):
        return next(self.builds), ""

    def test(self, command, seconds):
        self.seen.append((self.tree.read_text(), seconds))
        return next(self.tests)

    def object_sums(self, mutant):
        return next(self.sums_of)


def test_areas_that_share_a_test_are_measured_each(tmp_path, monkeypatch):
    workspace = Scripted(tmp_path / "none", [], [(0, "")] * 9, [])
    workspace.baseline, measured = {}, []
    monkeypatch.setattr(workspace, "must", lambda command: None)
    monkeypatch.setattr(workspace, "test", lambda command, seconds: measured.append(command) or (0, ""))
    for path in ("src/server/link/a.cc", "src/server/a.cc", "src/server/b.cc"):
        workspace.first_run(areas.area_of(path))
    assert {command for path in ("src/server/link/a.cc", "src/server/a.cc") for command in areas.area_of(path).commands} == set(workspace.baseline)
    assert len(measured) == 4


@pytest.mark.parametrize("builds, tests, sums, outcome", [
    ([0, 0], [(0, "")], ["a", "b"], "survived"),
    ([0, 0], [(42, "---\nname\n---")], ["a", "b"], "failed"),
    ([0, 0], [(-11, "")], ["a", "b"], "crashed"),
    ([0, 0], [("hung", "")], ["a", "b"], "hung"),
    ([0, 1], [], ["a", "b"], "not compiled"),
    ([0, 0], [], ["a", "a"], "same object code"),
    ([0], [], [[]], "not tested"),
])
def test_outcomes_and_the_restored_file(tmp_path, monkeypatch, builds, tests, sums, outcome):
    monkeypatch.setattr(mutate, "TREE", tmp_path)
    path = tmp_path / "src/base/a.cc"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1;\n")
    workspace = Scripted(path, builds, tests, sums)
    assert workspace.outcome(mutants.Mutant("src/base/a.cc", 1, "constant", "x = 1;", "x = 2;"))[0] == outcome
    assert path.read_text() == "x = 1;\n"
    assert workspace.seen in ([], [("x = 2;\n", 15)])


def test_an_interrupt_reverts_the_mutant(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "TREE", tmp_path)
    path = tmp_path / "src/base/a.cc"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1;\n")
    workspace = Scripted(path, [0, 0], [], ["a", "b"])

    def interrupted(command, seconds):
        assert path.read_text() == "x = 2;\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace, "test", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workspace.outcome(mutants.Mutant("src/base/a.cc", 1, "constant", "x = 1;", "x = 2;"))
    assert path.read_text() == "x = 1;\n"


def test_the_share_is_of_the_detectable_mutants():
    outcomes = {"base": ["failed", "hung", "survived", "equivalent", "same object code", "not compiled", "not tested"], "wire": ["crashed"]}
    rows = mutate.table([{"area": area, "outcome": outcome} for area, all_of in outcomes.items() for outcome in all_of])
    assert rows[2:] == ["| base | 3 | 2 | 1 | 2 | 66.7 % |", "| wire | 1 | 1 | 0 | 0 | 100.0 % |", "| all | 4 | 3 | 1 | 2 | 75.0 % |"]


def test_the_command_line():
    done = subprocess.run([sys.executable, HERE / "mutate.py", "3", "--area", "base", "--list"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("src/base/") == 3 and "\n-" in done.stdout and "\n+" in done.stdout
    assert "agent_perf" in subprocess.run([sys.executable, HERE / "mutate.py", "--help"], capture_output=True, text=True).stdout
    assert subprocess.run([sys.executable, HERE / "mutate.py", "--area", "nothing"], capture_output=True).returncode == 2
