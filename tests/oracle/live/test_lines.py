"""Hot lines: the lines marked HOT in tests/workloads/lines.cc, also in an inlined function and in templates."""
import bounds
import flamewire
import pytest
from flamewire import Tree, wait_until

HOT = bounds.Check("samples in hot lines, of those in their source file", times=1)
SOURCE = flamewire.ROOT / "tests" / "workloads" / "lines.cc"


@pytest.mark.recording
def test_hot_lines(start):
    text = SOURCE.read_text().splitlines()
    hot = {number for number, line in enumerate(text, 1) if "// HOT" in line}
    assert len(hot) == 3
    loops = {number - 1 for number in hot}  # the `for` above a hot line, because its increment and test belong to the loop

    program = start.workload("lines", 600)
    server = start.server()
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 3999)
    wait_until(lambda: server.sessions() and server.only_session()["samples"] > 4000, 60, "samples")
    agent.stop()
    server.wait_ended()

    files = server.get("/api/source-files")["files"]
    assert files[0]["file"].endswith("tests/workloads/lines.cc"), files[:3]
    source = server.get("/api/source", file=files[0]["file"])
    assert source["resolved"] == str(SOURCE)
    lines = {line["line"]: line for line in source["lines"]}
    assert [lines[number]["source"] for number in range(1, len(text) + 1)] == text
    by_self = sorted(lines.values(), key=lambda line: -line["weight"])
    assert {line["line"] for line in by_self[:3]} == hot, by_self[:5]
    # Relative to the program's own time: the kernel's share grows with the number of other programs.
    own, marked = sum(line["samples"] for line in lines.values()), sum(lines[number]["samples"] for number in hot | loops)
    assert own > 0.5 * source["total"]["samples"], (own, source["total"])
    HOT.at_least(marked, own, 0.97, detail=by_self[:8])
    assert source["hottest"] in hot
    # The call line of the inlined function has the weight in total, but not in self.
    call = next(number for number, line in enumerate(text, 1) if "x = inlined_function(x)" in line)
    inlined = next(number for number, line in enumerate(text, 1) if "// HOT inlined" in line)
    assert lines[call]["total"] >= 0.95 * lines[inlined]["weight"] > 0
    assert lines[call]["weight"] < 0.05 * lines[call]["total"]

    tree = Tree(server.get("/api/flamegraph", min_share=0))
    inlined_nodes = [index for index, name in enumerate(tree.names) if "inlined_function" in name]
    assert inlined_nodes and all(tree.kind[index] == 3 for index in inlined_nodes)
    assert all("caller_of_inlined" in tree.names[tree.parent[index]] for index in inlined_nodes)
    assert {name for name in tree.names if "template_function<" in name} and any("<7>" in name for name in tree.names) and any("<31>" in name for name in tree.names)
    program.stop()
