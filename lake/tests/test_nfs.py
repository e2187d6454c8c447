"""A lake on an NFS server, to which several machines ship.

The server is nfs-ganesha on the loopback, and each machine is a client of its own (`nfs_mount`).
The tests need root and `/dev/fuse`, and the packages that `scripts/setup test` unpacks.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PACKAGE, Machine, answer

UNPACKED = PACKAGE.parent / ".venv/nfs/usr"
SETTINGS = PACKAGE.parent / "crates/testkit/src/nfs_server.conf"
#: Seconds in which the server starts or ends, and those of a machine's command.
START, COMMAND = 60, 300
#: Attempts to start the server: another program may take its port before.
ATTEMPTS = 3


@dataclass
class Share:
    """An exported directory, and where machines mount it."""

    server: str
    exported: Path
    mounted: Path
    library: str

    def machine(self, *command: str, locks: bool = True) -> subprocess.Popen[str]:
        """Starts a command on a machine that has the directory mounted."""
        url = f"nfs://127.0.0.1/exported?version=4&{self.server}&uid=0&gid=0"
        words = [sys.executable, str(Path(__file__).with_name("nfs_mount.py")), self.library, url]
        words += [str(self.exported), str(self.mounted), "locks" if locks else "nolocks"]
        return subprocess.Popen(
            [*words, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        )

    def ship(self, machine: Machine, locks: bool = True) -> subprocess.Popen[str]:
        """Starts a shipment of a store to the lake in the directory."""
        command = [sys.executable, "-m", "backstory_lake.cli", "ship", "--store"]
        return self.machine(*command, str(machine.store), "--to", str(self.lake), locks=locks)

    @property
    def lake(self) -> Path:
        """The lake as machines name it."""
        return self.mounted / "lake"


def _found(name: str, places: list[Path]) -> str | None:
    return next((str(place) for place in places if place.exists()), None) or shutil.which(name)


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Share]:
    server = _found("ganesha.nfsd", [UNPACKED / "bin/ganesha.nfsd"])
    unpacked = sorted(UNPACKED.glob("lib/*/libnfs.so.13"))
    library = _found("", unpacked) or ctypes.util.find_library("nfs")
    if os.getuid() != 0 or not os.path.exists("/dev/fuse") or not server or not library:
        pytest.skip("needs root, /dev/fuse, and the packages nfs-ganesha-vfs and libnfs13")
    exported, mounted, own = (tmp_path / name for name in ("exported", "mounted", "server"))
    for directory in (exported, mounted, own, own / "recovery"):
        directory.mkdir()
    plugins = [place.parent / "ganesha" for place in unpacked]
    text = SETTINGS.read_text().replace("@exported@", str(exported))
    text = text.replace("@directory@", str(own)).replace(
        "@plugins@", f'Plugins_Dir = "{plugins[0]}";' if plugins else ""
    )
    libraries = ":".join(map(str, [UNPACKED / "lib/ganesha", *(one.parent for one in unpacked)]))
    with _serving(server, libraries, text, own) as port:
        yield Share(f"nfsport={port}", exported, mounted, library)


@contextmanager
def _serving(server: str, libraries: str, settings: str, own: Path) -> Iterator[int]:
    """A server, and its port. Its own files are in `own`."""
    for _ in range(ATTEMPTS):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (own / "settings").write_text(settings.replace("@port@", str(port)))
        (own / "log").unlink(missing_ok=True)
        words = [server, "-F", "-f", str(own / "settings"), "-L", str(own / "log")]
        running = subprocess.Popen(
            [*words, "-p", str(own / "pid")],
            cwd="/",
            env=os.environ | {"LD_LIBRARY_PATH": libraries},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _is_started(own / "log", running):
                yield port
                return
        finally:
            _end(running)
    pytest.fail(f"the server did not start: {(own / 'log').read_text(errors='replace')}")


def _is_started(log: Path, running: subprocess.Popen[bytes]) -> bool:
    """Waits until the server serves. False if it ended instead."""
    end = time.monotonic() + START
    while not (log.exists() and "NFS SERVER INITIALIZED" in log.read_text(errors="replace")):
        assert time.monotonic() < end, f"the server does not start; its messages are in {log}"
        if running.poll() is not None:
            return False
        time.sleep(0.05)
    return True


def _end(running: subprocess.Popen[bytes]) -> None:
    running.terminate()
    try:
        running.wait(START)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The status, the output and the messages of a machine's command."""
    try:
        out, err = started.communicate(timeout=COMMAND)
    except subprocess.TimeoutExpired:
        started.kill()
        pytest.fail(f"a machine's command takes more than {COMMAND} s: {started.args}")
    return started.returncode, out, err


def test_machines_ship_at_once_to_a_lake_on_an_nfs_server(share: Share, tmp_path: Path) -> None:
    machines = [Machine(tmp_path / f"m{at}") for at in range(3)]
    for at, machine in enumerate(machines):
        machine.record(f"echo {at} > out")
    first = ended(share.ship(machines[0]))
    assert first == (0, f"1 run shipped to {share.lake}, 0 there already\n", "")
    runs = {machine.record("cat out > copy") for machine in machines for _ in range(2)}
    for done in [share.ship(machine) for machine in machines for _ in range(2)]:
        status, _, err = ended(done)
        assert status == 0, err
    sql = "SELECT count(*), count(DISTINCT run), count(DISTINCT machine) FROM runs"
    command = [sys.executable, "-m", "backstory_lake.cli", "query", "--csv", "--lake"]
    status, out, err = ended(share.machine(*command, str(share.lake), sql))
    assert (status, out.splitlines()[1:]) == (0, ["9,9,3"]), (out, err)
    # No machine holds a removed file.
    assert not list(share.exported.rglob(".nfs*"))
    # The server itself has the lake under the same name, too.
    share.mounted.rmdir()
    share.mounted.symlink_to(share.exported)
    assert runs < {run for (run,) in answer(share.lake, "SELECT run FROM runs")}


def test_a_machine_without_locks_ships_nothing_and_says_so(share: Share, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    machine.record("echo x > out")
    assert ended(share.ship(machine, locks=False)) == (
        1,
        "",
        f"backstory-lake: {share.lake} is on a file system without locks (No locks available): "
        "mount it with locks on all machines, or use a catalog\n",
    )
    assert not (share.exported / "lake/catalog.sqlite").exists()
    assert ended(share.ship(machine))[0] == 0
