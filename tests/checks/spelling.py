"""Runs codespell over documentation, comments and messages, for American spelling. spelling.txt lists words that are right."""
import subprocess

import prose
from files import ROOT, text_of
from jobs import Outcome

WORDS = "tests/checks/spelling.txt"
# It contains misspelled words for tests.
EXCEPT = ("tests/checks/test_rules.py",)


def lines_of(name: str, text: str) -> list[tuple[int, str]]:
    """All lines of a page, including code and headings; the comments of a source."""
    return list(enumerate(text.splitlines(), 1)) if prose.is_page(name) else prose.lines_of(name, text)


def findings(texts: dict[str, str]) -> list[str]:
    """One run for all texts: codespell reports line numbers of its input, and `lines` maps these to files."""
    lines = [(f"{name}:{number}", line) for name, text in texts.items() for number, line in lines_of(name, text)]
    words = ["codespell", "--builtin", "clear,en-GB_to_en-US", "--ignore-words", str(ROOT / WORDS), "-"]
    done = subprocess.run(words, input="\n".join(line for _, line in lines), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found, place = [], ""
    for line in done.stdout.splitlines():
        number = line.split(":")[0]
        if number.isdigit():
            place = lines[int(number) - 1][0]
        else:
            found.append(f"{place}: {line.strip()} (if the word is right, add it to {WORDS})")
    return found


def check(names: list[str]) -> Outcome:
    found = findings({name: text_of(name) for name in prose.read(names) if name not in EXCEPT})
    return Outcome(not found, "\n".join(found))
