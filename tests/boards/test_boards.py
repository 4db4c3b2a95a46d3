"""The agent on emulated Arm boards, with their PMU where they have one, connected to the real server on this machine. Numbers are
compared with the workload's own. Under icount, a board's time is that of its instructions, so these numbers do not depend on the load
of this machine. The board with real threads has wide bounds."""

import re
import subprocess

import bounds
import pytest
from board import FRAME_POINTERS, HOST, KINDS, Board, Lab, print_file, printed_file

import flamewire
from flamewire import Server, wait_until
from known_shares import check_known_shares

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=24)


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def boot(lab, tmp_path):
    """boot(kind, script, files, ...): a board, stopped at the end of the test. `serve(...)`: a server for it."""
    running = []

    class Boot:
        directory = tmp_path

        def __call__(self, kind, script, files=(), **options):
            board = Board(lab, kind, tmp_path, script, files, **options)
            running.append(board)
            return board

        def serve(self, *arguments, **options):
            server = Server(tmp_path, *arguments, **options)
            running.append(server)
            return server

    yield Boot()
    for one in reversed(running):
        if isinstance(one, Board):
            one.stop()
        elif one.alive():
            one.stop()


def known(lab, kind):
    return lab.workload(kind, "tests/boards/known.c", "known")


def printed_by_known(text):
    """(instructions, CPU seconds) from the output of `known`."""
    match = re.search(r"^known: (\d+) instructions, (\d+) ns", text, re.M)
    return int(match[1]), int(match[2]) / 1e9


def ended(server):
    """The only session, after its agent has reported its end and all its symbols were looked up."""
    wait_until(lambda: [one["end_reason"] for one in server.sessions()] and server.sessions()[0]["end_reason"], 120, "the end of the recording")
    return server.wait_named(server.only_session()["id"])


def event(session, name):
    return next(one for one in session["events"] if one["name"] == name)


def counter(server, session, name):
    groups = server.get("/api/counters", session=session["id"])["groups"]
    return next(one for one in groups[0]["counters"] if one["name"] == name)


@pytest.mark.parametrize("name, turns, tolerance", [("arm64", 400, 0.05), ("arm64-threads", 2000, 0.20), ("armhf", 400, 0.20), ("arm64-32bit", 400, 0.20)])
def test_cycles_are_sampled_at_the_frequency_that_was_asked_for(boot, lab, name, turns, tolerance):
    kind = KINDS[name]
    server = boot.serve()
    # Nothing else counts cycles: with two such events, QEMU gives one of them its cycle counter, and the other one interrupts too late.
    board = boot(kind, f"flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events cycles --frequency 999 --stat task-clock -- known {turns}\n", {"/bin/known": lab.stripped(kind, known(lab, kind))})
    board.until("^board: up$")
    before = board.starved()
    board.until("^known: ")
    # A board that uses this machine's time gets only one of the interrupts that were due while it had no CPU.
    starved = 0 if kind.icount else board.starved() - before
    text = board.finish()
    session = ended(server)
    cycles = event(session, "cycles")
    seconds = printed_by_known(text)[1]
    assert max(999 * (seconds - starved) * (1 - tolerance), 1) <= cycles["samples"] <= 999 * seconds * (1 + tolerance), (cycles, seconds, starved, text)
    assert session["lost"] == 0, session["losses"]


@pytest.mark.parametrize("name", ["arm64", "armhf"])
def test_instructions_are_counted_and_unsupported_events_reported(boot, lab, name):
    kind = KINDS[name]
    board = boot(kind, "flamewire-agent --events none --stat instructions:u,cache-misses,branch-misses,task-clock --output - -- known 300\n", {"/bin/known": lab.stripped(kind, known(lab, kind))}, sleep=False)
    text = board.finish()
    row = re.search(r"^\s*([\d,]+)\s+instructions:u", text, re.M)
    assert row, text
    instructions = printed_by_known(text)[0]
    assert abs(int(row[1].replace(",", "")) / instructions - 1) <= 0.01, text
    # This CPU has no such events, or opens them and never counts. In both cases there is no number.
    for missing in ("cache-misses", "branch-misses"):
        line = re.search(rf"^.*\b{missing}\b.*$", text.split("Performance counter stats")[1], re.M)[0]
        assert re.search(r"<not supported>|<not counted>|<never counts>", line), line


def test_a_board_without_a_pmu_samples_its_clock(boot, lab):
    kind = KINDS["armhf-no-pmu"]
    server = boot.serve()
    board = boot(kind, f"flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --frequency 99 -- known 300\n", {"/bin/known": lab.stripped(kind, known(lab, kind))})
    text = board.finish()
    session = ended(server)
    assert [one["name"] for one in session["events"]] == ["cpu-clock"]
    assert any(notice["code"] == "event-fallback" for notice in session["notices"]), session["notices"]
    assert abs(session["samples"] / (99 * printed_by_known(text)[1]) - 1) < 0.2, (session["samples"], printed_by_known(text))
    assert counter(server, session, "cycles")["status"] in ("unsupported", "never_counts")


@pytest.mark.parametrize("frames", ["fp", "no-fp"])
@pytest.mark.parametrize("name", ["arm64", "armhf", "arm64-32bit"])
def test_stacks_are_whole_and_shares_are_right(boot, lab, name, frames):
    """The board has a stripped copy. Names, files and lines come from the file here."""
    kind = KINDS[name]
    program = lab.shares(kind, frames)
    server = boot.serve("--binary", program)
    board = boot(kind, f"flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events cycles:u --frequency 999 -- shares 4\n", {"/bin/shares": lab.stripped(kind, program)})
    text = board.finish()
    session = ended(server)
    totals = session["unwind_totals"]
    assert totals["samples"] > 1000 and totals["whole"] >= 0.99 * totals["samples"], (totals, text)
    tree = flamewire.Tree(server.get("/api/flamegraph", session=session["id"]))
    check_known_shares(KNOWN, tree)
    measured = tree.shares()
    functions = server.get("/api/functions", session=session["id"])["functions"]
    burn = next(one for one in functions if "burn_40(" in one["name"])
    assert burn["file"].endswith("tests/workloads/shares.cc") or burn["file"].endswith("tests/workloads/cpu_budget.h"), burn
    assert burn["line"] > 0
    whole = sum(share for name_, share in measured.items() if name_ == "_start")
    assert whole >= 0.99, measured


def counted(text):
    """Event -> number, from the tables of --stat."""
    return {match[2].strip(): int(match[1].replace(",", "")) for match in re.finditer(r"^ +([0-9,]+) +(\S.*?)( +# .*)?$", text, re.M)}


def probed_program(lab, kind, name, *options):
    """Its functions need symbols on the board. Also returns the offset of a function in the file."""
    program = lab.workload(kind, "tests/boards/probed.c", name, "-fomit-frame-pointer", *options)
    table = subprocess.run(["readelf", "-sW", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    segments = subprocess.run(["readelf", "-lW", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    first = re.search(r"LOAD +(0x\w+) (0x\w+) .* R E", segments)

    def offset(function):
        return int(re.search(rf"^ *\d+: (\w+) .* {function}$", table, re.M)[1], 16) - int(first[2], 16) + int(first[1], 16)

    return program, offset


def stacks_of(server, session):
    """Call path, outermost first -> number of samples."""
    lines = server.get(f"/api/export/session/{session['id']}", format="collapsed").decode().splitlines()
    return {tuple(names.split(";")): int(number) for names, number in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.parametrize("name", ["arm64", "armhf"])
def test_probes_in_a_program_are_exact(boot, lab, name):
    """The program calls its functions 1000 times, with the number of the call."""
    kind = KINDS[name]
    program, offset = probed_program(lab, kind, "probed", *([] if name == "arm64" else ["-marm"]))
    refused, _ = probed_program(lab, KINDS["armhf"], f"refused-{name}", *([] if name == "armhf" else ["-marm"]))
    server = boot.serve("--binary", program)
    entry = f"uprobe:/bin/probed:{offset('probed_second'):#x}"
    script = f"""flamewire-agent --events none --stat 'uprobe:probed_outer@probed,uprobe:probed_leaf@probed/n >= 900/n=$arg1:u32/alias=some/,uprobe:probed_second@probed,{entry},uretprobe:probed_outer@probed,uretprobe:probed_second@probed/r >= 900/r=$retval:u32/alias=result/' --output - -- probed 1000
flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events 'uprobe:probed_leaf@probed' --count 1 --unwind dwarf -- probed 1000
flamewire-agent --events none --stat 'uprobe:probed_leaf@refused' --output - -- refused 10
echo "left: $(cat /sys/kernel/tracing/uprobe_events | wc -l)"
"""
    text = boot(kind, script, {"/bin/probed": program, "/bin/refused": refused}).finish()
    numbers = counted(text)
    assert [numbers[event] for event in ("uprobe:probed_outer@probed", "some", "uprobe:probed_second@probed", entry)] == [1000, 100, 1000, 1000], text
    assert [numbers[event] for event in ("uretprobe:probed_outer@probed", "result")] == [1000, 100], text
    places = {match[1]: (int(match[2], 16), match[4]) for match in re.finditer(r"^flamewire-agent: (\S+): offset (0x\w+) of \S+?(, about (\S+) us per hit)?$", text, re.M)}
    placed, emulated = places["uprobe:probed_second@probed"]
    if name == "arm64":
        # The entry is not emulated, the branch after it is.
        assert placed == offset("probed_second") + 4, text
        print(f"{name}: a hit costs {emulated} us if emulated, else {places[entry][1]} us")
        assert float(emulated) < float(places[entry][1]), text
        assert "/bin/refused is 32-bit Arm code, which 64-bit kernels cannot probe" in text
    else:
        assert placed == offset("probed_second") and emulated is None, text
        assert "probed_leaf in /bin/refused is Thumb code, which Linux cannot probe; it can probe code that was compiled with -marm" in text
    session = ended(server)
    assert session["lost"] == 0, session["losses"]
    found = stacks_of(server, session)
    assert sum(found.values()) == 1000, (found, text)
    for frames in found:
        assert frames[1] == "_start" and frames[-4:] == ("main", "probed_outer", "probed_inner", "probed_leaf"), found
    assert "left: 0" in text


@pytest.mark.parametrize("name", ["arm64", "armhf"])
def test_probes_in_the_kernel_are_exact(boot, lab, name):
    """The program reads 1000 times, each time one byte more."""
    kind = KINDS[name]
    program, _ = probed_program(lab, kind, "reader")
    server = boot.serve("--binary", program)
    script = f"""flamewire-agent --events none --stat 'kprobe:ksys_read,kprobe:vfs_read/size >= 900/size=$arg3:u32/alias=some/,kprobe:vfs_rea*,kretprobe:vfs_read/read >= 900/read=$retval:s32/alias=result/,kretprobe:ksys_rea*,syscalls:sys_enter_read' --output - -- probed 1000
flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events kprobe:vfs_read --count 1 --unwind dwarf -- probed 1000
flamewire-agent --events none --stat kprobe:do_undefinstr --output - -- probed 1
flamewire-agent --events none --stat kprobe:no_such_function --output - -- probed 1
flamewire-agent --events kprobe:vfs_read --output /tmp/killed.flw --pid 1 2>/tmp/killed.log & agent=$!
until grep profiling /tmp/killed.log; do sleep 0.1; done
kill -9 $agent; wait $agent
echo "left: $(grep -c flamewire /sys/kernel/tracing/kprobe_events)"
flamewire-agent --events none --stat task-clock --output - -- true
echo "left: $(grep -c flamewire /sys/kernel/tracing/kprobe_events)"
grep -E ' (_text|_stext|vfs_read)$' /proc/kallsyms
"""
    text = boot(kind, script, {"/bin/probed": program}).finish()
    numbers = counted(text)
    assert [numbers[event] for event in ("kprobe:ksys_read", "some", "kprobe:vfs_read", "kprobe:vfs_readv", "syscalls:sys_enter_read", "result", "kretprobe:ksys_read")] == [1000, 100, 1000, 0, 1000, 100, 1000], text
    assert "kprobe:vfs_read: what a hit costs is not known" in text
    assert "the kernel refuses a probe on its function do_undefinstr: Failed to register probe event" in text
    assert "this kernel has no function no_such_function that can be probed" in text
    assert re.findall(r"^left: (\d+)", text, re.M) == ["1", "0"] and "removed 1 probes of agents" in text, text
    # The recording is too short for a pass over the kernel's names.
    addresses = {match[2]: int(match[1], 16) for match in re.finditer(r"^(\w+) [tT] (\w+)$", text, re.M)}
    function = addresses["vfs_read"] - addresses.get("_text", addresses["_stext"])
    found = stacks_of(server, ended(server))
    assert sum(found.values()) == 1000, (found, text)
    for frames in found:
        assert "main" in frames and frames[-1] == f"[kernel+{function:#x}]", (found, addresses)
        assert sum(frame.startswith("[kernel+") for frame in frames) >= 3, found


def test_copies_of_stacks_that_end_with_user_space(boot, lab):
    """Without address space randomization, less than 16 KiB are above a 32-bit program's stack pointer, and not always whole words."""
    kind = KINDS["armhf"]
    server = boot.serve()
    program = lab.workload(kind, "tests/workloads/bench.cc", "bench-no-fp", FRAME_POINTERS["no-fp"], "-pthread")
    board = boot(kind, f"flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events cycles:u --frequency 499 --unwind dwarf --stat task-clock -- program 4 1 >/dev/null\n", {"/bin/program": lab.stripped(kind, program)})
    board.finish()
    session = ended(server)
    seconds = counter(server, session, "task-clock")["value"] / 1e9
    # Part of the time is the kernel's.
    assert 499 * seconds * 0.7 < session["samples"] < 499 * seconds * 1.2, (session["samples"], seconds, session["notices"])
    assert not any(notice["code"] == "ring-broken" for notice in session["notices"]), session["notices"]


def test_two_runs_without_a_network_are_the_same(boot, lab):
    kind = KINDS["arm64"]
    collapsed = []
    for run in ("first", "second"):
        board = boot(kind, "flamewire-agent --events cycles:u --count 500000 --metrics off --output /tmp/out.flw -- known 300\n" + print_file("/tmp/out.flw"),
                     {"/bin/known": lab.stripped(kind, known(lab, kind))}, sleep=False, name=run)
        text = board.finish()
        stored = boot.directory / run / "data" / "sessions" / "20260101-000000-known-00000000"
        stored.mkdir(parents=True)
        (stored / "stream.flw").write_bytes(printed_file(text, "/tmp/out.flw"))
        server = boot.serve("--binary", known(lab, kind), name=f"server-{run}", data_dir=boot.directory / run / "data")
        session = server.sessions()[0]
        collapsed.append(server.get(f"/api/export/session/{session['id']}", format="collapsed").decode())
        server.stop()
    assert "turn" in collapsed[0]
    assert collapsed[0] == collapsed[1]


def test_a_lost_network_and_a_restarted_server_lose_nothing(boot, lab):
    kind = KINDS["arm64-threads"]
    server = boot.serve()
    script = f"""flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events cycles --frequency 99 --stat task-clock -- shares 30 &
sleep 6; echo 'board: cable out'; ip link set eth0 down
sleep 10; ip link set eth0 up; ip route add default via 10.0.2.2; echo 'board: cable in'
wait
"""
    program = lab.shares(kind, "fp")
    board = boot(kind, script, {"/bin/shares": lab.stripped(kind, program)})
    board.until(r"^board: up$")
    starved = board.starved()
    board.until(r"^board: cable out$")
    before = wait_until(lambda: server.sessions()[0]["samples"], 120, "samples before")
    board.until(r"^board: cable in$")
    wait_until(lambda: server.sessions()[0]["samples"] > before + 99 * 10, 120, "what was sampled without a network")
    port, http_port, data = server.port, server.http_port, server.data_dir
    server.stop()
    again = boot.serve(port=port, http_port=http_port, name="server-again", data_dir=data)
    board.until(r"target exited: ")
    starved = board.starved() - starved
    board.finish()
    session = ended(again)
    assert session["lost"] == 0, session["losses"]
    assert not any(notice["code"] == "batches-missing" for notice in session["notices"]), session["notices"]
    # The TCP connection survives the network's absence. The restarted server needs another connection.
    assert any(mark["kind"] == "reconnect" for mark in again.get("/api/timeline", session=session["id"])["marks"])
    # There are samples for all the time, including the time without a network.
    seconds = counter(again, session, "task-clock")["value"] / 1e9
    assert 99 * (seconds - starved) * 0.8 < event(session, "cycles")["samples"] < 99 * seconds * 1.2, (session["events"], seconds, starved)


def test_a_cpu_that_goes_offline_and_a_lower_limit_are_reported(boot, lab):
    kind = KINDS["arm64-threads"]
    server = boot.serve()
    script = f"""flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --events cycles --frequency 999 --stat task-clock -- shares 12 2 &
sleep 3; echo 0 >/sys/devices/system/cpu/cpu1/online && echo 'board: one CPU'
sleep 3; echo 1 >/sys/devices/system/cpu/cpu1/online && echo 'board: two CPUs'
sleep 2; read uptime idle </proc/uptime; echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent; echo 500 >/proc/sys/kernel/perf_event_max_sample_rate && echo "board: 500 samples per second from $uptime on"
wait
"""
    program = lab.shares(kind, "fp")
    board = boot(kind, script, {"/bin/shares": lab.stripped(kind, program)})
    text = board.finish()
    # The kernel accepts a sample limit only while its time limit is enabled, and the boards start without one.
    assert "board: one CPU" in text and "board: two CPUs" in text and (limited := re.search(r"board: 500 samples per second from ([0-9.]+) on", text)), text
    session = ended(server)
    assert session["end_reason"] == "target exited", session["end_reason"]
    # Throttling by the kernel after that is reported.
    throttled = [loss for loss in session["losses"] if loss["reason"] == "throttled"]
    assert throttled and session["start_ns"] / 1e9 + throttled[0]["first_ms"] / 1e3 >= float(limited[1]), (session, limited)
    timeline = server.get("/api/timeline", session=session["id"], bucket=1000)
    assert all(samples > 0 for samples in timeline["samples"][1:11]), timeline["samples"]


def test_names_come_from_the_board_without_a_local_file(boot, lab):
    """The file here is deleted before the server searches for it. The transfer is cut twice and resumes."""
    kind = KINDS["arm64-threads"]
    program = lab.workload(kind, "tests/workloads/shares.cc", "shares-of-the-board", FRAME_POINTERS["fp"], "-pthread")
    server = boot.serve()
    relay = flamewire.Relay(server.port, rate=20_000)
    board = boot(kind, f"flamewire-agent --server {HOST} --port {relay.port} --pair {server.pair()} --events cycles:u --frequency 99 -- shares 90\n", {"/bin/shares": program})
    program.unlink()
    modules = server.data_dir / "modules"

    def fetch():
        found = [one["fetch"] for one in server.only_session()["modules"] if one["name"] == "shares"] if server.sessions() else []
        return found[0] if found and found[0] and found[0]["total_bytes"] else None

    def here():
        parts = list(modules.rglob("*.part"))
        return parts[0].stat().st_size if parts else 0

    total = wait_until(fetch, 120, "the first part")["total_bytes"]
    for share in (0.2, 0.6):
        wait_until(lambda: here() > share * total, 120, f"{share} of the file")
        relay.cut()
    wait_until(lambda: (fetch() or {}).get("state") == "arrived", 120, "the whole file")
    assert relay.bytes_up < total + (2 << 20), (relay.bytes_up, total)
    measured = {}

    def named():
        measured.update(flamewire.Tree(server.get("/api/flamegraph")).shares())
        return all(abs(sum(share for name, share in measured.items() if re.search(rf"\bburn_{percent}\(", name)) - percent / 100) <= 0.05 for percent in (10, 20, 30, 40))

    wait_until(named, 60, f"the names and shares of the board's file: {measured}")
    burn = next(one for one in server.get("/api/functions")["functions"] if "burn_40(" in one["name"])
    assert burn["line"] > 0 and burn["file"].endswith((".cc", ".h")), burn
    assert server.only_session()["lost"] == 0
    relay.close()
    board.stop()


def test_a_board_that_may_not_send_its_file_reports_it(boot, lab):
    kind = KINDS["arm64-threads"]
    program = lab.workload(kind, "tests/workloads/shares.cc", "shares-too-large", FRAME_POINTERS["fp"], "-pthread")
    server = boot.serve()
    boot(kind, f"flamewire-agent --server {HOST} --port {server.port} --pair {server.pair()} --module-cap 64K --events cycles:u --frequency 99 -- shares 60\n", {"/bin/shares": program})
    program.unlink()

    def refused():
        found = [one["fetch"] for one in server.only_session()["modules"] if one["name"] == "shares"] if server.sessions() else []
        return found[0] if found and found[0] and found[0]["state"] == "refused" else None

    problem = wait_until(refused, 120, "the refusal")["problem"]
    assert "the agent sends at most 65536" in problem and "--module-cap" in problem, problem
