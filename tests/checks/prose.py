"""Finds phrases in Markdown, comments and messages that docs/contributing/writing.md rules out. Skips inline code."""
import re

import messages
from comments import comments_of, style_of
from files import text_of

# The guide and these rules contain the phrases that they rule out.
EXCEPT = ("docs/contributing/writing.md", "tests/checks/prose.py", "tests/checks/test_rules.py")
PHRASES = (
    (re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more than\b)[a-z]+", re.IGNORECASE), 'write "is not a ..."'),
    (re.compile(r"\b(?:told(?! apart)|heed(?:s|ed)?|judge[sd]?|believe[sd]?)\b", re.IGNORECASE), "code does not judge or believe, and is not told anything: use the field's verb"),
    (re.compile(r"\b(?:whoever|whom)\b", re.IGNORECASE), "name the person or the thing"),
    (re.compile(r"\bsuch as there (?:is|are)\b|\bcomes no more\b|\bof anybody else's\b", re.IGNORECASE), "use the usual order of words"),
)
INLINE_CODE = re.compile(r"`[^`]*`")


def prose_of(text: str) -> list[tuple[int, str]]:
    """(line number, line) without fenced blocks, headings and inline code."""
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("#"):
            lines.append((number, INLINE_CODE.sub("``", line)))
    return lines


def is_page(name: str) -> bool:
    return name.endswith(".md") or name.startswith("docs/man/")


def lines_of(name: str, text: str) -> list[tuple[int, str]]:
    """The lines that people read. In the list of messages these are all lines; other pages and sources omit code."""
    if name == messages.PAGE:
        return list(enumerate(text.splitlines(), 1))
    if is_page(name):
        return prose_of(text)
    return [(number, INLINE_CODE.sub("``", comment)) for number, comment in comments_of(name, text)]


def findings(name: str, text: str) -> list[str]:
    return [f"{name}:{number}: '{found[0]}': {advice} (docs/contributing/writing.md)"
            for number, line in lines_of(name, text) for phrase, advice in PHRASES for found in phrase.finditer(line)]


def read(names: list[str]) -> list[str]:
    """The files with prose: pages, sources with comments, and the list of messages if messages may have changed."""
    listed = [messages.PAGE] if any(messages.concerns(name) for name in names) else []
    return sorted({*(name for name in names if is_page(name) or style_of(name)), *listed})


def check(names: list[str]) -> list[str]:
    return [finding for name in read(names) if name not in EXCEPT for finding in findings(name, text_of(name))]
