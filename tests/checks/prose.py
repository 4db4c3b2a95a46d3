"""Plain words in Markdown: phrases that docs/contributing/writing.md rules out. Code and quoted messages are left out."""
import re

from files import text_of

# The guide itself quotes what it rules out; messages that programs print are quoted in blocks of code.
EXCEPT = ("docs/contributing/writing.md",)
PHRASES = (
    (re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more than\b)[a-z]+", re.IGNORECASE), 'write "is not a ..."'),
    (re.compile(r"\b(?:told|heed(?:s|ed)?|judge[sd]?|believe[sd]?)\b", re.IGNORECASE), "code does not judge or believe, and is not told anything: use the field's verb"),
    (re.compile(r"\b(?:whoever|whom)\b", re.IGNORECASE), "name the person or the thing"),
    (re.compile(r"\bsuch as there (?:is|are)\b|\bcomes no more\b|\bof anybody else's\b", re.IGNORECASE), "write it the usual way round"),
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


def findings(name: str, text: str) -> list[str]:
    return [f"{name}:{number}: '{found[0]}': {advice} (docs/contributing/writing.md)"
            for number, line in prose_of(text) for phrase, advice in PHRASES for found in phrase.finditer(line)]


def check(names: list[str]) -> list[str]:
    return [finding for name in names if name.endswith(".md") and name not in EXCEPT for finding in findings(name, text_of(name))]
