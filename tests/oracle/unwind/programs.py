"""Debian programs of other projects under load, recorded by perf with copies of their stacks. Each function prepares a directory and returns the
command line to record."""

import contextlib
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "harness"))

import flamewire  # noqa: E402

SECONDS, LONGEST_SECONDS = 5, 60
ENOUGH_SAMPLES = 1500
FREQUENCY = 997
STACK = 16384


# Each command is a single process: perf 6.1 keeps the mappings from before an exec and then uses the wrong load address.

# Without <random>: GMP computes its constants, and GMP's assembly has no unwind tables, so its callers are unknown.
SOURCE = """
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
template class std::basic_regex<char>;
template class std::basic_regex<wchar_t>;
#define CONTAINERS(n) \\
    struct T##n { std::string name; double value[n]; bool operator<(const T##n& other) const { return name < other.name; } }; \\
    template class std::vector<T##n>; \\
    template class std::deque<T##n>; \\
    template class std::map<std::string, T##n>; \\
    template class std::unordered_map<std::string, T##n>; \\
    void sort(std::vector<T##n>& all) { std::sort(all.begin(), all.end()); std::stable_sort(all.begin(), all.end()); } \\
    bool match##n(const std::string& text) { return std::regex_match(text, std::regex("a+" #n)); }
CONTAINERS(1) CONTAINERS(2) CONTAINERS(3) CONTAINERS(4) CONTAINERS(5) CONTAINERS(6) CONTAINERS(7) CONTAINERS(8)
CONTAINERS(9) CONTAINERS(10) CONTAINERS(11) CONTAINERS(12) CONTAINERS(13) CONTAINERS(14) CONTAINERS(15) CONTAINERS(16)
"""


def _source(directory):
    source = directory / "unit.cc"
    source.write_text(SOURCE)
    return source


def compiler(directory):
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
    preprocessed = directory / "unit.ii"
    subprocess.run(["g++", "-std=c++17", "-E", _source(directory), "-o", preprocessed], check=True)
    # Already preprocessed: the preprocessor computes the limits of all floating-point types in assembly, as above.
    return [cc1plus, "-quiet", "-fpreprocessed", "-O2", "-std=c++17", preprocessed, "-o", "/dev/null"]


def second_compiler(directory):
    """clang: nearly all of its code is in one library of 100 MB."""
    return ["/usr/bin/clang++-19", "-w", "-O2", "-std=c++17", "-c", _source(directory), "-o", "/dev/null"]


PYTHON_SCRIPT = """
import json, re, random
random.seed(7)
class Node:
    def __init__(self, depth):
        self.left = Node(depth - 1) if depth else None
        self.right = Node(depth - 1) if depth else None
        self.value = random.random()
    def total(self):
        return self.value + (self.left.total() if self.left else 0) + (self.right.total() if self.right else 0)
    def __lt__(self, other):
        return self.value < other.value
while True:
    tree = Node(10)
    tree.total()
    words = [''.join(random.choice('abcdef') for _ in range(8)) for _ in range(3000)]
    sorted(words, key=lambda word: (word[::-1], len(word)))
    nodes = sorted(Node(0) for _ in range(500))
    document = json.dumps({word: list(word) for word in words}, indent=1)
    json.loads(document)
    re.findall(r'"([a-f]+)[ab]"', document)
    str(3 ** 8000)
"""


def interpreter(directory):
    script = directory / "work.py"
    script.write_text(PYTHON_SCRIPT)
    return ["/usr/bin/python3", script]


SQL = """
create table item (id integer primary key, name text, price real, kind integer);
insert into item with recursive n (i) as (select 1 union all select i + 1 from n where i < 120000)
  select i, 'name ' || hex(i * 7919 % 100003), (i * 31 % 1000) / 7.0, i % 40 from n;
create index by_name on item (name);
create index by_kind on item (kind, price);
select kind, count(*), avg(price), max(name) from item group by kind order by 3 desc;
select count(*) from item a join item b on a.kind = b.kind and b.id % 500 = a.id % 500 where a.price > 20;
select name, rank() over (partition by kind order by price desc, name) r from item order by r, name limit 5;
select count(*) from item where name like '%1F%' or name glob '*A?C*';
delete from item where id % 3 = 0;
update item set name = upper(name) || 'x', price = price * 1.1 where kind < 20;
vacuum;
"""


def database(directory):
    script = directory / "work.sql"
    script.write_text((SQL + "drop table item;\n") * 20)
    return ["/usr/bin/sqlite3", ":memory:", f".read {script}"]


def compressor(directory):
    data = directory / "data"
    generator = random.Random(3)
    words = [generator.randbytes(generator.randrange(2, 12)) for _ in range(4000)]
    data.write_bytes(b" ".join(generator.choices(words, k=4_000_000)))
    return ["/usr/bin/xz", "-T2", "-6", "-c", data]


NAMED_CONF = 'zone "example.org" { type master; file "%s"; };\n'
ZONE = """$TTL 300
@ IN SOA ns.example.org. admin.example.org. 1 3600 600 86400 300
@ IN NS ns
ns IN A 192.0.2.1
"""


def server(directory):
    """PowerDNS, a name server in C++, queried over loopback."""
    zone = directory / "zone"
    zone.write_text(ZONE + "".join(f"host{i} IN A 192.0.2.{i % 250}\nhost{i} IN TXT \"number {i}\"\n" for i in range(3000)))
    named = directory / "named.conf"
    named.write_text(NAMED_CONF % zone)
    port = flamewire.free_port()  # pdns_server listens there for datagrams and connections, or exits silently
    server.port = port
    # No network access and no caches, so each query causes work.
    return ["/usr/sbin/pdns_server", "--config-dir=/nonexistent", "--no-config", "--daemon=no", "--guardian=no", "--launch=bind", f"--bind-config={named}",
            "--local-address=127.0.0.1", f"--local-port={port}", f"--socket-dir={directory}", "--security-poll-suffix=", "--cache-ttl=0", "--query-cache-ttl=0",
            "--negquery-cache-ttl=0", "--receiver-threads=2", "--disable-syslog=yes", "--loglevel=0", "--write-pid=no"]


def _ask(port, stop):
    generator = random.Random(5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.05)
        while not stop.is_set():
            name = f"host{generator.randrange(4000)}"
            question = b"".join(bytes([len(label)]) + label.encode() for label in (name, "example", "org")) + b"\0" + generator.choice([b"\0\1\0\1", b"\0\x10\0\1", b"\0\xff\0\1"])
            with contextlib.suppress(OSError):
                client.sendto(generator.randbytes(2) + b"\1\0\0\1\0\0\0\0\0\0" + question, ("127.0.0.1", port))
                client.recv(4096)


PROGRAMS = {"compiler": compiler, "second_compiler": second_compiler, "interpreter": interpreter, "database": database, "compressor": compressor, "server": server}


def record(name, directory, seconds=SECONDS, enough_samples=ENOUGH_SAMPLES):
    """Returns the perf.data file of one program."""
    directory = pathlib.Path(directory)
    command = PROGRAMS[name](directory)
    data = directory / f"{name}.data"
    perf = ["perf", "record", "-q", "-F", str(FREQUENCY), "--call-graph", f"dwarf,{STACK}", "-e", "cpu-clock", "-m", "8M", "-o", data, "--", *command]
    stop = threading.Event()
    clients = [threading.Thread(target=_ask, args=(server.port, stop)) for _ in range(2)] if name == "server" else []
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([str(part) for part in perf], stdout=subprocess.DEVNULL, stderr=log)
        for client in clients:
            client.start()
        # On a busy machine, record until there are enough samples.
        began, elapsed = time.monotonic(), 0
        while process.poll() is None and (elapsed := time.monotonic() - began) < LONGEST_SECONDS:
            if elapsed > seconds and data.exists() and data.stat().st_size > enough_samples * STACK:
                break
            time.sleep(0.05)
        stop.set()
        for client in clients:
            client.join()
        process.send_signal(signal.SIGINT)  # perf ends the program and writes the rest
        process.wait(60)
    size = data.stat().st_size if data.exists() else 0
    assert size > 1 << 20, f"{elapsed:.1f} s of {name} gave {size} bytes: {(directory / f'{name}.log').read_text()}"
    return data


if __name__ == "__main__":
    start = time.monotonic()
    print(record(sys.argv[1], sys.argv[2]), f"{time.monotonic() - start:.1f} s")
