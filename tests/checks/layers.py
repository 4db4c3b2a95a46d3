"""Which parts of src/ may include which: the table of docs/architecture.md in a form that can be checked."""
import pathlib

from files import ROOT
from includes import quoted_includes

# A part is a folder or a single file below src/, given by the beginning of its path; the longest one applies.
DESK = {"base", "wire", "secure", "elf", "counters", "symbol", "profile", "server/limits.h", "server/log_pace.h"}
SESSION = {"base", "wire", "elf", "symbol", "profile", "server/limits.h", "server/log_pace.h"}
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "wire": {"base"},
    "secure": {"base"},
    "elf": {"base"},
    "counters": {"base", "wire"},
    "unwind": {"base", "elf"},
    "symbol": {"base", "elf"},
    "profile": {"base", "wire", "symbol"},
    "profile/formats/perf_data": {"base", "elf", "unwind", "symbol", "profile"},
    "profile/formats/import.cc": {"base", "profile", "profile/formats/perf_data"},
    "profile/formats/export.cc": {"base", "wire", "profile", "profile/formats/perf_data"},
    "server/limits.h": set(),
    "server/log_pace.h": {"base"},
    "server/session": SESSION,
    "server/source": SESSION | {"server/session"},
    "server/link": SESSION | {"secure", "server/session"},
    "server/http": DESK | {"server/session", "server/source", "server/link"},
    "server": DESK | {"server/session", "server/source", "server/link", "server/http"},
    "cli": DESK | {"server", "server/session", "server/source", "server/link", "server/http"},
    "agent/json.": {"base", "wire"},
    "agent/perf/record.h": {"base", "wire", "unwind"},
    "agent/perf": {"base", "wire", "unwind", "agent/perf/record.h"},
    "agent/process": {"base", "wire", "elf", "unwind", "agent/perf/record.h"},
    "agent/pipeline": {"base", "wire", "counters", "unwind", "agent/perf", "agent/perf/record.h", "agent/process"},
    "agent/link": {"base", "wire", "secure", "counters"},
    "agent/capture": {"base", "wire", "agent/perf", "agent/batch_sink.h"},
    "agent/batch_sink.h": {"base", "wire"},
    "agent/health": {"base", "agent/process", "agent/json."},
    "agent": {"base", "wire", "secure", "elf", "counters", "unwind", "agent/json.", "agent/perf", "agent/perf/record.h", "agent/process",
              "agent/pipeline", "agent/capture", "agent/batch_sink.h", "agent/link", "agent/health"},
    "replay": {"base", "wire", "unwind", "agent", "agent/perf", "agent/perf/record.h", "agent/process", "agent/capture", "agent/batch_sink.h"},
}


def part_of(path: str) -> str | None:
    """The part to which a path below src/ belongs; None if the table lacks it."""
    fitting = [part for part in ALLOWED
               if path == part or path.startswith(part + "/") or ("." in part and path.startswith(part))]
    return max(fitting, key=len, default=None)


def forbidden(path: str, included: list[str]) -> list[str]:
    """Sentences about what the file at `path` (below src/) includes and must not."""
    part = part_of(path)
    if part is None:
        return [f"src/{path}: its folder is not in the table of tests/checks/layers.py"]
    found = []
    for name in included:
        other = part_of(name)
        if other not in (None, part) and other not in ALLOWED[part]:
            found.append(f"src/{path} includes {name}, but {part} may not use {other} (docs/architecture.md)")
    return found


def check(names: list[str]) -> list[str]:
    found = []
    for name in names:
        if name.startswith("src/") and name.endswith((".cc", ".h")):
            found += forbidden(name.removeprefix("src/"), quoted_includes(ROOT / pathlib.PurePath(name)))
    return found
