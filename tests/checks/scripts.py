"""Checks of files other than C++: the page, scripts, CMake, Markdown, Python. Each check is one tool over many files."""
import functools
import pathlib
import re

import cache
from files import ROOT
from jobs import Job, command, in_turn

# Packages and configuration of the Node.js tools, copied here so that the tree stays clean.
NODE = ROOT / "build-lint" / "checks"
WEB = ROOT / "build-lint" / "web" / "ui"
SHELL = ("dev", ".ci/run", "cmake/package/flamewire-agent.init", "cmake/package/postinst", "cmake/package/prerm")


def in_web(name: str) -> bool:
    return name.startswith(("web/", "tests/e2e/", "tests/checks/")) and not name.endswith((".gen.ts", "package-lock.json"))


def of_prettier(name: str) -> bool:
    return in_web(name) and name.endswith((".ts", ".tsx", ".mjs", ".css", ".html", ".json"))


def of_eslint(name: str) -> bool:
    return in_web(name) and name.endswith((".ts", ".tsx", ".mjs"))


def of_types(name: str) -> bool:
    return name.startswith("web/") and name.endswith((".ts", ".tsx", "tsconfig.json", "package.json"))


def of_shell(name: str) -> bool:
    return name in SHELL or name.endswith(".sh")


def of_cmake(name: str) -> bool:
    return name.endswith(("CMakeLists.txt", ".cmake"))


def of_markdown(name: str) -> bool:
    return name.endswith(".md")


def of_python(name: str) -> bool:
    return name.endswith(".py")


def tool_job(check: str, words: list[str], names: list[str], config: list[pathlib.Path], done: cache.Cache, *, fix: bool = False,
             each: bool = False, silent: bool = False) -> list[Job]:
    """each: the tool checks files independently, so passed ones are skipped. Otherwise all are checked if one changed."""
    inputs = [cache.file_hash(path) for path in config]
    keys = {name: cache.key(check, *words, *inputs, cache.file_hash(ROOT / name)) for name in names}
    if not each:
        keys = {name: cache.key(check, *keys.values()) for name in names}
    if not fix:
        names = [name for name in names if not done.has(keys[name])]
    if not names:
        return []
    run = functools.partial(command, [*words, *names], expected_output=not silent)
    return [Job(check, names, run, [] if fix else sorted({keys[name] for name in names}), 1000)]


def type_job(names: list[str], web_files: list[str], done: cache.Cache) -> list[Job]:
    """Types depend on all files of the page, so any change checks the whole page."""
    key = cache.key("tsc", *(cache.file_hash(ROOT / name) for name in web_files))
    if not names or done.has(key):
        return []
    words = ["node", str(WEB / "node_modules/typescript/bin/tsc"), "--noEmit", "-p", str(WEB)]
    return [Job("tsc", names, functools.partial(command, words, WEB), [key], 1000)]


def node_tool(package: str, path: str) -> list[str]:
    return ["node", str(NODE / "node_modules" / package / path)]


def jobs(names: list[str], tree: list[str], fix: bool, done: cache.Cache) -> list[Job]:
    lock = ROOT / "tests/checks/package-lock.json"

    def those(wanted) -> list[str]:
        return [name for name in names if wanted(name)]

    made = tool_job("Prettier", [*node_tool("prettier", "bin/prettier.cjs"), *(["--write", "--log-level=warn"] if fix else ["--check"])],
                    those(of_prettier), [lock, ROOT / ".prettierrc.json"], done, each=True, fix=fix)
    made += tool_job("ESLint", [*node_tool("eslint", "bin/eslint.js"), "--max-warnings=0", "--config", str(NODE / "eslint.config.mjs"),
                                *(["--fix"] if fix else [])],
                     those(of_eslint), [lock, ROOT / "tests/checks/eslint.config.mjs"], done, each=True, fix=fix)
    made += tool_job("markdownlint", [*node_tool("markdownlint-cli2", "markdownlint-cli2-bin.mjs"), "--no-globs", *(["--fix"] if fix else [])],
                     those(of_markdown), [lock, ROOT / ".markdownlint.jsonc"], done, each=True, fix=fix)
    if fix:
        # Sequential, because they write the same files. In some places Prettier reaches its own style only in the
        # second run.
        prettier = [job.run for job in made if job.check == "Prettier"]
        eslint = [job.run for job in made if job.check == "ESLint"]
        others = [job for job in made if job.check not in ("Prettier", "ESLint")]
        return [*others, Job("ESLint and Prettier", those(in_web), functools.partial(in_turn, eslint + 2 * prettier))]
    made += type_job(those(of_types), [name for name in tree if name.startswith("web/")], done)
    made += tool_job("shellcheck", ["shellcheck", "-x", "-P", "SCRIPTDIR"], those(of_shell), [], done)
    made += tool_job("cmake-lint", ["cmake-lint", "--suppress-decorations", "--log-level", "error", "-c", str(ROOT / ".cmake-format.json"), "--"],
                     those(of_cmake), [ROOT / ".cmake-format.json"], done, each=True)
    made += tool_job("pyflakes", ["/usr/bin/python3", "-m", "pyflakes"], those(of_python), [], done, each=True)
    return made


def anchors(text: str) -> set[str]:
    """The fragments that GitHub assigns to the headings of a page."""
    fragments: set[str] = set()
    for title in re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE):
        fragment = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", title).lower()).replace(" ", "-")
        fragments.add(next(name for name in (fragment, *(f"{fragment}-{n}" for n in range(1, 100))) if name not in fragments))
    return fragments


def broken_links(tree: list[str], root: pathlib.Path = ROOT) -> list[str]:
    """Checks that links between pages lead to existing files and headings. markdownlint checks links within a page."""
    known = set(tree)
    known |= {str(parent) for name in tree for parent in pathlib.PurePath(name).parents}
    pages = {name: (root / name).read_text(encoding="utf-8") for name in tree if of_markdown(name)}
    found = []
    for name, page in pages.items():
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:|#", link):
                continue
            path, _, fragment = link.partition("#")
            target = ((root / name).parent / path).resolve()
            to = str(target.relative_to(root)) if target.is_relative_to(root) else ""
            if to not in known:
                found.append(f"{name}: the link {link} leads nowhere")
            elif fragment and to in pages and fragment not in anchors(pages[to]):
                found.append(f"{name}: the link {link} leads to a heading that {to} does not have")
    return found


def unlisted_pages(tree: list[str], index: str) -> list[str]:
    """Pages below docs/ to which docs/README.md (`index`) does not link."""
    linked = {str(pathlib.PurePath("docs", link.split("#")[0])) for link in re.findall(r"\]\(([^)\s]+)\)", index)}
    return [f"docs/README.md does not list {name}" for name in tree
            if name.startswith("docs/") and of_markdown(name) and name != "docs/README.md" and name not in linked]
