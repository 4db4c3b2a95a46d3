"""Comments of source files, line by line. Approximate: text in a string literal that looks like a comment also counts."""
import re

SLASHES = re.compile(r"(?:^|\s)//+ (.*)|/\*+ ?(.*?)(?:\*/|$)")
HASHES = re.compile(r"(?:^|\s)# (.*)")


def style_of(name: str) -> re.Pattern[str] | None:
    if name.endswith((".cc", ".h", ".c", ".ts", ".tsx", ".mjs", ".css")) and not name.endswith(".gen.ts"):
        return SLASHES
    if name.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) or name in ("dev", ".ci/run"):
        return HASHES
    return None


def comments_of(name: str, text: str) -> list[tuple[int, str]]:
    """(line number, comment)"""
    style = style_of(name)
    return [] if style is None else [(number, next(part for part in match.groups() if part is not None))
                                     for number, line in enumerate(text.splitlines(), 1) for match in style.finditer(line)]
