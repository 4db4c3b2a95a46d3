"""Checks that the files in the glossary exist, and that each type is declared in the file beside it."""
import re
from typing import Callable

from files import text_of

PAGE = "docs/contributing/glossary.md"
DECLARES = r"\b(?:struct|class|using|interface|type) (?:\[\[\w+\]\] )?{}\b(?!;)"


def findings(page: str, tree: list[str], text_of_file: Callable[[str], str]) -> list[str]:
    """A row ends with a path, or with one or more of "`Type` and `Type` in `path`", separated by semicolons."""
    found, files = [], set(tree)
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|"):
            continue
        for place in line.split("|")[-2].split(";"):
            words = re.findall(r"`([^`]+)`", place)
            paths = [word for word in words if "/" in word]
            found += [f"{PAGE}:{number}: {path} is not a file" for path in paths if path not in files]
            found += [f"{PAGE}:{number}: {path} does not declare {word}" for word in words if word not in paths for path in paths
                      if path in files and not re.search(DECLARES.format(re.escape(word)), text_of_file(path))]
            if words and not paths:
                found.append(f"{PAGE}:{number}: name the file that declares {words[0]}")
    return found


def check(tree: list[str]) -> list[str]:
    return findings(text_of(PAGE), tree, text_of)
