"""Session files, parsed without the code of the programs (docs/wire/session-file.md)."""

HEADER = 12  # bytes of the file's header
RECORD_HEADER = 13  # 8 bytes of arrival time, 4 of big-endian payload length, 1 of flag


def record_ends(content):
    """Offsets of the ends of records, starting with the end of the file's header."""
    ends = [HEADER]
    while ends[-1] < len(content):
        ends.append(ends[-1] + RECORD_HEADER + int.from_bytes(content[ends[-1] + 8:ends[-1] + 12], "big"))
    return ends
