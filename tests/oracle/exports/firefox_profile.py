"""The requirements for a processed profile of the Firefox Profiler, written from the published description of the format (firefox-devtools/profiler: the types
of a profile with their comments, and the log of format changes): tables of columns, indexes into other tables, and trees in which callers come first.
This is version 44, in which each thread has its own tables."""

VERSION = 44
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey"}
WEIGHT_TYPES = {"samples", "tracing-ms", "bytes"}
COLUMNS = {
    "stackTable": {"frame", "prefix", "category", "subcategory"},
    "frameTable": {"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID", "implementation", "line", "column"},
    "funcTable": {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"},
    "resourceTable": {"lib", "name", "host", "type"},
    "nativeSymbols": {"libIndex", "address", "name", "functionSize"},
    "markers": {"data", "name", "startTime", "endTime", "phase", "category"},
    "samples": {"stack", "time", "weight"},
}


class Wrong(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Wrong(what)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_meta(meta, threads):
    need(meta.get("preprocessedProfileVersion") == VERSION and is_whole(meta.get("version")), "the versions of both formats")
    for key in ("interval", "startTime"):
        need(is_number(meta.get(key)), f"meta.{key} is a number of milliseconds")
    need(meta["interval"] > 0 and meta["startTime"] >= 0, "times of meta")
    need(is_whole(meta.get("processType")) and meta.get("stackwalk") in (0, 1), "processType and stackwalk")
    need(isinstance(meta.get("product"), str) and isinstance(meta.get("markerSchema"), list), "product and markerSchema")
    need(meta.get("symbolicated") is True, "it has its names")
    need(meta.get("sampleUnits") == {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}, "units of samples")
    categories = meta["categories"]
    need(any(one["color"] == "grey" for one in categories), "a grey category is the default")
    for one in categories:
        need(isinstance(one["name"], str) and one["color"] in COLORS, f"category {one}")
        need(one["subcategories"] and one["subcategories"][0] == "Other", "subcategory 0 is the category itself")
    for key in ("initialSelectedThreads", "initialVisibleThreads"):
        need(all(is_whole(one) and 0 <= one < threads for one in meta.get(key, [])), key)
    for section in meta.get("extra", []):
        need(isinstance(section["label"], str) and all({"label", "format", "value"} <= set(one) for one in section["entries"]), "extra")


def check_columns(thread):
    for name, columns in COLUMNS.items():
        table = thread[name]
        missing = columns - set(table)
        need(not missing, f"{name} lacks {missing}")
        for column, values in table.items():
            if isinstance(values, list):
                need(len(values) == table["length"], f"{name}.{column} has {len(values)} rows of {table['length']}")


def check_indexes(thread, libraries, categories):
    strings = thread["stringArray"]
    need(all(isinstance(one, str) for one in strings) and len(set(strings)) == len(strings), "each string once")

    def column(table, name, below, optional=None):
        for row, value in enumerate(thread[table][name]):
            need((value is None and optional is None) or value == optional or (is_whole(value) and 0 <= value < below), f"{table}.{name}[{row}] is {value}, of {below}")

    required = "required"
    column("samples", "stack", thread["stackTable"]["length"])
    column("stackTable", "frame", thread["frameTable"]["length"], required)
    column("frameTable", "func", thread["funcTable"]["length"], required)
    column("frameTable", "nativeSymbol", thread["nativeSymbols"]["length"])
    column("funcTable", "name", len(strings), required)
    column("funcTable", "fileName", len(strings))
    column("funcTable", "resource", thread["resourceTable"]["length"], -1)
    column("resourceTable", "lib", libraries)
    column("resourceTable", "name", len(strings), required)
    column("resourceTable", "host", len(strings))
    column("nativeSymbols", "libIndex", libraries, required)
    column("nativeSymbols", "name", len(strings), required)
    column("markers", "name", len(strings), required)
    for table in ("stackTable", "frameTable"):
        column(table, "category", len(categories))
        for category, subcategory in zip(thread[table]["category"], thread[table]["subcategory"]):
            need(category is None or (is_whole(subcategory) and 0 <= subcategory < len(categories[category]["subcategories"])), f"{table}.subcategory")


def check_stacks(thread):
    stacks, frames = thread["stackTable"], thread["frameTable"]
    seen = set()
    for row, (prefix, frame) in enumerate(zip(stacks["prefix"], stacks["frame"])):
        need(prefix is None or (is_whole(prefix) and 0 <= prefix < row), f"stack {row} comes after its caller {prefix}")
        need((prefix, frame) not in seen, f"stack {row} exists twice")
        seen.add((prefix, frame))
        # A stack has the category of its frame, or its caller's category if the frame has none.
        if frames["category"][frame] is not None:
            need((stacks["category"][row], stacks["subcategory"][row]) == (frames["category"][frame], frames["subcategory"][frame]), f"the category of stack {row}")
        # The caller of an inlined frame is the function into which it was inlined, with a depth that is one less.
        depth = frames["inlineDepth"][frame]
        need(is_whole(depth) and depth >= 0, "inlineDepth")
        if depth > 0:
            need(prefix is not None and frames["inlineDepth"][stacks["frame"][prefix]] == depth - 1, f"stack {row} has inline depth {depth}, but its caller's is not one less")
    for key, least in (("line", 1), ("column", 0)):
        need(all(one is None or (is_whole(one) and one >= least) for one in frames[key]), f"frameTable.{key}")
    need(all(one == -1 or (is_whole(one) and one >= 0) for one in frames["address"]), "frameTable.address")


def check_samples(thread):
    samples = thread["samples"]
    need(samples["weightType"] in WEIGHT_TYPES, f"weightType {samples['weightType']}")
    last = 0
    for time in samples["time"]:
        need(is_number(time) and time >= last, f"a sample at {time} after one at {last}")
        last = time
    need(all(is_number(one) for one in samples["weight"]), "weights are numbers")


def check_thread(thread, libraries, categories):
    for key, kind in (("name", str), ("processType", str), ("processName", str), ("isMainThread", bool), ("pid", str), ("pausedRanges", list)):
        need(isinstance(thread.get(key), kind), f"{key} of a thread")
    need(is_whole(thread["tid"]) or isinstance(thread["tid"], str), "tid")
    for key in ("processStartupTime", "registerTime"):
        need(is_number(thread[key]), key)
    for key in ("processShutdownTime", "unregisterTime"):
        need(thread[key] is None or is_number(thread[key]), key)
    check_columns(thread)
    check_indexes(thread, libraries, categories)
    check_stacks(thread)
    check_samples(thread)
    funcs = thread["funcTable"]
    need(all(isinstance(one, bool) for key in ("isJS", "relevantForJS") for one in funcs[key]), "isJS and relevantForJS")
    need(all(kind == 1 and lib is not None for kind, lib in zip(thread["resourceTable"]["type"], thread["resourceTable"]["lib"])), "resources are libraries")


def check(profile):
    """Raises Wrong with the violated requirement."""
    check_meta(profile["meta"], len(profile["threads"]))
    for key in ("libs", "threads", "pages", "counters", "profilerOverhead"):
        need(isinstance(profile[key], list), key)
    for lib in profile["libs"]:
        need(all(isinstance(lib[key], str) for key in ("arch", "name", "path", "debugName", "debugPath", "breakpadId")), f"library {lib}")
        need(lib["codeId"] is None or isinstance(lib["codeId"], str), "codeId")
    used = set()
    for number, thread in enumerate(profile["threads"]):
        try:
            check_thread(thread, len(profile["libs"]), profile["meta"]["categories"])
        except Wrong as wrong:
            raise Wrong(f"thread {number}: {wrong}") from None
        used.update(thread["resourceTable"]["lib"])
    need(used == set(range(len(profile["libs"]))), "libraries are those of resources")
