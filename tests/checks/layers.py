"""Which parts of src/ may include which others: the table of docs/architecture.md, for checks."""
import pathlib

from files import ROOT
from includes import quoted_includes

# A part is a folder or a single file below src/, given by the beginning of its path. The longest match applies.
# The four sets of folders contain the public headers of a library.
UNWIND = {"unwind/frame", "unwind/tables", "unwind/walk", "unwind/join"}
SYMBOL = {"symbol", "symbol/types", "symbol/files", "symbol/disassembly"}
PROFILE = {"profile/store", "profile/query", "profile/symbols", "profile/formats"}
SESSION = {"base", "wire", "elf", "server/limits.h", "server/rate_limited_log.h"} | SYMBOL | PROFILE
DESK = SESSION | {"secure", "counters", "views"}  # not views/sql: only the command line links SQLite
AGENT_SHARED = {"agent", "agent/log.", "agent/batch_sink.h"}
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "wire": {"base"},
    "secure": {"base"},
    "elf": {"base"},
    "counters": {"base", "wire"},
    "perf": {"base"},
    "process": {"perf"},
    "recording": {"base", "wire", "perf"},
    "unwind/frame": {"base"},
    "unwind/code": {"base", "unwind/frame"},
    "unwind/arch": {"unwind/frame", "unwind/code"},
    "unwind/tables": {"base", "elf", "unwind/frame", "unwind/code", "unwind/arch"},
    "unwind/walk": {"base", "unwind/frame", "unwind/arch", "unwind/tables"},
    "unwind/join": {"unwind/frame"},
    "symbol/types": {"base"},
    "symbol/demangle.": set(),
    "symbol/files": {"base", "elf", "symbol/types"},
    "symbol/dwarf": {"base", "elf", "symbol/types", "symbol/demangle.", "symbol/files"},
    "symbol/kernel": {"base", "elf", "symbol/types", "symbol/files", "symbol/dwarf"},
    "symbol/disassembly": {"base", "symbol/types"},
    "symbol": {"base", "symbol/types", "symbol/demangle.", "symbol/files", "symbol/dwarf", "symbol/kernel", "symbol/disassembly"},
    "profile/store": {"base", "wire", "recording", "symbol/types"},
    "profile/query": {"base", "wire", "symbol/types", "profile/store"},
    "profile/symbols": {"base", "wire", "symbol/types", "profile/store"},
    "profile/formats": {"base", "wire", "recording", "symbol/types", "symbol/files", "profile/store", "profile/query"},
    "profile/formats/perf_data": {"base", "elf", "perf", "process", "unwind/frame", "unwind/tables", "unwind/walk", "symbol/types", "symbol/files", "symbol/kernel",
                                  "profile/store", "profile/formats"},
    "profile/formats/import.cc": {"profile/formats", "profile/formats/perf_data"},
    "profile/formats/export.cc": {"profile/formats", "profile/formats/perf_data"},
    "views": {"base", "wire", "counters", "profile/store", "profile/query"} | SYMBOL,
    "views/sql": {"base", "wire", "symbol/types", "profile/store", "profile/query", "profile/formats", "views"},
    "server/limits.h": set(),
    "server/rate_limited_log.h": {"base"},
    "server/session": SESSION,
    "server/source": SESSION | {"server/session"},
    "server/link": SESSION | {"secure", "server/session"},
    "server/http": DESK | {"symbol/demangle.", "server/session", "server/source", "server/link"},
    "server": DESK | {"server/session", "server/source", "server/link", "server/http"},
    "cli": DESK | {"views/sql", "symbol/demangle.", "server", "server/session", "server/source", "server/link"},
    "agent/perf/record.h": {"perf", "wire"},
    "agent/perf": {"base", "wire", "perf", "unwind/frame", "agent/perf/record.h"},
    "agent/process": {"base", "wire", "elf", "process", "agent/perf/record.h"} | UNWIND,
    "agent/probes": {"base", "elf", "unwind/frame", "unwind/code", "unwind/arch", "unwind/tables", "agent/perf", "agent/process", "agent/log."},
    "agent/pipeline": {"base", "wire", "counters", "perf", "process", "recording", "agent/perf", "agent/perf/record.h", "agent/process"} | UNWIND,
    "agent/log.": {"base"},
    "agent/link": {"base", "wire", "secure", "counters", "agent/log."},
    "agent/capture": {"base", "wire", "agent/perf", "agent/batch_sink.h"},
    "agent/batch_sink.h": {"base", "wire"},
    "agent/health": {"base", "agent/process"},
    "agent/stubs": set(),
    "agent": {"base", "wire", "secure", "elf", "counters", "agent/perf", "agent/process", "agent/pipeline", "agent/health",
              "unwind/walk"},
    "agent/recording": {"base", "wire", "recording", "agent/perf", "agent/perf/record.h", "agent/process", "agent/pipeline", "agent/probes"} | AGENT_SHARED,
    "agent/control": {"base", "wire", "secure", "elf", "counters", "agent/perf", "agent/process", "agent/probes", "agent/capture", "agent/link", "agent/health",
                      "agent/recording"} | AGENT_SHARED,
    "agent/main.cc": {"base", "agent", "agent/control", "agent/log."},
    "replay": {"base", "wire", "agent", "agent/recording", "agent/perf", "agent/process", "agent/capture"},
}


def part_of(path: str) -> str | None:
    """The part to which a path below src/ belongs; None if it is not in the table."""
    fitting = [part for part in ALLOWED
               if path == part or path.startswith(part + "/") or ("." in part and path.startswith(part))]
    return max(fitting, key=len, default=None)


def forbidden(path: str, included: list[str]) -> list[str]:
    """Findings about forbidden includes of the file at `path` (below src/)."""
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
