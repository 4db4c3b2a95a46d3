"""pprof profiles as dictionaries, decoded by protoc without our code."""
import gzip
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def parse_text(lines):
    """protoc's text format -> {field: [value or dictionary, …]}."""
    found = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            return found
        if line.endswith("{"):
            found.setdefault(line[:-1].strip(), []).append(parse_text(lines))
        else:
            name, value = line.split(": ", 1)
            if value.startswith('"'):
                value = value[1:-1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
            elif value not in ("true", "false"):
                value = int(value)
            found.setdefault(name, []).append(value)
    return found


def _protoc(what, data):
    return subprocess.run(["protoc", what, "-I", HERE, HERE / "profile.proto"], input=data, stdout=subprocess.PIPE, check=True).stdout


def decode(data):
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return parse_text(iter(_protoc("--decode=perftools.profiles.Profile", data).decode().splitlines()))


def encode(text):
    return _protoc("--encode=perftools.profiles.Profile", text.encode())


class Profile:
    """types: [(type, unit)]; samples: [(names innermost first, values, {label: text or number})]."""

    def __init__(self, data):
        raw = decode(data)
        strings = raw["string_table"]
        assert strings[0] == ""

        def one(message, field, default=0):
            return message.get(field, [default])[0]

        self.strings = strings
        self.types = [(strings[one(t, "type")], strings[one(t, "unit")]) for t in raw["sample_type"]]
        self.mappings = {one(m, "id"): (strings[one(m, "filename")], strings[one(m, "build_id")]) for m in raw.get("mapping", [])}
        functions = {one(f, "id"): strings[one(f, "name")] for f in raw.get("function", [])}
        self.locations = {}
        for location in raw.get("location", []):
            lines = [functions[one(line, "function_id")] for line in location.get("line", [])]
            self.locations[one(location, "id")] = (lines, one(location, "mapping_id"), one(location, "address"))
            assert one(location, "mapping_id") == 0 or one(location, "mapping_id") in self.mappings
        self.samples = []
        for sample in raw.get("sample", []):
            names = []
            for identifier in sample.get("location_id", []):
                lines, mapping, address = self.locations[identifier]
                names += lines or [f"[{self.mappings[mapping][0].rsplit('/', 1)[-1] + '+' if mapping else ''}{address:#x}]"]
            labels = {strings[one(label, "key")]: strings[one(label, "str")] if "str" in label else one(label, "num") for label in sample.get("label", [])}
            values = sample["value"]
            assert len(values) == len(self.types)
            self.samples.append((tuple(names), values, labels))
        self.comments = [strings[index] for index in raw.get("comment", [])]
