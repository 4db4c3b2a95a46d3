"""`./dev boards bench [BOARD...] [--write]`: the costs of the agent on each emulated board, with one busy core, at 99 and 999 Hz, by frame pointers and by
unwind tables: at first, while kernel symbols are searched, and afterwards. --write replaces the table in docs/measurements/boards.md. The exit code is
1 if a limit is exceeded. The board with real threads runs only when named: it is as fast as this machine, so it has no repeatable figures or limits."""

import os
import re
import shutil
import sys
import tempfile

from board import HOST, KINDS, Board, Lab

from flamewire import ROOT, Server, Tree, lost, wait_until

WARM_SECONDS, NAMES_SECONDS, SECONDS = 3, 20, 10  # the pass over the kernel's symbols takes about ten seconds
# (unwind mode, compiler option of the program, limit of the resident memory in MiB)
WAYS = [("fp", "-fno-omit-frame-pointer", 8), ("dwarf", "-fomit-frame-pointer", 16)]
RATES = [99, 999]
BOARDS = {
    "arm64": "Cortex-A57, 250 million instructions a second",
    "arm64-threads": "Cortex-A57, as fast as QEMU emulates it here",
    "armhf": "Cortex-A15, 250 million instructions a second",
    "arm64-32bit": "32-bit agent and program on the Cortex-A57, 250 million instructions a second",
}
HIGHEST_CPU_PERCENT = 3  # at 99 Hz with unwind tables, of the core

# Prints: label, CPU time of all the agent's threads in ns, time in ns, bytes sent, resident KiB (the kernel does not include perf rings).
SHELL = """
cost() {
  ran=$(cat /proc/$agent/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }')
  up=$(awk '{ printf "%.0f", $1 * 1000000000 }' /proc/uptime)
  sent=$(awk '/eth0:/ { sub(/.*:/, ""); print $9 }' /proc/net/dev)
  resident=$(awk '/^Rss:/ { sum += $2 } END { print sum }' /proc/$agent/smaps)
  echo "cost: $1 $ran $up $sent $resident"
}
"""


def script(server):
    lines = [SHELL]
    for way, _, _ in WAYS:
        for rate in RATES:
            lines.append(f"""
/bin/program-{way} 100000 1 >/dev/null &
program=$!
flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --pid $program --events cycles --frequency {rate} --unwind {way} --stat task-clock &
agent=$!
sleep {WARM_SECONDS}
cost first
sleep {SECONDS}
cost then
sleep {NAMES_SECONDS - SECONDS}
cost begin
sleep {SECONDS}
cost end
kill $agent; wait $agent
kill -9 $program; wait $program
""")
    return "".join(lines)


def measure(lab, kind, directory):
    """One dictionary for each way and rate."""
    server = Server(directory)
    board = None
    try:
        programs = {f"/bin/program-{way}": lab.stripped(kind, lab.workload(kind, "tests/workloads/bench.cc", f"bench-{way}", option, "-pthread")) for way, option, _ in WAYS}
        board = Board(lab, kind, directory, script(server), programs)
        found, rings = [], []
        for number in range(len(WAYS) * len(RATES)):
            wait_until(lambda: len(re.findall(r"^cost: begin", board.text, re.M)) > number or not board.process.alive(), 180, "a recording on the board")
            agents = server.get("/api/agents")["agents"]
            assert agents and agents[0]["stats"], board.text[-3000:]
            rings.append(agents[0]["stats"]["ring_bytes"])
            wait_until(lambda: len(re.findall(r"^cost: end", board.text, re.M)) > number or not board.process.alive(), 300, "the end of a recording on the board")
        board.finish(120)
        sessions = [server.session(one["id"]) for one in sorted(server.sessions(), key=lambda one: one["started"])]
        costs = [[int(number) for number in numbers] for numbers in re.findall(r"^cost: \w+ (\d+) (\d+) (\d+) (\d+)$", board.text, re.M)]
        assert len(sessions) == len(rings) and len(costs) == 4 * len(sessions), board.text[-3000:]
        for number, session in enumerate(sessions):
            first, then, begin, end = costs[4 * number : 4 * number + 4]
            seconds = (end[1] - begin[1]) / 1e9
            way, _, most_resident = WAYS[number // len(RATES)]
            rate = RATES[number % len(RATES)]
            gone = lost(session)
            samples = session["samples"] * seconds / (session["duration_ms"] / 1000)
            spent = end[0] - begin[0]
            tree = Tree(server.get("/api/flamegraph", session=session["id"], min_share=0))
            frames = sum(tree.samples[1:]) / tree.samples[0]
            found.append({"way": way, "rate": rate, "first": 100 * (then[0] - first[0]) / (then[1] - first[1]), "cpu": 100 * spent / (end[1] - begin[1]), "resident": end[3] / 1024, "most_resident": most_resident, "rings": rings[number] / 2**20,
                          "lost": 100 * gone / max(session["samples"] + gone, 1), "sample_us": spent / 1000 / samples, "frames": frames, "frame_ns": spent / (samples * frames), "sent": (end[2] - begin[2]) / seconds})
        return found
    finally:
        if board:
            board.stop()
        if server.alive():
            server.stop()


def missed(kind, figures):
    """The exceeded limits, as text."""
    words = []
    if not kind.icount:
        return words
    if figures["resident"] > figures["most_resident"]:
        words.append(f"resident memory over {figures['most_resident']} MiB")
    if figures["rate"] == 999 and figures["lost"] > 0:
        words.append("samples lost")
    if figures["rate"] == 99 and figures["way"] == "dwarf" and figures["cpu"] > HIGHEST_CPU_PERCENT:
        words.append(f"more than {HIGHEST_CPU_PERCENT} % of the core")
    return words


def write_document(rows):
    """Keeps the rows of boards that were not measured."""
    path = ROOT / "docs" / "measurements" / "boards.md"
    head = ["| board | stacks by | Hz | CPU of the agent, % of a core | the same in the first seconds | RSS, MiB | rings beside, MiB | lost, % | CPU a sample, us | frames a stack | CPU a frame, ns | sent, B/s |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    text = path.read_text()
    before, section, after = re.match(r"(.*<!-- boards -->\n)(.*)(<!-- end of boards -->.*)", text, re.S).groups()
    of_board = {name: [row for row in rows if row.startswith(f"| {name}:")] or [row for row in section.splitlines() if row.startswith(f"| {name}:")] for name in BOARDS}
    path.write_text(before + "".join(line + "\n" for line in [*head, *(row for name in BOARDS for row in of_board[name])]) + after)


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("-")] or [name for name in BOARDS if KINDS[name].icount]
    unknown = [name for name in names if name not in BOARDS]
    if unknown:
        sys.exit(f"boards bench: no such board: {', '.join(unknown)}; there are: {', '.join(BOARDS)}")
    rows, failures = [], []
    lab_directory = tempfile.mkdtemp(prefix="flamewire-boards.")
    try:
        lab = Lab(lab_directory)
        for name in names:
            directory = os.path.join(lab_directory, name)
            os.mkdir(directory)
            for one in measure(lab, KINDS[name], directory):
                row = (f"| {name}: {BOARDS[name]} | {one['way']} | {one['rate']} | {one['cpu']:.2f} | {one['first']:.2f} | {one['resident']:.1f} | {one['rings']:.1f} | {one['lost']:.3g} | {one['sample_us']:.0f} | {one['frames']:.1f} "
                       f"| {one['frame_ns']:.0f} | {one['sent']:.0f} |")
                rows.append(row)
                print(row, "".join(f" MISSED: {word}" for word in missed(KINDS[name], one)), flush=True)
                failures += [f"{name}, {one['way']}, {one['rate']} Hz: {word}" for word in missed(KINDS[name], one)]
    finally:
        shutil.rmtree(lab_directory, ignore_errors=True)
    if "--write" in sys.argv:
        write_document(rows)
    if failures:
        sys.exit("boards bench: missed: " + "; ".join(failures))


main()
