"""The warnings about incomplete stacks and missing names: their thresholds, causes and remedies."""
import subprocess

from flamewire import BIN


def warnings_of(path):
    """(cause, remedy) of each warning of `flamewire report`. The notices of an import precede the first blank line."""
    text = subprocess.run([BIN / "flamewire", "report", path, "--only", "functions"], check=True, capture_output=True, text=True, timeout=60).stdout
    lines = text.split("\n\n")[1].splitlines()[1:]
    found = []
    for line in lines:
        if line.startswith("#   "):
            found[-1] = found[-1][0], line.removeprefix("#   ")
        else:
            found.append((line.removeprefix("# "), ""))
    return found


def folded(tmp_path, **weights):
    """The warnings of a profile with these samples, of 100."""
    stacks = {"incomplete": "[incomplete];a", "skipped": "main;[caller missing];b", "truncated": "[truncated];c", "unsampled": "[not sampled: short-lived threads]"}
    path = tmp_path / "profile.folded"
    path.write_text("".join(f"{stacks[name]} {weight}\n" for name, weight in weights.items()) + f"main;work {100 - sum(weights.values())}\n")
    return warnings_of(path)


def script(tmp_path, samples):
    """The warnings for perf script text with these stacks: [(number, [(function, module), …])], innermost first."""
    path, text, time_s = tmp_path / "profile.txt", [], 1.0
    for number, stack in samples:
        for _ in range(number):
            time_s += 0.01
            frames = "".join(f"\t{0x401000 + 0x1000 * depth:16x} {function} ({module})\n" if module else f"\t{0:16x} {function}\n" for depth, (function, module) in enumerate(stack))
            text.append(f"app 1/1 [000] {time_s:.6f}: 1000 cycles:\n{frames}\n")
    path.write_text("".join(text))
    return warnings_of(path)


NO_WAY = "has incomplete call chains ([incomplete]): no unwind table or frame pointer led to the caller"
TOO_DEEP = "has its outer callers cut off ([truncated]): the stack is deeper than what was recorded"


def test_small_parts_without_whole_stacks_cause_one_warning(tmp_path):
    assert folded(tmp_path, incomplete=3, truncated=2) == []
    assert folded(tmp_path, incomplete=4, truncated=3) == [(f"7.00% has no complete call chain, of which 4.00% {NO_WAY}", "")]
    assert folded(tmp_path, incomplete=2, truncated=4) == [(f"6.00% has no complete call chain, of which 4.00% {TOO_DEEP}", "")]
    (cause, remedy), = folded(tmp_path, incomplete=2, skipped=1, unsampled=4)
    assert cause == "7.00% has no complete call chain, of which 4.00% was not sampled ([not sampled]): threads exited before their next sample" and remedy
    # Large parts have a warning each. The sum adds nothing to them.
    assert folded(tmp_path, incomplete=10, truncated=8, unsampled=1) == [(f"10.00% {NO_WAY}", ""), (f"8.00% {TOO_DEEP}", "")]
    # The sum is reported if much more is missing than the single warnings cover.
    assert folded(tmp_path, incomplete=4, truncated=6, unsampled=3) == [(f"13.00% has no complete call chain, of which 6.00% {TOO_DEEP}", "")]


def test_small_modules_without_names_cause_one_warning(tmp_path):
    work, main = ("work", "/x/app"), ("main", "/x/app")

    def unnamed(**samples):
        return script(tmp_path, [(100 - sum(samples.values()), [work, main]), *((number, [("[unknown]", f"/x/{name}.so"), main]) for name, number in samples.items())])

    remedy = "give it with --binary FILE, or its root file system with --sysroot DIR"
    assert unnamed(a=3, b=2) == []
    assert unnamed(a=3, b=4, c=3) == [("10.00% has no function names, of which 4.00% is in functions of b.so without names: no file for /x/b.so was found", remedy)]
    assert unnamed(a=20, b=4) == [("20.00% is in functions of a.so without names: no file for /x/a.so was found", remedy)]


def test_remedies_fit_the_cause(tmp_path):
    """C code that Go calls has its own option. Root helps only if the agent reported that it may not sample whole CPUs."""
    called_by_go, c = [("deflate", "/x/app"), ("runtime.asmcgocall.abi0", "/x/app"), ("[incomplete]", "")], [("deflate", "/x/libz.so"), ("[incomplete]", "")]
    assert script(tmp_path, [(1, called_by_go)]) == [(f"100.00% {NO_WAY}, most often from app", "build its C code with CGO_CFLAGS=-fno-omit-frame-pointer")]
    assert script(tmp_path, [(1, c)]) == [(f"100.00% {NO_WAY}, most often from libz.so", "build libz.so with -fasynchronous-unwind-tables or -fno-omit-frame-pointer")]
    (_, remedy), = folded(tmp_path, unsampled=99)
    assert remedy == "record for a longer time, or with a higher -F"


def test_the_page_has_the_warnings_of_the_terminal(start, tmp_path):
    work, main = ("work", "/x/app"), ("main", "/x/app")
    expected = script(tmp_path, [(80, [work, main]), (9, [("[unknown]", "/x/a.so"), main]), (4, [work, ("[incomplete]", "")]), (3, [work, ("[truncated]", "")])])
    assert len(expected) == 2 and any(remedy for _, remedy in expected)
    server = start.server("--import", tmp_path / "profile.txt")
    session = server.wait_ended()["id"]
    answer = server.get("/api/warnings", session=session)
    assert [(warning["text"], warning["remedy"]) for warning in answer["warnings"]] == expected
    assert [warning["code"] for warning in answer["warnings"]] == ["incomplete", "unnamed"]
    # Another view has other warnings.
    assert server.get("/api/warnings", session=session, end=300)["warnings"] == []
