"""Programs in containers as runtimes create them: own namespaces, a root on overlayfs, a cgroup that names the container and the pod, and an image
that is deleted while it runs. Expected names and lines are llvm-symbolizer's. Containers and pods are filters of every view and labels in exports."""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import bounds
import pytest
from flamewire import BIN, TESTS_BIN, HttpError, Tree, wait_until
from known_shares import check_known_shares
from other_root import copy_with_libraries, loaded_child
from pprof import Profile, decode

KNOWN = bounds.Check("shares that the workload takes by its CPU clock", times=8)

PROGRAM = TESTS_BIN / "shares-workload"
CONTAINER = "c0ffee" + 58 * "1"
UID = "7e5f5ac4-1af0-4ae7-8dd2-3a3d2d6f5d2b"
GROUP = f"flamewire-test-{os.getpid()}/kubepods/burstable/pod{UID}/{CONTAINER}"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces, overlayfs and cgroups need root; CI runs as root")


@pytest.fixture
def group():
    """A cgroup with a name as Kubernetes creates it, in the first writable hierarchy."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind not in ("cgroup", "cgroup2"):
            continue
        folder = pathlib.Path(where) / GROUP
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True)
            break
    else:
        pytest.skip("NOT tested: no cgroup hierarchy is writable")
    yield folder
    for one in [folder, *folder.parents][:GROUP.count("/") + 1]:
        wait_until(lambda: not (one / "cgroup.procs").read_text().split(), 20, f"the end of {one}")
        one.rmdir()


def start_container(start, group, seconds):
    """Returns (pid of the program in this machine's namespace, the folder of its image)."""
    image = start.directory / "image"
    copy_with_libraries(PROGRAM, image, "/app/inside")
    (image / "proc").mkdir()
    for folder in ("upper", "work", "merged"):
        (start.directory / "layers" / folder).mkdir(parents=True)
    layers = start.directory / "layers"
    # The upper layer needs its own file system: this one may be an overlay, which cannot hold an upper layer.
    script = f"""set -e
echo $$ > {group}/cgroup.procs
mount -t tmpfs none {layers}
mkdir {layers}/upper {layers}/work {layers}/merged
mount -t overlay overlay -o lowerdir={image},upperdir={layers}/upper,workdir={layers}/work {layers}/merged
mount -t proc proc {layers}/merged/proc
exec {shutil.which("chroot")} {layers}/merged /app/inside {seconds}"""
    launcher = start.process("container", ["unshare", "--fork", "--pid", "--mount", "--uts", "--ipc", "--propagation", "private", "--kill-child", "sh", "-c", script])
    return loaded_child(launcher, "inside", PROGRAM), image


def samples_by_process(server):
    counted = collections.Counter()
    for thread in server.get("/api/thread-summary")["threads"]:
        counted[thread["pid"]] += thread["samples"]
    return counted


def ended_session(server):
    server.wait_ended()
    return server.only_session()


def symbolized(addresses):
    """address -> [(function, line), innermost first], from llvm-symbolizer."""
    output = subprocess.run(["llvm-symbolizer", "--output-style=JSON", f"--obj={PROGRAM}", *[hex(one) for one in addresses]], check=True, capture_output=True, text=True).stdout
    answers = json.loads(output) if output.lstrip().startswith("[") else [json.loads(line) for line in output.splitlines() if line]
    return {int(one["Address"], 16): [(frame["FunctionName"], frame["Line"]) for frame in one["Symbol"]] for one in answers}


def flamewire(*words, check=True):
    done = subprocess.run([BIN / "flamewire", *map(str, words)], capture_output=True, timeout=120, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done


def test_a_container_whose_image_is_deleted(group, start):
    inside, image = start_container(start, group, 60)
    outside = start.workload("shares", 600)
    shutil.rmtree(image)
    server = start.server("--binary", PROGRAM)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", f"{inside},{outside.pid}", "--frequency", 499)
    listed = {entry["pid"]: entry for entry in wait_until(lambda: server.sessions() and server.command("list_processes")["processes"], 30, "a session")}
    assert listed[inside]["container"] == CONTAINER and listed[inside]["ns_pid"] == 1
    assert listed[outside.pid]["container"] == ""

    def enough():
        counted = samples_by_process(server)
        return counted[inside] > 300 and counted[outside.pid] > 300

    wait_until(enough, 60, "samples of both")
    assert agent.stop() == 0
    session = ended_session(server)
    # If these tests run in a container, the outer program may be in that container's cgroup.
    threads = {thread["pid"]: thread for thread in server.get("/api/thread-summary")["threads"]}
    assert threads[inside]["container_id"] == CONTAINER and threads[inside]["pod_uid"] == UID
    assert threads[inside]["cgroup"].endswith("/" + GROUP)
    assert threads[outside.pid].get("pod_uid") is None
    folder = server.data_dir / "sessions" / session["id"]
    if not folder.exists():
        folder = next(path for path in server.data_dir.rglob(session["id"]) if path.is_dir())

    # Each way to name the group finds the same samples. Together with the others they are all samples.
    total = server.get("/api/flamegraph", min_share=0)["total"]["samples"]
    own = server.get("/api/flamegraph", min_share=0, pid=inside)["total"]["samples"]
    assert 0 < own < total
    path = threads[inside]["cgroup"]
    for name, values in {"container": (CONTAINER, CONTAINER[:12], f"feedface{56 * '0'},{CONTAINER}"), "pod": (UID, UID[:8]),
                         "cgroup": (path, path.rsplit("/", 1)[0], path[1:] + "/")}.items():
        for value in values:
            assert server.get("/api/flamegraph", min_share=0, **{name: value})["total"]["samples"] == own, (name, value)
            assert sum(one["samples"] for one in server.get("/api/thread-summary", **{name: value})["threads"]) == own, (name, value)
    assert server.get("/api/flamegraph", container="c0")["total"]["samples"] == 0  # too short to identify a container
    assert server.get("/api/flamegraph", container=CONTAINER, pid=outside.pid)["total"]["samples"] == 0
    diff = server.get("/api/diff", container=CONTAINER, base_pid=outside.pid)
    assert diff["total"]["samples"] == own
    with pytest.raises(HttpError):
        server.get("/api/flamegraph", cgroup=",".join(str(number) for number in range(2000)))
    check_known_shares(KNOWN, Tree(server.get("/api/flamegraph", min_share=0, container=CONTAINER)))
    server.stop()

    # The command line has the same filters, and reports a name that matches nothing.
    for option, value in (("--container", CONTAINER[:12]), ("--pod", UID), ("--cgroup", path)):
        metadata = json.loads(flamewire("export", folder, "--format", "json", option, value).stdout)
        assert sum(event["samples"] for event in metadata["events"]) == own, option
        processes = metadata["metadata"]["processes"]
        assert [(one["pid"], one["ns_pid"], one["container_id"], one["pod_uid"], one["cgroup"]) for one in processes] == [(inside, 1, CONTAINER, UID, path)]
    assert b"burn_40" in flamewire("report", folder, "--container", CONTAINER).stdout
    refused = flamewire("report", folder, "--container", "feedface", check=False)
    assert refused.returncode == 1 and refused.stderr.decode().count("\n") == 1
    assert "no process of the profile is in container feedface; there are " in refused.stderr.decode() and CONTAINER in refused.stderr.decode()

    # Labels in pprof files, as protoc decodes them, and after an import.
    exported = flamewire("export", folder, "--format", "pprof", "--binary", PROGRAM).stdout
    profile = Profile(exported)
    for names, _, labels in profile.samples:
        assert (labels.get("container_id") == CONTAINER) == (labels["pid"] == inside), labels
        assert (labels.get("pod_uid"), labels.get("cgroup_path")) == (UID, path) or labels["pid"] != inside, labels
    file = start.directory / "exported.pb.gz"
    file.write_bytes(exported)
    again = Profile(flamewire("export", file, "--format", "pprof", "--pod", UID[:8]).stdout)
    assert sum(values[0] for _, values, _ in again.samples) == own
    assert all(labels["container_id"] == CONTAINER and labels["cgroup_path"] == path for _, _, labels in again.samples)

    # Functions and lines of the program in the container are llvm-symbolizer's for the same addresses.
    raw = decode(flamewire("export", folder, "--format", "pprof", "--binary", PROGRAM, "--container", CONTAINER).stdout)
    strings = raw["string_table"]
    functions = {one["id"][0]: strings[one["name"][0]] for one in raw["function"]}
    mappings = {one["id"][0]: strings[one["filename"][0]] for one in raw["mapping"]}
    leaves = {sample["location_id"][0] for sample in raw["sample"]}
    here = {}
    for location in raw["location"]:
        if location["id"][0] in leaves and "mapping_id" in location and mappings[location["mapping_id"][0]].endswith("/app/inside") and "address" in location:
            here[location["address"][0]] = [(functions[line["function_id"][0]], line.get("line", [0])[0]) for line in location["line"]]
    assert len(here) >= 3, raw["location"][:5]
    expected = symbolized(here)
    for address, frames in here.items():
        assert [line for _, line in frames] == [line for _, line in expected[address]], (hex(address), frames, expected[address])
        for (mine, _), (theirs, _) in zip(frames, expected[address]):
            assert mine.split("(")[0].rsplit("::", 1)[-1] == theirs.split("(")[0].rsplit("::", 1)[-1], (mine, theirs)


def test_a_user_namespace(start):
    """A rootless container: the target is root in its own namespace and an ordinary user outside."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("NOT tested: user namespaces are disabled")
    launcher = start.process("rootless", ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--kill-child", PROGRAM, 60])
    target = loaded_child(launcher, PROGRAM.name, PROGRAM)
    server = start.server("--binary", PROGRAM)
    agent = start.agent("--server", "127.0.0.1", "--port", server.port, "--pid", target, "--frequency", 499)
    wait_until(lambda: server.sessions() and server.sessions()[0]["samples"] > 200, 30, "samples")
    assert agent.stop() == 0
    ended_session(server)
    check_known_shares(KNOWN, Tree(server.get("/api/flamegraph", min_share=0)))
