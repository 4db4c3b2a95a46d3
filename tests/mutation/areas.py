"""Maps each folder of src/ to its tests: the unit tests of the area, or other cheap tests if it has none."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Area:
    name: str
    folder: str
    targets: tuple  # CMake targets; a mutant counts if one of these compiles it
    commands: tuple  # words with {bin} and {tree}; run until one fails


def unit(folder, *names):
    names = names or (folder.replace("/", "_"),)
    return Area(names[0], f"src/{folder}/", tuple(f"unit_{name}" for name in names), tuple(("{bin}/unit_" + name, "--abort") for name in names))


def pytest(*nodes):
    return ("env", "FLAMEWIRE_BIN={bin}", "/usr/bin/python3", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(f"tests/integration/{node}" for node in nodes))


# These record nothing: the test writes all input of the server or the command line.
CLI_TESTS = pytest("test_cli_files.py", "test_probe_list.py", *(f"test_cli.py::test_{name}" for name in ("mistakes_are_one_sentence", "wrong_usage", "completions_and_manual")))
LINK_TESTS = pytest("test_modules.py::test_the_server_asks_for_the_module_that_it_lacks",
                    *(f"test_limits.py::test_{name}" for name in ("hellos_are_bounded", "frames_are_bounded", "bodies_are_bounded", "dials")))

# The longest matching folder applies.
AREAS = (
    unit("base"),
    unit("wire"),
    unit("secure"),
    unit("counters"),
    unit("elf"),
    unit("perf", "perf", "agent_perf", "perf_data"),
    unit("process", "process", "agent_process", "agent_pipeline"),
    unit("unwind"),
    unit("symbol"),
    unit("profile"),
    unit("profile/formats/perf_data", "perf_data", "profile"),
    unit("agent/perf"),
    unit("agent/process"),
    unit("agent/probes"),
    unit("agent/pipeline"),
    unit("agent/link"),
    unit("agent/health"),
    unit("agent/capture", "replay"),
    unit("recording", "recording", "agent_pipeline", "profile"),
    unit("views", "server"),
    unit("views/sql", "sql"),
    unit("replay"),
    unit("agent"),
    unit("server", "server", "limits"),
    Area("server_link", "src/server/link/", ("unit_server", "flamewire-server"), (("{bin}/unit_server", "--abort"), LINK_TESTS)),
    Area("cli", "src/cli/", ("flamewire",), (CLI_TESTS,)),
)


def area_of(path):
    fitting = [area for area in AREAS if path.startswith(area.folder)]
    return max(fitting, key=lambda area: len(area.folder), default=None)
