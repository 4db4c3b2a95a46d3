"""The packages, built by cpack and installed in separate roots: their files, that they need nothing else, and that a board's busybox starts
the agent by its init script."""

import contextlib
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("harness", "checks")]
import programs  # noqa: E402
from flamewire import BIN, ROOT, TESTS_BIN, Process, Server, Tree, ended, share_of, wait_until, workload  # noqa: E402

BUILD = BIN.parent
VERSION = (ROOT / "VERSION").read_text().strip()
MACHINE = os.uname().machine


def run(*command, check=True, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0 or not check, f"{command}: {done.stdout}\n{done.stderr}"
    return done


def chroot(root, *command, **options):
    return run("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **options)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("packages")
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", directory)
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", directory, "-G", "TGZ", "-D", "FLAMEWIRE_PACKAGE=agent")
    return directory


@pytest.fixture(scope="module")
def deb(packages):
    return next(packages.glob(f"flamewire-server_{VERSION}_*.deb"))


@pytest.fixture(scope="module")
def downloads(tmp_path_factory, deb):
    """The Debian packages that ours needs according to apt, and the packages that a root needs to run dpkg. The machine itself stays unchanged."""
    directory = tmp_path_factory.mktemp("downloads")
    script = f"""set -euo pipefail
        die() {{ printf '%s\\n' "$*" >&2; exit 1; }}
        . {ROOT}/toolchains/private-apt.sh
        private_apt "$(dpkg --print-architecture)" {directory}
        apt_download {deb} dpkg libc-bin busybox-static"""
    run("bash", "-c", script)
    return directory / "apt/cache/archives"


def field(package, name):
    return run("dpkg-deb", "-f", package, name).stdout.strip()


@contextlib.contextmanager
def with_proc(root):
    """/proc and /dev/null, which every system has."""
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    run("mount", "-t", "proc", "proc", root / "proc")
    (root / "dev/null").touch()
    run("mount", "--bind", "/dev/null", root / "dev/null")
    try:
        yield root
    finally:
        run("umount", root / "dev/null")
        run("umount", root / "proc")


@pytest.fixture
def debian(tmp_path, downloads):
    """A Debian with only the dependencies of our package according to apt, registered as installed."""
    root = tmp_path / "debian"
    status = ""
    for package in sorted(downloads.glob("*.deb")):
        run("dpkg-deb", "-x", package, root)
        status += run("dpkg-deb", "-f", package).stdout.replace("\n", "\nStatus: install ok installed\n", 1) + "\n"
    (root / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").write_text(status)
    (root / "var/log").mkdir(parents=True, exist_ok=True)
    for applet in ("sh", "rm", "diff"):
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")
    with with_proc(root):
        yield root


def test_server_of_the_debian_package(debian, deb, tmp_path):
    (debian / "server.deb").write_bytes(deb.read_bytes())
    chroot(debian, "dpkg", "-i", "/server.deb")
    assert f"flamewire-server {VERSION}" in chroot(debian, "/usr/bin/flamewire-server", "--version").stdout
    # Debian's libraries are used, not bundled ones.
    assert "RPATH" not in run("readelf", "-d", debian / "usr/bin/flamewire-server").stdout
    for name in ("etc/default/flamewire-server", "usr/share/man/man1/flamewire-server.1.gz", "usr/share/doc/flamewire-server/copyright",
                 "usr/share/doc/flamewire-server/licences/librestinio-dev", "usr/lib/systemd/system/flamewire-server.service",
                 "usr/share/man/man1/flamewire.1.gz", "usr/share/bash-completion/completions/flamewire",
                 "usr/share/zsh/vendor-completions/_flamewire", "usr/share/fish/vendor_completions.d/flamewire.fish"):
        assert (debian / name).is_file(), name
    assert "preact" in (debian / "usr/share/doc/flamewire-server/licences/page").read_text()

    # The command line finds its agent in the same folder, and needs no other packages than the server.
    assert "RPATH" not in run("readelf", "-d", debian / "usr/bin/flamewire").stdout
    done = chroot(debian, "/usr/bin/flamewire", "record", "-F", "999", "-o", "/own.flw", "--", "/bin/busybox", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    assert "session: /own.flw" in done.stderr and "busybox" in done.stderr, done.stderr

    # It receives a recording from an agent, names the functions by a given file, and serves the page.
    burner = workload(tmp_path, "shares")
    (debian / "symbols").write_bytes((TESTS_BIN / "shares-workload").read_bytes())
    server = Server(tmp_path, "--source-dir", "/", "--binary", "/symbols", data_dir="/var/lib/flamewire", program=["chroot", debian, "/usr/bin/flamewire-server"])
    agent = Process("agent", [BIN / "flamewire-agent", "--server", "127.0.0.1", "--pair", server.code, "--port", server.port, "--pid", burner.pid], tmp_path)
    with ended(burner, agent, server):
        assert b"<!doctype html>" in server.get("/").lower()
        shares = wait_until(lambda: server.sessions() and share_of(Tree(server.get("/api/flamegraph")).shares(), "main") > 0.9, 60, "names")
        assert shares
        assert agent.stop() == 0
        assert server.stop() == 0
    assert list((debian / "var/lib/flamewire/sessions").iterdir())

    # Settings stay when the package is removed, and are deleted when it is purged.
    (debian / "etc/default/flamewire-server").write_text("FLAMEWIRE_SERVER_OPTIONS=--verbose\n")
    chroot(debian, "dpkg", "-r", "flamewire-server")
    assert not (debian / "usr/bin/flamewire-server").exists() and "--verbose" in (debian / "etc/default/flamewire-server").read_text()
    chroot(debian, "dpkg", "-P", "flamewire-server")
    assert not (debian / "etc/default/flamewire-server").exists()


def test_server_in_any_folder(packages, downloads, tmp_path):
    """The system has only a C library."""
    root = tmp_path / "other system"
    place = root / "opt/any where"
    place.mkdir(parents=True)
    run("dpkg-deb", "-x", next(downloads.glob("libc6_*.deb")), root)
    archive = packages / f"flamewire-server-{VERSION}-linux-{MACHINE}.tar.gz"
    run("tar", "-C", place, "-xzf", archive)
    program = f"/opt/any where/flamewire-server-{VERSION}-linux-{MACHINE}/bin/flamewire-server"
    with with_proc(root):
        assert f"flamewire-server {VERSION}" in chroot(root, program, "--version").stdout
        server = Server(tmp_path, "--source-dir", "/", data_dir="/data", program=["chroot", root, program])
        with ended(server):
            assert server.get("/api/status")
            assert server.stop() == 0
    # The license of each bundled library is next to it.
    names = tarfile.open(archive).getnames()
    libraries = {re.sub(r"[-.].*", "", pathlib.Path(name).name) for name in names if "/lib/flamewire/" in name}
    licences = {pathlib.Path(name).name for name in names if "/licences/" in name}
    package = {"libgcc_s": "libstdc++6", "libssl": "libssl3", "libcrypto": "libssl3", "libicudata": "libicu72", "libicuuc": "libicu72", "libhttp_parser": "libhttp-parser2.9", "libz": "zlib1g", "libspdlog": "libspdlog1.10", "libbz2": "libbz2-1.0", "libstdc++": "libstdc++6"}
    assert libraries and all(any(licence.startswith(package.get(library, library)) for licence in licences) for library in libraries), (libraries, licences)


def test_agent_on_a_board_with_busybox(packages, downloads, tmp_path):
    root = tmp_path / "board"
    (root / "bin").mkdir(parents=True)
    (root / "usr").mkdir()
    busybox = next(downloads.glob("busybox-static_*.deb"))
    run("dpkg-deb", "-x", busybox, root)
    for applet in ("sh", "tar", "gzip", "sleep", "ls", "cat"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "run").mkdir()
    archive = packages / f"flamewire-agent-{VERSION}-linux-{MACHINE}.tar.gz"
    (root / "agent.tar.gz").write_bytes(archive.read_bytes())
    chroot(root, "tar", "-C", "/", "--strip-components=1", "-xzf", "/agent.tar.gz")
    assert (root / "usr/share/doc/flamewire-agent/licences/libc6-dev").is_file()
    init = "/etc/init.d/flamewire-agent"
    settings = root / "etc/default/flamewire-agent"
    burner = workload(tmp_path, "shares")
    server = Server(tmp_path)
    with with_proc(root), ended(burner, server):
        assert "does not run" in chroot(root, init, "status", check=False).stdout
        # A wrong option is reported at the start, not later.
        settings.write_text("FLAMEWIRE_AGENT_OPTIONS=--no-such-option\n")
        wrong = chroot(root, init, "start", check=False)
        assert wrong.returncode == 1 and "did not start" in wrong.stdout
        settings.write_text(f'FLAMEWIRE_AGENT_OPTIONS="--server 127.0.0.1 --pair {server.code} --port {server.port} --pid {burner.pid}"\n')
        chroot(root, init, "start")
        try:
            assert "runs already" in chroot(root, init, "start").stdout
            assert "runs, as process" in chroot(root, init, "status").stdout
            assert wait_until(lambda: server.sessions() and share_of(Tree(server.get("/api/flamegraph")).shares(), "main") > 0.9, 60, "a profile")
            pid = int((root / "run/flamewire-agent.pid").read_text())
            chroot(root, init, "restart")
            assert int((root / "run/flamewire-agent.pid").read_text()) != pid
        finally:
            chroot(root, init, "stop")
        assert "does not run" in chroot(root, init, "status", check=False).stdout
        assert server.stop() == 0


@pytest.mark.parametrize("name, folder", [("flamewire-agent", "agent"), ("flamewire-server", "server")])
def test_systemd_accepts_the_units(name, folder, packages, deb, tmp_path):
    root = tmp_path / "root"
    if folder == "server":
        run("dpkg-deb", "-x", deb, root)
    else:
        root.mkdir()
        run("tar", "-C", root, "--strip-components=1", "-xzf", packages / f"flamewire-agent-{VERSION}-linux-{MACHINE}.tar.gz")
    unit = root / f"usr/lib/systemd/system/{name}.service"
    # The unit starts the program at the path where the package installs it.
    started = re.search(r"^ExecStart=(\S+)", unit.read_text(), re.M)[1]
    assert os.access(root / started.lstrip("/"), os.X_OK)
    settings = re.search(r"^EnvironmentFile=-(\S+)", unit.read_text(), re.M)[1]
    assert f"FLAMEWIRE_{folder.upper()}_OPTIONS=" in (root / settings.lstrip("/")).read_text() and f"$FLAMEWIRE_{folder.upper()}_OPTIONS" in unit.read_text()
    # systemd checks the unit with a program of this machine.
    here = tmp_path / f"{name}.service"
    here.write_text(unit.read_text().replace(started, "/bin/true").replace("Documentation=", "#"))
    read = run("systemd-analyze", "verify", "--man=no", here, check=False)
    assert read.returncode == 0 and not [line for line in read.stderr.splitlines() if here.name in line], read.stderr


@pytest.mark.parametrize("kind, expected", [("deb", {"flamewire", "flamewire-agent", "flamewire-server"}),
                                            ("server", {"flamewire", "flamewire-agent", "flamewire-server"}), ("agent", {"flamewire-agent"})])
def test_programs_are_hardened(kind, expected, packages, deb, tmp_path):
    """Of the bundled Debian libraries, only the segments and the search paths are checked."""
    if kind == "deb":
        run("dpkg-deb", "-x", deb, tmp_path)
    else:
        run("tar", "-C", tmp_path, "-xzf", packages / f"flamewire-{kind}-{VERSION}-linux-{MACHINE}.tar.gz")
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file() and not path.is_symlink() and programs.is_program(path)]
    assert expected <= {path.name for path in files}
    assert [finding for path in files for finding in programs.check(path)] == []


@pytest.mark.parametrize("program", ["flamewire-agent", "flamewire-server"])
def test_manual_pages_have_every_option(program):
    page = ROOT / f"docs/man/{program}.1"
    drawn = run("groff", "-man", "-Tascii", "-P-c", "-ww", page)
    assert drawn.stderr == ""
    text = re.sub(r".\x08", "", drawn.stdout)
    text = re.sub(r"(?<=\w)-\n\s+", "-", text)
    listed = set(re.findall(r"--[a-z0-9][a-z0-9-]+", run(BIN / program, "--help").stdout))
    headings = "\n".join(re.findall(r"^ {7}(-.*)", text, re.M))
    described = set(re.findall(r"--[a-z0-9][a-z0-9-]+", headings))
    assert listed - described == set(), "not in the manual page"
    assert described - listed == set(), "only in the manual page"
    packed = BUILD / f"package/{program}.1.gz"
    assert gzip.decompress(packed.read_bytes()) == page.read_bytes()
