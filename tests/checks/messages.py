"""Generates docs/reference/messages.md from the code: every text of the programs and of the page that people can read.

C++: string literals of src/. Adjacent literals and literals joined by + are one text; {} stands for a value between them. A text
is a message if it has two words (a letter, one space, and a letter or a placeholder) and does not match NOT_MESSAGES.
The page: see page_messages.mjs.
"""
import difflib
import json
import pathlib
import re
import subprocess
from typing import Callable

from files import ROOT, text_of
from scripts import NODE

PAGE = "docs/reference/messages.md"
RENEW = "./dev check --fix " + PAGE
# (title, prefix of the files). The first match applies.
PROGRAMS = (
    ("Agent", "src/agent/"),
    ("Server", "src/server/"),
    ("Command line", "src/cli/"),
    ("Shared by the programs", "src/"),
    ("Page", "web/src/"),
)
INTRODUCTION = f"""# Messages

Which texts can the programs and the page show?

`./dev check` makes this list from the code and fails when it is not current. To renew it:

```sh
{RENEW}
```

The list has string literals of `src/`, and texts and string literals of `web/src/`, by folder.
`{{}}` stands for a value. Texts that the code joins from several places are listed in parts. The
rule that decides which literals are messages errs toward including too many; it is at the top of
`tests/checks/messages.py` and of `tests/checks/page_messages.mjs`. Options are part of the list.
[The style guide](../contributing/writing.md) states how to write a message.
"""
TOKEN = re.compile(r"""
    (?P<skipped> //[^\n]* | /\*.*?\*/ | ^[ \t]*\#[ \t]*(?:include|error|pragma)[^\n]* | '(?:\\.|[^'\\\n])+' )
  | (?P<number> \b\d['\w.]* )
  | R"(?P<mark>[^ ()\\]*)\((?P<raw>.*?)\)(?P=mark)"
  | "(?P<text>(?:\\.|[^"\\\n])*)"
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b"}
PLACEHOLDER = re.compile(r"\{[\w.]*(?::[^{}]*(?:\{\}[^{}]*)*)?\}")
TWO_WORDS = re.compile(r"(?:[A-Za-z]|\{\})[,.:;)'\"]* [('\"-]*(?:[A-Za-z]|\{\})")
WORD = re.compile(r"[A-Za-z]{2}")
NOT_MESSAGES = re.compile(r"""
    ^[\[{]*"\w+":                                         # JSON
  | ^HTTP/1 | ^(?:GET|PUT|POST)(?:\ [A-Z]+)*$ | ^[\w/.-]+;\ [\w-]+= | ^default-src
  | ^(?=.*(?:="|<!|<\?))(?:<[^>]*>|\{\})+$               # HTML and SVG without text
  | ^\.[A-Z]{1,2}\ [^a-z]*$                              # roff
  | COMPREPLY | ^(?:complete|local|case|shift|_\w+)\ | \besac$   # completion of shells
  | ^\s*(?:\.(?:globl|hidden|type)\ \w|(?:add|ldp|mov|stp)\ x\d)   # assembly
""", re.VERBOSE)
# The least number of lines of a text that stays together, for example --help.
LONG_TEXT = 4


def unescaped(text: str) -> str:
    text = re.sub(r"\\(?:x[0-9a-fA-F]+|[0-7]{1,3})", lambda match: chr(int(match[0].lstrip("\\x") or "0", 16 if "x" in match[0] else 8) % 256), text)
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)


def balanced(code: str) -> bool:
    return code.count("(") == code.count(")") and code.count("[") == code.count("]") and not re.search(r"[;{}?]|<<|&&|\|\|", code)


def literals(code: str) -> list[str]:
    """The string literals of C++ code in order, without escapes."""
    found: list[str] = []
    between = ""  # the code since the last literal
    at = 0
    for match in TOKEN.finditer(code):
        between += code[at:match.start()]
        at = match.end()
        if match["number"] is not None:
            between += match[0]
            continue
        if match["skipped"] is not None:
            between += "' '" if match[0].startswith("'") else ""
            continue
        text = match["raw"] if match["raw"] is not None else unescaped(match["text"])
        gap = between.strip()
        if found and not gap:
            found[-1] += text
        elif found and len(gap) > 1 and gap.startswith("+") and gap.endswith("+") and balanced(gap):
            found[-1] += "{}" + text
        else:
            if found and gap.startswith("+"):
                found[-1] += "{}"
            found.append(("{}" if gap.endswith("+") else "") + text)
        between = ""
    return found


def is_message(text: str) -> bool:
    return bool(TWO_WORDS.search(text) and WORD.search(text.replace("{}", "")) and not NOT_MESSAGES.search(text))


def lines_of(text: str) -> list[str]:
    plain = "".join(letter if letter >= " " or letter == "\n" else " " for letter in PLACEHOLDER.sub("{}", text))
    return [line.rstrip() for line in plain.splitlines()]


def messages_of(texts: list[str], wanted: Callable[[str], bool]) -> list[str]:
    """One line each; a text of LONG_TEXT lines or more stays together."""
    found = []
    for text in texts:
        lines = [line for line in lines_of(text) if wanted(line.strip())]
        found += ["\n".join(lines)] if len(lines) >= LONG_TEXT else [" ".join(line.split()) for line in lines]
    return found


def of_cpp(code: str) -> list[str]:
    return messages_of(literals(code), is_message)


def of_program(name: str) -> bool:
    return name.startswith("src/") and name.endswith((".cc", ".h"))


def of_page(name: str) -> bool:
    return name.startswith("web/src/") and name.endswith((".ts", ".tsx")) and not name.endswith(".gen.ts")


def concerns(name: str) -> bool:
    return name == PAGE or of_program(name) or of_page(name)


def of_web(names: list[str], typescript: pathlib.Path = NODE) -> dict[str, list[str]]:
    words = ["node", str(ROOT / "tests/checks/page_messages.mjs"), str(typescript), *names]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return {name: messages_of(texts, bool) for name, texts in json.loads(done.stdout).items()}


def collect(names: list[str]) -> dict[str, list[str]]:
    """Messages by file."""
    of_programs = [name for name in names if of_program(name)]
    return {name: of_cpp(text_of(name)) for name in of_programs} | of_web([name for name in names if of_page(name)])


def block(lines: list[str]) -> str:
    return "\n```text\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def page_of(messages: dict[str, list[str]]) -> str:
    by_program: dict[str, dict[str, set[str]]] = {title: {} for title, _ in PROGRAMS}
    for name, texts in messages.items():
        title = next(title for title, start in PROGRAMS if name.startswith(start))
        by_program[title].setdefault(str(pathlib.PurePath(name).parent), set()).update(texts)
    parts = [INTRODUCTION]
    for title, folders in by_program.items():
        parts.append(f"\n## {title}\n")
        for folder, texts in sorted(folders.items()):
            if texts:
                short = sorted(text for text in texts if "\n" not in text)
                long = sorted(texts.difference(short))
                parts += [f"\n### {folder}\n", block(short) if short else "", *(block([text]) for text in long)]
    return "".join(parts)


def write(tree: list[str]) -> None:
    (ROOT / PAGE).write_text(page_of(collect(tree)), encoding="utf-8")


def differences(there: str, made: str) -> list[str]:
    found = [line for line in difflib.unified_diff(there.splitlines(), made.splitlines(), n=0, lineterm="")
             if line[0] in "+-" and not line.startswith(("+++ ", "--- "))]
    return [f"{PAGE} is not current. Run: {RENEW}", *found] if there != made else []


def check(names: list[str], tree: list[str]) -> list[str]:
    if not any(concerns(name) for name in names):
        return []
    return differences(text_of(PAGE) if (ROOT / PAGE).exists() else "", page_of(collect(tree)))
