"""The rules of ./dev check on test files: each accepts what is right and reports what is wrong."""
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import glossary  # noqa: E402
import includes  # noqa: E402
import layers  # noqa: E402
import notices  # noqa: E402
import messages  # noqa: E402
import prose  # noqa: E402
import repository  # noqa: E402
import scripts  # noqa: E402
import spelling  # noqa: E402
import system_calls  # noqa: E402
import unity  # noqa: E402

TYPESCRIPT = pathlib.Path(os.environ.get("FLAMEWIRE_BIN", "build/bin")).resolve().parent / "web" / "ui"


@pytest.mark.parametrize("path, included", [
    ("wire/frame.cc", "base/bytes.h"),
    ("server/session/session.cc", "server/limits.h"),
    ("agent/process/process_records.h", "agent/perf/record.h"),
    ("profile/formats/import.cc", "profile/formats/perf_data/perf_data_import.h"),
    ("cli/record.cc", "server/options.h"),
    ("cli/report.cc", "views/quality_warnings.h"),
    ("wire/frame.cc", "web_assets.h"),
])
def test_allowed_includes(path, included):
    assert layers.forbidden(path, [included]) == []


@pytest.mark.parametrize("path, included", [
    ("base/file.cc", "wire/frame.h"),
    ("agent/recording/recorder.cc", "symbol/symbolizer.h"),
    ("agent/options.cc", "profile/store/store.h"),
    ("server/server.cc", "agent/options.h"),
    ("server/session/session.cc", "server/http/api.h"),
    ("cli/report.cc", "server/http/profile_answers.h"),
    ("views/counters.cc", "server/session/session.h"),
    ("profile/store/store.cc", "profile/formats/perf_data/header.h"),
    ("agent/process/maps.cc", "agent/perf/ring.h"),
    ("profile/query/call_tree.cc", "elf/elf_file.h"),
])
def test_forbidden_includes(path, included):
    found = layers.forbidden(path, ["base/result.h", included])
    assert len(found) == 1 and path in found[0] and included in found[0]


def test_a_folder_that_the_table_lacks():
    assert "not in the table" in layers.forbidden("video/codec.cc", [])[0]


def test_the_table_has_no_cycles():
    def above(part, seen=()):
        assert part not in seen, f"{' -> '.join(seen)} -> {part}"
        for other in layers.ALLOWED[part]:
            above(other, (*seen, part))

    for part in layers.ALLOWED:
        above(part)


def test_paths_of_this_machine():
    text = "see /srv/clone/src/x.cc\nand /srv/clone-2/x\nand src/x.cc\n"
    found = repository.text_findings("a.md", text, ["/srv/clone"])
    assert [line.split(":")[1] for line in found] == ["1"]


def test_registries():
    assert repository.text_findings("a", "npm i --registry https://registry.npmjs.org/\n", [])
    assert repository.text_findings("a", "npm ci; see https://www.debian.org/\n", []) == []


def test_lock_files():
    assert repository.lock_findings("l", '{"packages": {"": {}, "node_modules/a": {"version": "1"}}}') == []
    found = repository.lock_findings("l", '{"packages": {"node_modules/a": {"resolved": "https://x/a.tgz"}}}')
    assert "node_modules/a" in found[0]


def test_parsers_of_json():
    text = "rapidjson::Document json;\nif (json.Parse(text.data(), text.size()).HasParseError()) return;\nauto good = wire::parse_object(text);\n"
    assert [line.split(" ")[0] for line in repository.json_findings("src/server/a.cc", text)] == ["src/server/a.cc:2:"]
    assert repository.json_findings("src/server/a.cc", "document.Parse<rapidjson::kParseIterativeFlag>(text);\n")
    assert repository.json_findings("src/wire/control.cc", text) == []


def test_lines_of_the_agent():
    text = 'log("{} is gone", peer);\nstd::fprintf(stderr, "%s\\n", peer.c_str());\nstd::printf("%s\\n", version);\nfmt::print(stderr, "{}", peer);\n'
    assert [line.split(" ")[0] for line in repository.stderr_findings("src/agent/a.cc", text)] == ["src/agent/a.cc:2:", "src/agent/a.cc:4:"]


def test_types_of_one_name():
    headers = {"src/a/one.h": "namespace flamewire::a {\n\nstruct Row {\n};\nclass Table final : public Base {\n", "src/b/row.h": "namespace flamewire::b {\nstruct Row {\n"}
    assert repository.types_defined_twice(headers) == []
    assert [line.split(" ")[0] for line in repository.types_defined_twice({**headers, "src/a/two.h": "namespace flamewire::a {\nclass Row;\nstruct Table {\n"})] == ["src/a/two.h:3:"]


def test_sources_that_nothing_builds():
    cmake = {"src/wire": "SOURCES frame.cc batch_decode.cc", "src": "SOURCES main.cc"}
    assert repository.unlisted(["src/wire/frame.cc", "src/cli/main.cc"], {**cmake}) == []
    assert repository.unlisted(["src/wire/decode.cc"], cmake) == ["src/wire/decode.cc is in no CMake file, so nothing builds it"]


def test_tests_that_nothing_runs():
    cmake = {"tests/cli": "foreach(test report stat)\n  pytest(${test})\nendforeach()\npytest(test_diff.py)", "tests/checks": "pytest(checks tests/checks)", "tests/e2e": "browser(FILES page)"}
    assert repository.not_run(["tests/cli/test_report.py", "tests/cli/test_diff.py", "tests/checks/test_rules.py", "tests/e2e/page.test.mjs"], cmake) == []
    assert repository.not_run(["tests/cli/test_reports.py", "tests/e2e/live.test.mjs", "tests/none/test_report.py"], cmake) == [
        f"{name} is not in the CMake file of its folder, so nothing runs it" for name in ("tests/cli/test_reports.py", "tests/e2e/live.test.mjs", "tests/none/test_report.py")]


def test_names_that_a_source_defines():
    text = """#include <string>
#define LIMIT 4
namespace flamewire {
namespace {
constexpr std::size_t most_rows = 3, most_columns = 4;
struct Row {
    int inner = 0;
};
std::string text_of(int value) {
    const int local = value;
    return std::to_string(local);
}
}  // namespace
namespace field {
using Rows = int;
}
class Store;
enum class Kind : std::uint8_t { one, two };
using Table = int;
void Store::apply(int rows) {}
Store::~Store() = default;
}  // namespace flamewire
"""
    types, others = unity.defined_names(text)
    assert types == {"flamewire::Row", "flamewire::field::Rows", "flamewire::Kind", "flamewire::Table"}
    assert others == {"LIMIT", "flamewire::most_rows", "flamewire::most_columns", "flamewire::text_of"}


def defined(name, *files):
    return {name.split("::")[-1]: frozenset(unity.Definition(name, file) for file in files)}


def test_sources_with_clashing_names_are_in_different_units():
    unit = unity.Unit()
    unit.add("a.cc", defined("a::Row", "a.cc") | defined("a::Batch", "batch.h"), 10)
    assert not unit.clashes(defined("a::Batch", "batch.h") | defined("a::text_of", "b.cc"))
    assert unit.clashes(defined("a::Row", "b.cc"))
    assert unit.clashes(defined("a::Batch", "batch.h", "b.cc"))
    # Names of headers clash only with names of the same or an enclosing namespace.
    assert not unit.clashes(defined("b::Batch", "other.h"))
    assert unit.clashes(defined("a::inner::Batch", "other.h"))


def test_a_name_of_a_source_clashes_even_if_a_header_also_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(unity, "ROOT", tmp_path)
    (tmp_path / "server.h").write_text("namespace server {\nstruct Options {\n};\n}  // namespace server\n")
    for name in ("import.cc", "serve.cc"):
        (tmp_path / name).write_text('#include "server.h"\nnamespace cli {\nstruct Options {\n};\n}  // namespace cli\n')
    assert unity.make_units(["import.cc", "serve.cc"], 100, strict=True) == [["import.cc"], ["serve.cc"]]


def test_units_have_a_length(tmp_path, monkeypatch):
    monkeypatch.setattr(unity, "ROOT", tmp_path)
    for name, lines in (("a.cc", 60), ("b.cc", 60), ("c.cc", 40), ("d.cc", 300)):
        (tmp_path / name).write_text(f"int {name[0]};\n" + "//\n" * (lines - 1))
    assert unity.make_units(["a.cc", "b.cc", "c.cc", "d.cc"], 100, strict=True) == [["a.cc", "c.cc"], ["b.cc"], ["d.cc"]]


def test_names_of_different_namespaces_clash_only_strictly(tmp_path, monkeypatch):
    monkeypatch.setattr(unity, "ROOT", tmp_path)
    (tmp_path / "one.cc").write_text("namespace a {\nint value();\n}  // namespace a\n")
    (tmp_path / "two.cc").write_text("namespace b {\nint value();\n}  // namespace b\n")
    (tmp_path / "three.cc").write_text("using test::value;\n")
    names = ["one.cc", "two.cc", "three.cc"]
    assert unity.make_units(names, 100, strict=False) == [names]
    assert unity.make_units(names, 100, strict=True) == [["one.cc"], ["two.cc"], ["three.cc"]]


def test_everything_that_a_file_includes(tmp_path):
    (tmp_path / "a.cc").write_text('#include "b.h"\n#include <vector>\n')
    (tmp_path / "b.h").write_text('  #  include "c.h"\n// #include "no.h"\n')
    (tmp_path / "c.h").write_text('#include "b.h"\n')
    assert [path.name for path in includes.closure(tmp_path / "a.cc")] == ["a.cc", "b.h", "c.h"]


def test_direct_system_calls_of_the_sampler():
    found = system_calls.direct_calls("src/agent/process/maps.cc", "int fd = ::open(path);\nreturn files::open(path) + this->::read(1);")
    assert len(found) == 1 and "maps.cc:1" in found[0] and "open()" in found[0]
    assert system_calls.direct_calls("src/agent/perf/kernel.cc", "::ioctl(fd, request, argument)") == []
    assert system_calls.direct_calls("src/agent/link/dialer.cc", "::poll(fds)") == []


def test_words_that_the_guide_rules_out():
    page = "# Page\n\nThis is no file.\nThere is no file.\nIt is no longer here.\n`told`\n```text\nthis is no file\n```\nIt is told a port by whoever asks.\n"
    assert [finding.split(": ")[:2] for finding in prose.findings("docs/page.md", page)] == [
        ["docs/page.md:3", "'is no file'"], ["docs/page.md:10", "'told'"], ["docs/page.md:10", "'whoever'"]]
    assert prose.check(["docs/contributing/writing.md"]) == []


def test_links_between_pages(tmp_path):
    links = "[a](b.md) [b](b.md#the-lost-records-1) [c](b.md#lost) [d](c.md) [e](../a.md#x) `[f](no.md)`\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(links)
    (tmp_path / "docs" / "b.md").write_text("# The `LOST` records\n## The LOST records\n## The [LOST](a.md) records\n```sh\n# lost\n```\n## Lost, twice\n")
    assert scripts.broken_links(["docs/a.md", "docs/b.md"], tmp_path) == [
        "docs/a.md: the link b.md#lost leads to a heading that docs/b.md does not have",
        "docs/a.md: the link c.md leads nowhere", "docs/a.md: the link ../a.md#x leads nowhere"]


def test_types_in_the_glossary():
    files = {"src/a.h": "struct Row {\nclass [[nodiscard]] Result {\nstruct Later;\n", "web/src/b.ts": "export interface Box {"}
    page = ("| term | meaning | in the code |\n|---|---|---|\n| row | One row. | `Row` and `Result` in `src/a.h`; `Box` in `web/src/b.ts` |\n"
            "| later | `x` | `Later` in `src/a.h` |\n| box | A box. | `Box` in `src/b.ts` |\n| gone | It is gone. | `Gone` |\nA `Line` of text.\n")
    assert [finding.split(": ", 1)[1] for finding in glossary.findings(page, list(files), files.get)] == [
        "src/a.h does not declare Later", "src/b.ts is not a file", "name the file that declares Gone"]


def test_pages_that_the_index_lacks():
    tree = ["docs/README.md", "docs/a.md", "docs/b/c.md", "docs/b/d.md", "docs/wire.proto", "src/e.md"]
    assert scripts.unlisted_pages(tree, "[a](a.md) and [c](b/c.md#d)") == ["docs/README.md does not list docs/b/d.md"]


def test_notices_on_their_page():
    sources = {"src/agent/a.cc": 'notify({{"ring-broken",\n  text, ""}});\nif (option == "--all") notify("too-many", text, "");\n',
               "src/agent/b.cc": 'return wire::Notice{\n"names-hidden", text, remedy};\n', "src/agent/c.cc": '{"page-faults", 2},\n'}
    page = "| notice | when |\n|---|---|\n| `ring-broken` | `too-many` |\n| `names-hidden` | |\n| `gone-by` | |\n"
    assert notices.findings(page, sources) == ["src/agent/a.cc: docs/sampling/notices.md does not list the notice too-many",
                                               "docs/sampling/notices.md: the agent does not give the notice gone-by"]


def test_messages_of_cpp():
    code = r"""#include "base/file of.h"
// "a comment is none"
const char quote = '"'; const int many = 1'000'000;
log("cannot open {:#x}: " "it is {}", name);
return error("no file " + name + " below " + path(a, b));
call(R"(first of
 these two)", "two\twords", "one", "\x1b[2K of it", "{\"a\": 1, \"b c\": 2}", "HTTP/1.1 200 OK");
/* "nor this one" */ notify(x ? "a file" : "of {}" + name, "\"quoted\" words");
"""
    assert messages.of_cpp(code) == ["cannot open {}: it is {}", "no file {} below {}", "first of", "these two", "two words", "[2K of it", "a file", "of {}{}", '"quoted" words']


def test_long_texts_stay_together():
    assert messages.of_cpp('call("  -a  the first\\n  -b  the second\\n\\n  -c  the third\\n  -d  the fourth\\n");') == [
        "  -a  the first\n  -b  the second\n  -c  the third\n  -d  the fourth"]


@pytest.mark.skipif(not TYPESCRIPT.is_dir(), reason="the page was not built here")
def test_messages_of_the_page(tmp_path):
    (tmp_path / "a.tsx").write_text("""import { of } from 'one of these';
type Kind = 'this or' | 'that';
export const Row = ({ on, n }: Props) => (
  <div class="cell mono" title={on ? 'Off' : 'On'}>
    Samples of <b>{n}</b> threads: it&apos;s
    all of them
    <Icon name="down" />
    <Field label="Rate" name="Load">{on === 'yes it is' ? 'Pause' : `${n} of all`}</Field>
  </div>
);
const line = 'cannot read ' + name + ', as it is';
""")
    assert messages.of_web([str(tmp_path / "a.tsx")], TYPESCRIPT) == {str(tmp_path / "a.tsx"): [
        "Samples of {} threads: it's all of them", "Off", "On", "Rate", "Load", "Pause", "{} of all", "cannot read {}, as it is"]}


def test_the_list_of_messages_is_current():
    page = messages.page_of({"src/agent/link/a.cc": ["two words"], "src/wire/a.cc": ["a frame", "a batch"], "src/wire/b.cc": ["a frame"], "web/src/a.ts": []})
    assert page.endswith("## Agent\n\n### src/agent/link\n\n```text\ntwo words\n```\n\n## Server\n\n## Command line\n\n## Shared by the programs\n\n"
                         "### src/wire\n\n```text\na batch\na frame\n```\n\n## Page\n")
    assert messages.differences(page, page) == []
    assert messages.differences(page, page.replace("two words", "two other words")) == [
        "docs/reference/messages.md is not current. Run: ./dev check --fix docs/reference/messages.md", "-two words", "+two other words"]


def test_words_in_comments_and_messages():
    source = 'int told = 1;  // it is told a port\n// told apart, `told`\nconst char* text = "is no file";\n/* whoever */\n'
    assert [finding.split(": ")[:2] for finding in prose.findings("src/wire/a.cc", source)] == [["src/wire/a.cc:1", "'told'"], ["src/wire/a.cc:4", "'whoever'"]]
    assert [finding.split(": ")[0] for finding in prose.findings("a.py", "told = 1  # told\n")] == ["a.py:1"]
    assert [finding.split(": ")[0] for finding in prose.findings(messages.PAGE, "```text\nit is no file\n```\n")] == [f"{messages.PAGE}:2"]
    assert prose.read(["src/wire/frame.cc", "VERSION"]) == [messages.PAGE, "src/wire/frame.cc"]


@pytest.mark.skipif(not shutil.which("codespell"), reason="codespell is not installed")
def test_misspelled_words():
    texts = {"docs/a.md": "# Teh page\n\n```text\nfiel\n```\nThe colour.\n", "src/wire/a.cc": "int recieve;  // it is recieved\n", "docs/b.md": "It was cancelled.\n"}
    assert [finding.split(" (")[0] for finding in spelling.findings(texts)] == [
        "docs/a.md:1: Teh ==> The", "docs/a.md:4: fiel ==> feel, field, file, phial", "docs/a.md:6: colour ==> color", "src/wire/a.cc:1: recieved ==> received"]


def test_classes_with_several_files():
    headers = {"src/a/door.h": "class Door {\n    void open();\n    struct State;\n};\n", "src/b/window.h": "class Window final {\n};\n"}
    sources = {"src/a/door.cc": "Result<std::unique_ptr<Door>> Door::open(int x) {\n    Door::log(x);\n}\nint other::free(int) {\n",
               "src/b/door.cc": "void Door::log(int x) {\n", "src/b/window.cc": "Window::~Window() {\n"}
    assert repository.split_classes(sources, headers) == []
    sources["src/a/hinge.cc"] = "bool Door::operator==(const Door& other) const {\n"
    assert repository.split_classes(sources, headers) == [
        "src/a: Door has functions in src/a/door.cc, src/a/hinge.cc; split the class, or join the files"]


def test_long_files_and_functions():
    body = "    step();\n"
    short = "int Door::open(int x,\n               int y) {\n" + body * 57 + "}\n"
    long = short.replace(body, body + body, 1).replace("open", "close")
    member = "class Door {\n    void lock() {\n" + "    " + ("    " + body) * 60 + "    }\n};\n"
    block = "void f() {\n    if (x) {\n" + ("    " + body) * 30 + "    }\n}\n"
    assert repository.functions(short) == [("Door::open", 1, 60)]
    assert repository.too_long({"src/a.cc": short + block, "src/b.h": "\n" * 400}, {}) == []
    texts = {"src/a.cc": long, "src/b.h": member, "src/c.cc": "\n" * 401}
    assert repository.too_long(texts, {}) == [
        "src/a.cc:1: Door::close() has 61 lines, more than 60: split the function",
        "src/b.h:2: lock() has 62 lines, more than 60: split the function",
        "src/c.cc has 401 lines, more than 400: move a part that is a thing of its own to another file"]
    reasons = {"src/a.cc: Door::close": "", "src/b.h: lock": "", "src/c.cc": "", "src/d.cc": ""}
    assert repository.too_long(texts, reasons) == ["src/d.cc is not too long anymore; remove it from LONGER in tests/checks/repository.py"]
