#!/usr/bin/env python3
"""Compares batches as protoc decodes them with the input values of the encoder. check.py MAKER wire.proto PROTOC

This script does not use the C++ decoder: it undoes deltas, groups and keys according to docs/wire.proto.
"""
import json
import os
import re
import subprocess
import sys

U64 = 1 << 64
U32 = 1 << 32
TOKEN = re.compile(r'\s*(?:(\w+)\s*(:|\{)|(\})|("(?:[^"\\]|\\.)*")|([^\s{}:]+))')
ENUMS = {"FILE": 0, "KERNEL": 1, "VDSO": 2, "JIT": 3, "UNKNOWN": 0, "RING_FULL": 1, "THROTTLED": 2, "SPOOL_FULL": 3, "QUEUE_FULL": 4,
         "STACK_TRUNCATED": 5, "MAPS_LOST": 6, "UNKNOWN_PROCESS": 7, "TIME_COARSENED": 8, "OTHER_SERVER": 9, "BATCHES_MISSING": 10,
         "FP": 0, "HYBRID": 1, "DWARF": 2, "LBR": 3}
UNWIND_NUMBERS = ("process", "mode", "samples", "whole", "joined", "truncated", "open_end", "stopped", "frames", "stack_bytes")


def unquote(text):
    """Decodes protoc's C escapes to bytes."""
    out, body = bytearray(), text[1:-1]
    simple = {"n": 10, "r": 13, "t": 9, '"': 34, "'": 39, "\\": 92}
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out += body[at].encode()
            at += 1
        elif body[at + 1] in simple:
            out.append(simple[body[at + 1]])
            at += 2
        else:
            out.append(int(body[at + 1:at + 4], 8))
            at += 4
    return bytes(out)


def parse(text):
    """Parses the text format -> {name: [values]}, with messages as nested dictionaries."""
    stack, name = [{}], None
    for match in TOKEN.finditer(text):
        key, mark, end, quoted, bare = match.groups()
        if key and mark == "{":
            message = {}
            stack[-1].setdefault(key, []).append(message)
            stack.append(message)
        elif key:
            name = key
        elif end:
            stack.pop()
        elif quoted:
            stack[-1].setdefault(name, []).append(unquote(quoted))
        elif bare:
            stack[-1].setdefault(name, []).append(ENUMS[bare] if bare in ENUMS else int(bare))
    assert len(stack) == 1, "unbalanced text format"
    return stack[0]


def one(message, name, absent=0):
    values = message.get(name, [absent])
    assert len(values) == 1, name
    return values[0]


def column(message, name, length, absent=0):
    values = message.get(name) or [absent] * length
    assert len(values) == length, f"column {name} has {len(values)} of {length}"
    return values


def locations(message):
    modules = message.get("module", [])
    count, last, found = len(modules), {}, []
    deltas = column(message, "address_delta", count)
    flags, names, lines = (column(message, name, count) for name in ("flags", "name", "line"))
    for i, module in enumerate(modules):
        last[module] = (last.get(module, 0) + deltas[i]) % U64
        found.append([module, last[module], flags[i], names[i], lines[i]])
    return found


def stacks(message, stack_base, location_base):
    distances = message.get("parent_distance", [])
    back, upcoming, found = column(message, "location_back", len(distances)), location_base, []
    for i, distance in enumerate(distances):
        location = (upcoming - back[i]) % U32
        upcoming = max(upcoming, location + 1)
        found.append([stack_base + i - distance, location])
    return found


def rows(message, periods):
    keys = message.get("key_delta", [])
    counts, weights = column(message, "count", len(keys), 1), column(message, "weight", len(keys))
    base, span = one(message, "base_bucket"), one(message, "bucket_span")
    groups = list(zip(*(message.get("group_" + name, []) for name in ("event", "thread", "cpu", "rows"))))
    assert not keys or one(message, "bucket_ns") == 10_000_000
    assert sum(group[3] for group in groups) == len(keys), "groups do not cover the rows"
    assert groups == sorted(groups, key=lambda group: group[:3]), "groups are not sorted"
    found, at = [], 0
    for event, thread, cpu, length in groups:
        key = 0
        for i in range(at, at + length):
            key += keys[i]
            found.append([event, thread, cpu, key // span, base + key % span, counts[i], weights[i] + counts[i] * periods[event - 1]])
        at += length
    return found


def folded(listed):
    sums = {}
    for *key, count, weight in listed:
        sums.setdefault(tuple(key), [0, 0])
        sums[tuple(key)][0] += count
        sums[tuple(key)][1] += weight
    return [list(key) + value for key, value in sorted(sums.items())]


def check(wanted, batch):
    periods = wanted["periods"]
    assert [one(event, "period") for event in batch.get("events", [])] == periods
    assert one(batch, "recording_id").hex() == wanted["recording_id"]
    for name in ("epoch", "seq", "first_seq", "monotonic_ns", "realtime_ns"):
        assert one(batch, name) == wanted[name], name
    assert [text.hex() for text in batch.get("strings", [])] == wanted["strings"]
    modules = [{"kind": one(m, "kind"), "path": one(m, "path"), "build_id": one(m, "build_id", b"").hex(), "inode": one(m, "inode"),
                "mtime_ns": one(m, "mtime_ns")} for m in batch.get("modules", [])]
    assert modules == wanted["modules"]
    assert locations(one(batch, "locations", {})) == wanted["locations"]
    nodes = stacks(one(batch, "stacks", {}), one(batch, "stack_base"), one(batch, "location_base"))
    assert nodes == wanted["stacks"]
    found = rows(one(batch, "rows", {}), periods)
    assert found == folded(wanted["rows"]), "rows"
    losses = [[one(loss, "reason"), one(loss, "count"), one(loss, "cpu")] for loss in batch.get("losses", [])]
    assert losses == wanted["losses"]
    unwinds = [{"why": one(u, "why", b"").hex(), **{name: one(u, name) for name in UNWIND_NUMBERS}} for u in batch.get("unwinds", [])]
    assert unwinds == wanted["unwinds"]
    recording = one(batch, "recording", {})
    assert one(recording, "unwind", b"").hex() == wanted.get("unwind", "")
    assert one(recording, "stack_bytes") == wanted.get("stack_bytes", 0)
    assert one(recording, "max_depth") == wanted.get("max_depth", 0)
    assert one(one(batch, "agent", {}), "cpu_ns") == wanted.get("agent_cpu_ns", 0)
    end = one(batch, "end", {})
    assert one(end, "reason", b"").hex() == wanted.get("end_reason", "")
    assert one(end, "exit_code") == wanted.get("exit_code", 0)
    return len(found)


def main():
    maker, proto, protoc = sys.argv[1:4]
    if not os.path.exists(protoc):
        sys.exit("protoc is missing: install protobuf-compiler")
    lines = subprocess.run([maker], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == 80
    total = 0
    for described, encoded in zip(lines[::2], lines[1::2]):
        decoded = subprocess.run([protoc, "--decode=flamewire.v1.Batch", "-I", os.path.dirname(proto), proto], input=bytes.fromhex(encoded),
                                 check=True, capture_output=True).stdout.decode("latin-1")
        assert not re.search(r"^\s*\d+[:\s]", decoded, re.M), "a field that is not in the schema:\n" + decoded[:500]
        total += check(json.loads(described), parse(decoded))
    print(f"{len(lines) // 2} batches, {total} rows agree with protoc")


if __name__ == "__main__":
    main()
