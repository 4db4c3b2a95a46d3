"""A hostile client of the page's port, as a separate program: flood.py PORT KIND SESSION. At the end of standard input, it prints the
number of its requests.

KIND: quick (/api/status), query (whole flame graphs), gone (the same, but disconnects at once), half (an incomplete request), foreign (as a
page of another site), garbage (not HTTP)."""
import collections
import os
import select
import socket
import sys
import time

RATE = 1000
SOURCE = "127.0.0.9"
# Connections that wait for answers. Beyond this number, the oldest one is closed.
OPEN = 300


def request(kind, session):
    target = "/api/status" if kind in ("quick", "foreign") else f"/api/flamegraph?session={session}&min_share=0"
    foreign = "Sec-Fetch-Site: cross-site\r\n" if kind == "foreign" else ""
    text = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{foreign}\r\n".encode()
    return {"half": text[:-4], "garbage": b"\0\xff" * 64}.get(kind, text)


def flood(port, kind, session):
    """Until the end of standard input, sends RATE requests per second, or as many as this machine can."""
    text, connections, made, due = request(kind, session), collections.deque(), 0, time.monotonic()
    while not select.select([0], [], [], max(0, due - time.monotonic()))[0] or os.read(0, 1):
        due = max(due + 1 / RATE, time.monotonic() - 0.1)
        one = socket.socket()
        one.bind((SOURCE, 0))
        one.setblocking(False)
        try:
            one.connect_ex(("127.0.0.1", port))
            select.select([], [one], [], 0.05)
            one.send(text)
        except OSError:
            one.close()
            continue
        made += 1
        if kind == "gone":
            one.close()
            continue
        connections.append(one)
        if len(connections) > OPEN:
            connections.popleft().close()
    return made


if __name__ == "__main__":
    print(flood(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
