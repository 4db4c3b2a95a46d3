"""Checks that the page of notices lists exactly those that the agent can give."""
import re

from files import text_of

PAGE = "docs/sampling/notices.md"
MAKES_NOTICES = re.compile(r"\bnotices?_?\b|\btake_notices\b|\bNotice\b|\b(?:add_notice|notify)\(")
CODE = re.compile(r'[({]\s*"([a-z]+(?:-[a-z]+)+)",\s')  # the first of code, text and remedy


def codes(sources: dict[str, str]) -> dict[str, str]:
    """Code of a notice -> a source that gives it."""
    return {code: name for name, text in sources.items() if MAKES_NOTICES.search(text) for code in CODE.findall(text)}


def findings(page: str, sources: dict[str, str]) -> list[str]:
    given, listed = codes(sources), set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    return ([f"{name}: {PAGE} does not list the notice {code}" for code, name in sorted(given.items()) if code not in listed]
            + [f"{PAGE}: the agent does not give the notice {code}" for code in sorted(listed - set(given))])


def check(tree: list[str]) -> list[str]:
    return findings(text_of(PAGE), {name: text_of(name) for name in tree if name.startswith("src/agent/") and name.endswith(".cc")})
