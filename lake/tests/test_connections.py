"""Lineage in a lake crosses from a client to its server, as `of` and `uses` do."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Machine, answer, command, random_line
from reference import Reference
from test_erasure import has
from test_lineage import Compared, compare
from test_names import Engine

from backstory_lake import batches, erasure, questions, shipping, upkeep
from backstory_lake import lake as lake_module
from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config
from backstory_lake.tables import COUNTED, LATER, RUNS, TABLES

#: Answers some questions: writes each into a file, and sends another file back.
SERVER = """import socket, sys
s = socket.socket()
s.bind((sys.argv[1], 0))
s.listen()
open('port.new', 'w').write(str(s.getsockname()[1]))
import os; os.rename('port.new', 'port')
for answered, asked in zip(sys.argv[2::2], sys.argv[3::2]):
    peer, _ = s.accept()
    open(asked, 'wb').write(peer.recv(9999))
    peer.sendall(open(answered, 'rb').read())
    peer.close()
"""

#: Sends a file, and writes the reply into another.
CLIENT = """import socket, sys
own, server, port, asked, got = sys.argv[1:]
s = socket.create_connection((server, int(port)), source_address=(own, 0))
s.sendall(open(asked, 'rb').read())
open(got, 'wb').write(s.recv(9999))
"""


def prepared(machine: Machine, choice: random.Random) -> Machine:
    """A machine with the two programs and some files."""
    (machine.directory / "server.py").write_text(SERVER)
    (machine.directory / "client.py").write_text(CLIENT)
    for name in "abcdef":
        (machine.directory / name).write_text(f"{choice.random()}\n" * 9)
    return machine


class Network:
    """Two machines on one: each with a boot id of its own, if the kernel lets an ordinary user."""

    def __init__(self, directory: Path) -> None:
        self._pid = directory / "network.pid"
        script = f"""ip link set lo up && for at in 1 2; do
          ip addr add 203.0.113.$at/32 dev lo && ip addr add 10.9.9.$at/32 dev lo; done &&
          echo $$ > {self._pid}.new && mv {self._pid}.new {self._pid} && exec sleep 600"""
        words = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
        self._holder = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        while not self._pid.exists():
            if self._holder.poll() is not None:
                pytest.skip("unshare and ip make no network here")
            time.sleep(0.02)

    def command(self, machine: Machine, boot: Path, *words: str) -> subprocess.Popen[bytes]:
        """Starts a recorded command in the network, on a machine with this boot id."""
        enter = ["nsenter", "--target", self._pid.read_text().strip(), "--user", "--net"]
        # A bind mount of its own, so that other commands keep theirs.
        own = f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
        inside = ["unshare", "--mount", "sh", "-c", own, "sh", os.environ["BACKSTORY_PROGRAM"]]
        return subprocess.Popen(
            [*enter, *inside, "record", "--wait", "--", *words],
            cwd=machine.directory,
            env=os.environ | {"BACKSTORY_STORE": str(machine.store)},
        )

    def close(self) -> None:
        """Ends it."""
        self._holder.kill()
        self._holder.wait()


#: Starts a recorded command on a machine.
Start = Callable[..., "subprocess.Popen[bytes]"]


def started(machine: Machine, *words: str) -> subprocess.Popen[bytes]:
    """Starts a recorded command on this machine."""
    return subprocess.Popen(
        [os.environ["BACKSTORY_PROGRAM"], "record", "--wait", "--", *words],
        cwd=machine.directory,
        env=os.environ | {"BACKSTORY_STORE": str(machine.store)},
    )


def exchanged(
    client: Machine,
    server: Machine,
    addresses: tuple[str, str],
    start: Start,
    choice: random.Random,
) -> None:
    """A run that serves two questions, and the runs that ask them, with others in between."""
    port = server.directory / "port"
    port.unlink(missing_ok=True)
    for machine in (client, server):
        # Each file is known.
        assert start(machine, "sh", "-c", "cat a b c d e f > all").wait() == 0
    files = choice.choices("abcdef", k=4)
    serving = start(server, "python3", "server.py", addresses[1], *files)
    while not port.exists():
        assert serving.poll() is None
        time.sleep(0.02)
    own = addresses[0]
    for _ in range(2):
        asked, got = choice.sample("abcdef", 2)
        words = [own, addresses[1], port.read_text(), asked, got]
        assert start(client, "python3", "client.py", *words).wait() == 0
        assert start(client, "sh", "-c", f"{random_line(choice)}; true").wait() == 0
    assert serving.wait() == 0
    assert start(server, "sh", "-c", f"{random_line(choice)}; true").wait() == 0


def names(*machines: Machine) -> list[str]:
    """The files of machines."""
    return [f"{one.directory}/{name}" for one in machines for name in "abcdef"]


def two_machines(directory: Path, seed: int) -> tuple[Machine, Machine]:
    """A client's machine and a server's."""
    choice = random.Random(seed)
    return (
        prepared(Machine(directory / "client"), choice),
        prepared(Machine(directory / "server"), choice),
    )


def compare_one_boot(directory: Path, lake: Path, seed: int, count: int, engine: Engine) -> None:
    """The client and the server are of one boot, and one store ships both."""
    client, server = two_machines(directory, seed)
    choice = random.Random(seed)
    for _ in range(count):
        exchanged(client, server, ("127.0.0.1", "127.0.0.1"), started, choice)
    server.program("store", "push", str(client.store))
    assert compare(client, lake, names(client, server), lambda: engine(lake)) > 100
    assert crossed(lake) == [("seen", 4 * count)]


def crossed(lake: Path) -> list[tuple[str, int]]:
    """The steps over connections, by certainty."""
    sql = "SELECT certainty, count(*) FROM lake_carrying WHERE back AND forth GROUP BY ALL"
    return [(row[0], row[1]) for row in answer(lake, sql)]


def test_lineage_crosses_from_a_client_to_its_server_as_of_and_uses_do(
    tmp_path: Path, lake: Path
) -> None:
    compare_one_boot(tmp_path, lake, 1, 1, Compared)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 7))
def test_lineage_crosses_many_connections_as_of_and_uses_do(
    tmp_path: Path, lake: Path, seed: int
) -> None:
    compare_one_boot(tmp_path, lake, seed, 3, Compared)


@pytest.mark.long
def test_the_reference_crosses_connections_as_of_and_uses_do(tmp_path: Path, lake: Path) -> None:
    compare_one_boot(tmp_path, lake, 7, 2, Reference)


@pytest.mark.long
@pytest.mark.parametrize(
    ("network", "certainty", "seed"),
    [
        ("203.0.113", "seen", 1),
        ("203.0.113", "seen", 2),
        ("10.9.9", "possible", 3),
        ("10.9.9", "possible", 4),
    ],
)
def test_lineage_crosses_between_two_machines_as_of_and_uses_do(
    tmp_path: Path, lake: Path, network: str, certainty: str, seed: int
) -> None:
    client, server = two_machines(tmp_path, seed)
    boots = {}
    for at, machine in enumerate((client, server), 1):
        boots[machine.store] = tmp_path / f"boot{at}"
        boots[machine.store].write_text(f"0000000{at}-0000-4000-8000-000000000000\n")
    between = Network(tmp_path)
    try:
        exchanged(
            client,
            server,
            (f"{network}.1", f"{network}.2"),
            lambda machine, *words: between.command(machine, boots[machine.store], *words),
            random.Random(seed),
        )
    finally:
        between.close()
    # Each machine ships its own store, and one store has the runs of both.
    server.ship(lake)
    server.program("store", "push", str(client.store))
    assert compare(client, lake, names(client, server)) > 100
    assert answer(lake, "SELECT count(DISTINCT boot), count(DISTINCT machine) FROM runs") == [
        (2, 2)
    ]
    assert crossed(lake) == [(certainty, 4)]


def test_the_loopback_address_of_two_stores_is_possibly_that_of_clones(
    tmp_path: Path, lake: Path
) -> None:
    client, server = two_machines(tmp_path, 8)
    exchanged(client, server, ("127.0.0.1", "127.0.0.1"), started, random.Random(8))
    client.ship(lake)
    server.ship(lake)
    assert crossed(lake) == [("possible", 4)]


def test_private_connections_stay_at_home(tmp_path: Path, lake: Path) -> None:
    client, server = two_machines(tmp_path, 9)
    exchanged(client, server, ("127.0.0.1", "127.0.0.1"), started, random.Random(9))
    client.ship(lake, config=Config(omitted=["tcp:**"]))
    server.ship(lake, config=Config(hashed=["tcp:**"], key=b"0123456789abcdef"))
    assert answer(lake, "SELECT count(*) FROM connections") == [(0,)]
    assert not has(lake, "127.0.0.1:")


def test_a_forgotten_run_leaves_no_end_of_a_connection(tmp_path: Path, lake: Path) -> None:
    client, server = two_machines(tmp_path, 10)
    exchanged(client, server, ("127.0.0.1", "127.0.0.1"), started, random.Random(10))
    for machine in (client, server):
        machine.ship(lake)
    gone = answer(lake, "SELECT run, own FROM connections WHERE role = 'server'")
    assert len(gone) == 2
    ended = command("forget", "--lake", str(lake), gone[0][0])
    assert ended.returncode == 0, ended.stderr
    assert not has(lake / "backstory" / "connections", gone[0][0])
    assert answer(lake, "SELECT DISTINCT role FROM connections") == [("client",)]
    assert crossed(lake) == []


class Older:
    """The tables and columns that a writer knew before there were connections and peers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        columns = tuple(column for column in RUNS.columns if column[1] not in COUNTED)
        runs = dataclasses.replace(RUNS, columns=columns)
        known = tuple(of for of in TABLES if of not in (*LATER, RUNS)) + (runs,)
        for module in (lake_module, shipping, batches, erasure, upkeep, questions):
            for name, value in (("TABLES", known), ("RUNS", runs)):
                if hasattr(module, name):
                    patch.setattr(module, name, value)
        patch.setattr(lake_module, "LATER", ())
        plain = batches.Batch.tables
        patch.setattr(
            batches.Batch,
            "tables",
            lambda batch: [(of, rows) for of, rows in plain(batch) if of not in LATER],
        )


def test_older_and_newer_writers_share_a_lake(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = machine.record("sort in > a")
    with monkeypatch.context() as patch:
        Older(patch)
        machine.ship(lake)
    # A newer reader, and then a newer writer.
    assert answer(lake, "SELECT count(*) FROM connections") == [(0,)]
    assert not (lake / "backstory" / "connections").exists()
    second = machine.record("sort in > b")
    machine.ship(lake)
    third = machine.record("sort in > c")
    with monkeypatch.context() as patch:
        Older(patch)
        machine.ship(lake)
        # It would write files anew without their column.
        with pytest.raises(LakeError, match="does not know and would lose: connections, peers"):
            erasure.forget(Lake.open(str(lake)), [first])
    rows = answer(lake, "SELECT run, connections FROM runs_table ORDER BY started_ns")
    assert rows == [(first, None), (second, 0), (third, None)]
    assert len(Compared(lake).runs) == 3
    erasure.forget(Lake.open(str(lake)), [first])
    upkeep.compact(Lake.open(str(lake)))
    assert answer(lake, "SELECT run FROM runs ORDER BY started_ns") == [(second,), (third,)]


def test_a_lake_of_older_writers_is_erased_from_and_compacted(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = machine.record("sort in > whistleblower")
    kept = machine.record("sort in > b")
    with monkeypatch.context() as patch:
        Older(patch)
        for run in (gone, kept):
            machine.ship(lake, run)
    opened = Lake.open(str(lake))
    erasure.forget(opened, [gone])
    upkeep.compact(opened)
    assert not has(lake, "whistleblower")
    assert answer(lake, "SELECT run FROM runs") == [(kept,)]
