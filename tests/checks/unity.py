"""Groups sources into translation units, because parsing the same headers takes most of the time of each source.

unity.py LINES SOURCE... prints a line for each source that shares a unit: the number of the unit and the source
(cmake/UnityBuild.cmake).
"""
import collections
import dataclasses
import functools
import os
import pathlib
import re
import sys
import typing

from files import ROOT
from includes import closure

# Sources that do not compile after others: libiberty.h and string.h declare basename() differently, linux/tcp.h
# conflicts with netinet/tcp.h, and a function of the file hides one of an enclosing namespace.
SINGLE = ("src/symbol/demangle.cc", "src/server/http/tcp_bytes.cc", "src/cli/manual.cc")
USING_NAMESPACE = re.compile(r"^using namespace", re.MULTILINE)


TYPE = re.compile(r"(?:template <.*> )?(?:struct|union|class|enum(?: class| struct)?) (\w+)(?![^{]*;$)|using (\w+) =")
OTHER = re.compile(r"#[ \t]*define[ \t]+(\w+)"
                   r"|(?![ #/}\s]|(?:struct|class|union|enum|namespace)\b|using\b|static_assert\b|TEST_CASE\b|extern \"C\")[^=({;\[]*?(?<!::)(?<!~)\b(\w+)(?:\(|\[|\{| =|;)")
USING = re.compile(r"^using ([\w:]+::\w+);", re.MULTILINE)


def defined_names(text: str) -> tuple[set[str], set[str]]:
    """Types and other names that a formatted file defines in namespaces, without members that are defined outside of a class."""
    types, others, namespaces = set(), set(), []
    in_block = False  # of a function or type; a short namespace can also end without a comment
    for line in text.splitlines():
        if line.startswith("namespace ") and line.endswith("{"):
            namespaces.append(line.removeprefix("namespace ").removesuffix("{").strip())
        elif line.startswith("}"):
            if not in_block and not line.startswith("};"):
                del namespaces[-1:]
            in_block = False
        else:
            in_block |= line.endswith(" {") and not line.endswith("= {")
            for found, names in ((TYPE.match(line), types), (OTHER.match(line), others)):
                if found:
                    further = re.findall(r", (\w+) = ", line) if line.endswith(";") else []
                    names.update("::".join([*filter(None, namespaces), name]) for name in (found[found.lastindex], *further))
                    break
    return types, others


@functools.cache
def defined_in(path: pathlib.Path) -> tuple[set[str], set[str]]:
    return defined_names(path.read_text(errors="replace"))


class Definition(typing.NamedTuple):
    name: str  # with its namespaces
    file: str

    def hides(self, other: "Definition") -> bool:
        """In one unit. Two headers only clash if a name of an inner namespace hides one of an outer namespace."""
        if self == other or not (self.file.endswith(".h") and other.file.endswith(".h")):
            return self != other
        inner, outer = (definition.name.rpartition("::")[0] + "::" for definition in (self, other))
        return inner.startswith(outer) or outer.startswith(inner)


@functools.cache
def names_in_unit(name: str, strict: bool) -> dict[str, frozenset[Definition]]:
    """The names that a source adds to a unit, with their definitions. Only types of headers can clash.
    
    Strict: compares names without namespaces, because an inner name hides an outer one. A using-declaration also counts, because it
    applies to the following sources.
    """
    source, found = ROOT / name, collections.defaultdict(set)
    for path in closure(source):
        types, others = defined_in(path)
        for defined in types | (others if path == source else set()):
            found[defined.split("::")[-1] if strict else defined].add(Definition(defined, str(path)))
    if strict:
        for used in USING.findall(source.read_text(errors="replace")):
            found[used.split("::")[-1]] = {Definition(used, "")}
    return {defined: frozenset(definitions) for defined, definitions in found.items()}


@dataclasses.dataclass
class Unit:
    names: list[str] = dataclasses.field(default_factory=list)
    defined: dict[str, frozenset[Definition]] = dataclasses.field(default_factory=dict)
    lines: int = 0

    def clashes(self, defined: dict[str, frozenset[Definition]]) -> bool:
        return any(one.hides(other) for name, definitions in defined.items() if self.defined.get(name, definitions) != definitions
                   for one in self.defined[name] for other in definitions)

    def add(self, name: str, defined: dict[str, frozenset[Definition]], lines: int) -> None:
        self.names.append(name)
        self.lines += lines
        for one, definitions in defined.items():
            self.defined[one] = self.defined.get(one, frozenset()) | definitions


def stands_alone(name: str, strict: bool) -> bool:
    """A source under src/ with a using-directive can clash with any other source."""
    return name in SINGLE or strict and name.startswith("src/") and bool(USING_NAMESPACE.search((ROOT / name).read_text()))


def make_units(names: list[str], most_lines: int, strict: bool) -> list[list[str]]:
    """Units of sources without clashing names, of about the same size. A longer source is a separate unit.

    Units that are not strict are longer. A few of them do not compile.
    """
    made = [[name] for name in names if stands_alone(name, strict)]
    units: list[Unit] = []
    for name in names:
        if [name] in made:
            continue
        defined, lines = names_in_unit(name, strict), (ROOT / name).read_text().count("\n")
        unit = next((unit for unit in units if unit.lines + lines <= most_lines and not unit.clashes(defined)), None)
        if unit is None:
            units.append(unit := Unit())
        unit.add(name, defined, lines)
    return made + [unit.names for unit in units]


def main(most_lines: str, *sources: str) -> None:
    names = {os.path.relpath(os.path.realpath(source), ROOT): source for source in sources}
    for number, unit in enumerate(make_units(list(names), int(most_lines), strict=True)):
        for name in unit if len(unit) > 1 else []:
            print(number, names[name])


if __name__ == "__main__":
    main(*sys.argv[1:])
