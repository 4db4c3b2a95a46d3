"""Mutants of C++ source: each is one line with one token, condition or statement changed.

The operators are the usual ones of mutation testing. They work on text and rely on clang-format: a binary operator has spaces around it,
while a template bracket, a reference and a pointer do not. A mutant that does not compile is replaced by another one."""

import dataclasses
import hashlib
import re

# Parts of a source that a mutant must not touch: comments, strings, characters, preprocessor lines, attributes.
OPAQUE = re.compile(
    r"""//[^\n]* | /\*.*?\*/
    | R"(?P<mark>[^\s()\\"]{0,16})\(.*?\)(?P=mark)"
    | "(?:[^"\\\n]|\\.)*"
    | (?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'
    | ^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*
    | \[\[.*?\]\]""",
    re.X | re.S | re.M,
)
# Statements that do not affect results: logs, compile-time checks, declarations of names.
UNTESTED = re.compile(r"\b(?:spdlog|static_assert|assert|log_line|log_in|log_command|FLAMEWIRE_\w+|using|namespace|template|typedef|friend|extern)\b|^\s*(?:public|private|protected):")

SWAPS = {
    "relational": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logical": {"&&": "||", "||": "&&"},
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "<<": ">>", ">>": "<<", "&": "|", "|": "&"},
}
BINARY = re.compile(r"(?<=\S )(<=|>=|==|!=|&&|\|\||\+=|-=|<<|>>|[<>+\-*/%&|])(?= \S|$)", re.M)
STEP = re.compile(r"\+\+|--")
NUMBER = re.compile(r"(?<![\w.'])(0[xX][0-9A-Fa-f']+|\d[\d']*)(?:\.\d+)?([uUlLzZ]*)(?![\w.'])")
BOOLEAN = re.compile(r"\b(true|false)\b")
CONDITION = re.compile(r"\b(?:if|while)(?: constexpr)? \(")
RETURN = re.compile(r"\breturn ([^;]+);\s*$")
CALL = re.compile(r"^\s*(?:[\w:.\[\]]|->)+(?:<[\w:, ]+>)?\(.*\);\s*$")
ASSIGNMENT = re.compile(r"^\s*\*?(?:[\w:.\[\]]|->)+ (?:[-+*/|&^]|<<|>>)?= .*;\s*$")
JUMP = re.compile(r"^\s*(?:break|continue);\s*$")


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str  # relative to the root of the source tree
    line: int  # from 1 on
    operator: str
    before: str
    after: str

    @property
    def key(self):
        """The content hash that identifies this mutant in a list of equivalent mutants. Other edits of the file do not change it."""
        text = "\0".join([self.path, self.before.strip(), self.operator, self.after.strip()])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def masked(text):
    """The same text with all opaque parts replaced by fillers of the same length, so offsets and line breaks stay."""

    def cover(match):
        # A space in a comment could look like the end of a statement, so comments become blanks.
        filler = " " if match[0].startswith(("//", "/*", "#", "[[")) or match[0].lstrip().startswith("#") else "_"
        return re.sub(r"[^\n]", filler, match[0])

    return OPAQUE.sub(cover, text)


def closing(text, start):
    """The offset of the parenthesis that closes the one at `start`, or None if it is not on this line."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def negated_conditions(code):
    for match in CONDITION.finditer(code):
        end = closing(code, match.end() - 1)
        if end is None:
            continue
        # if (initializer; condition)
        begin = code.rfind(";", match.end(), end) + 1 or match.end()
        begin += len(code[begin:end]) - len(code[begin:end].lstrip())
        yield begin, end, lambda old: f"!({old})"


def constants(code):
    for match in NUMBER.finditer(code):
        digits, suffix = match[1], match[2]
        if "." in match[0]:
            yield match.start(), match.end(), lambda old: str(float(old.rstrip("fF").replace("'", "")) + 1)
            continue
        value = int(digits.replace("'", ""), 0) if digits.lower().startswith("0x") else int(digits.replace("'", ""))
        for other in (value + 1, value - 1):
            if other >= 0:
                text = (hex(other) if digits.lower().startswith("0x") else str(other)) + suffix
                yield match.start(1), match.end(2), lambda old, text=text: text
    for match in BOOLEAN.finditer(code):
        yield match.start(), match.end(), lambda old: {"true": "false", "false": "true"}[old]


def replacements(code, starts_statement, is_header):
    """(operator, begin, end, function of the old text) for each mutant of one masked line."""
    for match in BINARY.finditer(code):
        for operator, swaps in SWAPS.items():
            if match[1] in swaps:
                yield operator, match.start(1), match.end(1), swaps.get
    for match in STEP.finditer(code):
        yield "arithmetic", match.start(), match.end(), {"++": "--", "--": "++"}.get
    for begin, end, change in negated_conditions(code):
        yield "negation", begin, end, change
    for begin, end, change in constants(code):
        yield "constant", begin, end, change
    match = RETURN.search(code)
    if match and match[1] != "{}":
        yield "return", match.start(1), match.end(1), lambda old: "{}"
    if not is_header and starts_statement and code.count("(") == code.count(")"):
        if CALL.match(code) or ASSIGNMENT.match(code) or JUMP.match(code):
            begin = len(code) - len(code.lstrip())
            yield "deletion", begin, len(code.rstrip()), lambda old: ";"


def mutants_of(path, text):
    """All mutants of one file, by line."""
    lines, codes = text.split("\n"), masked(text).split("\n")
    found, previous, skipping = {}, ";", False
    for number, (line, code) in enumerate(zip(lines, codes), 1):
        # An untested statement may continue for several lines.
        skipping = skipping or bool(UNTESTED.search(code))
        starts_statement = previous.endswith((";", "{", "}", ":", ")", "else"))
        if not skipping:
            for operator, begin, end, change in replacements(code, starts_statement, path.endswith(".h")):
                after = line[:begin] + change(line[begin:end]) + line[end:]
                if after != line:
                    found.setdefault(number, []).append(Mutant(path, number, operator, line, after))
        if code.strip():
            previous = code.rstrip()
        if previous.endswith((";", "{", "}", ":")):
            skipping = False
    return found


def apply(text, mutant):
    lines = text.split("\n")
    if lines[mutant.line - 1] != mutant.before:
        raise ValueError(f"{mutant.path}:{mutant.line} has changed")
    lines[mutant.line - 1] = mutant.after
    return "\n".join(lines)
